//! A gateway that does what a test says, step by step, and counts.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use oncepay::gateways::{
    Authorize, Cancel, Capture, Find, Finding, Gateway, GatewayReference, Outcome, Refund,
    listing::{ListError, Listed},
};
use tokio::sync::Notify;

/// What one call does.
#[derive(Debug)]
pub enum Act {
    /// Answers.
    Say(Outcome),
    /// Waits for [`Scripted::open`], then answers.
    WaitThenSay(Outcome),
    /// Never answers.
    Hang,
    Panic,
}

/// Plays acts in their order; approves when there are none left.
#[derive(Debug, Default)]
pub struct Scripted {
    acts: Mutex<VecDeque<Act>>,
    findings: Mutex<VecDeque<Finding>>,
    sent: Mutex<Vec<Authorize>>,
    asked: Mutex<Vec<Find>>,
    called: Notify,
    gate: Notify,
    other_name: Option<&'static str>,
}

/// The outcome of a payment that went well.
pub fn approved() -> Outcome {
    Outcome::Approved {
        reference: GatewayReference("scripted_1".to_owned()),
    }
}

impl Scripted {
    pub fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        Self {
            acts: Mutex::new(acts.into_iter().collect()),
            ..Self::default()
        }
    }

    /// What look-ups find, in their order; nothing when there are none left.
    #[must_use]
    pub fn finding(self, findings: impl IntoIterator<Item = Finding>) -> Self {
        lock(&self.findings).extend(findings);
        self
    }

    /// The same under another name than the sandbox's.
    #[must_use]
    pub fn named(mut self, name: &'static str) -> Self {
        self.other_name = Some(name);
        self
    }

    /// Every `authorize` so far.
    pub fn sent(&self) -> Vec<Authorize> {
        lock(&self.sent).clone()
    }

    /// Every `find` so far.
    pub fn asked(&self) -> Vec<Find> {
        lock(&self.asked).clone()
    }

    /// Resolves when there were so many calls of `authorize`.
    pub async fn called(&self, times: usize) {
        loop {
            let notified = self.called.notified();
            if lock(&self.sent).len() >= times {
                return;
            }
            notified.await;
        }
    }

    /// Lets one waiting call go on, now or when it comes.
    pub fn open(&self) {
        self.gate.notify_one();
    }
}

#[async_trait]
impl Gateway for Scripted {
    fn name(&self) -> &'static str {
        self.other_name.unwrap_or("sandbox")
    }

    fn key_window(&self) -> Duration {
        Duration::from_hours(24)
    }

    async fn authorize(&self, request: &Authorize) -> Outcome {
        lock(&self.sent).push(request.clone());
        self.called.notify_waiters();
        let act = lock(&self.acts).pop_front().unwrap_or(Act::Say(approved()));
        match act {
            Act::Say(outcome) => outcome,
            Act::WaitThenSay(outcome) => {
                self.gate.notified().await;
                outcome
            }
            Act::Hang => std::future::pending().await,
            Act::Panic => panic!("the script says so"),
        }
    }

    async fn capture(&self, _request: &Capture) -> Outcome {
        unreachable!("no operation captures yet")
    }

    async fn cancel(&self, _request: &Cancel) -> Outcome {
        unreachable!("no operation cancels yet")
    }

    async fn refund(&self, _request: &Refund) -> Outcome {
        unreachable!("no operation refunds yet")
    }

    async fn find(&self, sought: &Find) -> Finding {
        lock(&self.asked).push(sought.clone());
        lock(&self.findings).pop_front().unwrap_or(Finding::Absent)
    }

    async fn list(&self, _since: DateTime<Utc>) -> Result<Vec<Listed>, ListError> {
        unreachable!("a script keeps no list")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
