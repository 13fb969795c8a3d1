//! A client that wants its answer: it retries under its key until one is definite, at whichever
//! service is there, and remembers all that it was told.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use oncepay::clock::{Clock as _, SystemClock};
use serde_json::Value;
use tokio::{sync::watch, time::Instant};

use super::client::{Client, Reply};

/// Between two tries: shorter than `Retry-After` asks for, so that a trial is not longer than it
/// must be.
const BACK_OFF: Duration = Duration::from_millis(100);

/// For how long it tries. Whoever is still without an answer then has been let down.
const PATIENCE: Duration = Duration::from_secs(15);

/// Which request of its key was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The one that had the key first, or a retry of it.
    First,
    /// Another one, which may never get more than a refusal.
    Other,
}

/// One answer, and when it was heard.
#[derive(Clone, Debug)]
pub struct Said {
    pub key: String,
    pub asked: Asked,
    pub heard_at: DateTime<Utc>,
    pub reply: Reply,
}

impl Said {
    /// Whether it is a last word: neither "in progress" nor "not known" nor "try again".
    pub fn is_definite(&self) -> bool {
        let status = self.reply.status.as_u16();
        status < 500 && !matches!(status, 202 | 409)
    }
}

/// All that the clients of one trial were told. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Heard(Arc<Mutex<Vec<Said>>>);

impl Heard {
    pub fn all(&self) -> Vec<Said> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn add(&self, said: Said) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(said);
    }
}

/// Wants one payment.
#[derive(Clone, Debug)]
pub struct Buyer {
    pub key: String,
    pub body: Value,
    pub asked: Asked,
    pub heard: Heard,
    /// Which of the services it goes to.
    pub number: usize,
}

impl Buyer {
    /// Sends once; nothing where the connection broke.
    pub async fn once(&self, client: &Client) -> Option<Said> {
        let reply = client.pay_or_break(&self.key, &self.body).await.ok()?;
        let said = Said {
            key: self.key.clone(),
            asked: self.asked,
            heard_at: SystemClock.now(),
            reply,
        };
        self.heard.add(said.clone());
        Some(said)
    }

    /// Sends until an answer is definite, and gives that; nothing where none ever was.
    pub async fn persist(&self, services: watch::Receiver<Vec<Client>>) -> Option<Said> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let client = {
                let services = services.borrow();
                services[self.number % services.len()].clone()
            };
            let said = self.once(&client).await;
            if let Some(said) = said.filter(Said::is_definite) {
                return Some(said);
            }
            tokio::time::sleep(BACK_OFF).await;
        }
        None
    }
}
