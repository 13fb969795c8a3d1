//! A deterministic gateway inside the process: the payment method decides ([`method`]).
//!
//! It promises what a good gateway promises, so that tests can hold the service against it:
//!
//! 1. One gateway key has one effect, whoever sends it how often: several tasks, several processes
//!    on one folder, and whatever follows a `kill -9` at any line.
//! 2. A key that comes back gets the outcome it got first; with other parameters it gets
//!    [`Unknown::ParametersDiffer`] and does nothing.
//! 3. Every effect has exactly one `effect` line in the [`journal`], synced before the answer. An
//!    execution is counted there, never by the program under test.
//! 4. A call that its caller drops (a timeout) leaves nothing half done: what touches the memory
//!    runs to its end on a blocking thread, and between two such steps there is only waiting.
//!
//! It refuses to guess: a disk that fails makes the outcome unknown, as a gateway's own failure
//! would. Only authorisations can be told to misbehave; a capture, a cancel and a refund carry no
//! payment method and are decided by what was authorised, captured and given back.
//!
//! How the folder keeps promises 1 and 3 is told in [`folder`].

mod charge;
mod entry;
mod find;
mod folder;
pub mod journal;
mod list;
mod memory;
pub mod method;
mod plan;
mod request;
mod send;
pub mod server;
#[cfg(test)]
mod tests;

use std::{
    io,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use self::{
    folder::Folder,
    memory::{Ledger, Memory},
    request::Request,
    send::Arrival,
};
use super::{
    Authorize, Cancel, Capture, Find, Finding, Gateway, Outcome, Refund, Unknown,
    listing::{ListError, Listed},
};
use crate::clock::Clock;

/// Stripe's window, so that the service's rules about old keys are the same in tests. The folder
/// itself never forgets a key: forgetting is a fault, and faults are asked for by name.
const KEY_WINDOW: Duration = Duration::from_hours(24);

/// The sandbox. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Sandbox {
    memory: Memory,
    clock: Arc<dyn Clock>,
}

impl Sandbox {
    /// Remembers in the folder at `path`, which several processes may share. Makes the folder,
    /// and finishes what a process that died left in it.
    pub fn in_folder(path: impl AsRef<Path>, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let folder = Arc::new(Folder::open(path.as_ref())?);
        let turn = Arc::default();
        Ok(Self {
            memory: Memory::Folder { folder, turn },
            clock,
        })
    }

    /// Remembers until the process ends, for benchmarks. There is no journal, and of each key only
    /// what an answer needs is kept; but no key is forgotten, so memory grows with the keys.
    pub fn in_memory(clock: Arc<dyn Clock>) -> Self {
        Self {
            memory: Memory::Map(Arc::new(Mutex::default())),
            clock,
        }
    }

    async fn send(&self, request: Request) -> Outcome {
        let gateway_key = request.gateway_key.clone();
        self.try_send(Arc::new(request))
            .await
            .unwrap_or_else(|error| {
                tracing::error!(gateway_key, %error, "the sandbox's memory failed");
                Outcome::Unknown(Unknown::GatewayError)
            })
    }

    async fn try_send(&self, request: Arc<Request>) -> io::Result<Outcome> {
        let sent = Arc::clone(&request);
        let arrival = self
            .step(move |ledger, clock| send::arrive(ledger, &sent, clock.now()))
            .await?;
        let (outcome, plan) = match arrival {
            Arrival::Acted(outcome, plan) => (outcome, plan),
            Arrival::Waits(plan) => {
                plan.before.pass().await;
                let sent = Arc::clone(&request);
                let deed = plan.deed;
                let outcome = self
                    .step(move |ledger, clock| send::resume(ledger, &sent, deed, clock.now()))
                    .await?;
                (outcome, plan)
            }
        };
        plan.after.pass().await;
        let answer = plan.reply.of(outcome);
        let answered = answer.clone();
        self.step(move |ledger, clock| send::answer(ledger, &request, &answered, clock.now()))
            .await?;
        Ok(answer)
    }

    /// One step of a call, whole or not at all, with the memory to itself.
    async fn step<T, W>(&self, work: W) -> io::Result<T>
    where
        T: Send + 'static,
        W: FnOnce(&mut dyn Ledger, &dyn Clock) -> io::Result<T> + Send + 'static,
    {
        let clock = Arc::clone(&self.clock);
        self.memory
            .step(move |ledger| work(ledger, clock.as_ref()))
            .await
    }
}

#[async_trait]
impl Gateway for Sandbox {
    fn name(&self) -> &'static str {
        "sandbox"
    }

    fn key_window(&self) -> Duration {
        KEY_WINDOW
    }

    async fn authorize(&self, request: &Authorize) -> Outcome {
        self.send(request.into()).await
    }

    async fn capture(&self, request: &Capture) -> Outcome {
        self.send(request.into()).await
    }

    async fn cancel(&self, request: &Cancel) -> Outcome {
        self.send(request.into()).await
    }

    async fn refund(&self, request: &Refund) -> Outcome {
        self.send(request.into()).await
    }

    async fn find(&self, sought: &Find) -> Finding {
        let asked = sought.clone();
        self.step(move |ledger, clock| find::find(ledger, &asked, clock.now()))
            .await
            .unwrap_or_else(|error| {
                let gateway_key = sought.gateway_key.as_str();
                tracing::error!(gateway_key, %error, "the sandbox's memory failed");
                Finding::Known(Outcome::Unknown(Unknown::GatewayError))
            })
    }
    async fn list(&self, since: DateTime<Utc>) -> Result<Vec<Listed>, ListError> {
        self.step(move |ledger, _clock| list::list(ledger, since))
            .await
            .map_err(|error| ListError::Unanswered(error.into()))
    }
}
