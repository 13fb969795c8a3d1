//! Finishes what a dead or stuck owner left, and what rests because nobody knew its outcome.
//!
//! It promises that no record needs its client: whatever was claimed is settled, or is in front of
//! a person once the gateway may have forgotten its key. It does what a client's retry does, by the
//! same functions: takes over with a higher fence, asks the gateway, settles the answer that a
//! handler would have stored. Any number of instances may rescue at once; the fence decides who
//! writes.
//!
//! It refuses to guess. It never releases a record, because its predecessor may have sent; it sends
//! again only while the work is young and the gateway remembers the key ([`perform::sending`]); it
//! never sends what is in front of a person.
//!
//! The clock of the database says what is left, and how old it is.
//!
//! [`perform::sending`]: super::perform::sending

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    acquire::{Successor, Taken, Won, take_over_left},
    finish::finish,
    operation::Operation,
    run::{Answer, RunError},
    store::ListLeft,
};
use crate::app::App;

/// How many records are rescued at once by one process. Each asks the gateway and holds no
/// connection meanwhile; a gateway that has just recovered should not meet a stampede.
const RESCUES_MAX: usize = 32;

/// How many records one round takes over: one that fails at once and is let go must not come round
/// again and again without a pause.
const ROUND_MAX: usize = 1000;

/// What the rescuer can finish.
const OPERATIONS: &[Operation] = &[Operation::PaymentsCreate];

/// The rescuer of a process. Cloning shares its slots.
#[derive(Clone, Debug)]
pub struct Rescuer {
    slots: Arc<Semaphore>,
}

impl Default for Rescuer {
    fn default() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(RESCUES_MAX)),
        }
    }
}

impl Rescuer {
    /// Takes over what is left, as slots become free, and lets tasks finish it. Answers how many
    /// records it took over.
    ///
    /// A round does not wait for its rescues, only for slots: one gateway call that hangs must not
    /// keep the rest.
    pub async fn round(&self, app: &App) -> Result<usize, RunError> {
        let mut rescued = 0;
        while rescued < ROUND_MAX {
            let mut slots = self.free_slots(app).await;
            if slots.is_empty() {
                break;
            }
            let limit = i64::try_from(slots.len()).unwrap_or(i64::MAX);
            let step = ListLeft {
                operations: OPERATIONS,
                limit,
            };
            let listed = app.database.run(&step).await;
            let left = listed.map_err(|error| RunError::NotExecuted(Some(error)))?;
            let full = slots.len() == left.len();
            for taken in take_over_left(app, &left, Successor::Rescuer).await? {
                if let (Taken::Won(won), Some(slot)) = (taken, slots.pop()) {
                    rescued += 1;
                    rescue(app, *won, slot);
                }
            }
            if !full {
                break;
            }
        }
        Ok(rescued)
    }

    /// Waits for a slot and takes all that are free; none when the process stops.
    async fn free_slots(&self, app: &App) -> Vec<OwnedSemaphorePermit> {
        let first = tokio::select! {
            biased;
            () = app.tasks.stopped() => None,
            slot = Arc::clone(&self.slots).acquire_owned() => slot.ok(),
        };
        let more = || Arc::clone(&self.slots).try_acquire_owned().ok();
        match first {
            Some(first) => std::iter::once(first)
                .chain(std::iter::from_fn(more))
                .collect(),
            None => Vec::new(),
        }
    }
}

/// Finishes in a task that shutdown waits for. One that cannot end in time is let go with all
/// other leases of the process.
fn rescue(app: &App, won: Won, slot: OwnedSemaphorePermit) {
    let task = app.clone();
    // The handle may go: the task logs what became of it, and `finish` catches its panics.
    drop(app.tasks.spawn(async move {
        let payment_id = won.payment.id;
        match finish(&task, won).await {
            Ok(Answer::Executed(response)) => {
                tracing::info!(%payment_id, status = response.status, "rescued a payment");
            }
            Ok(Answer::Known(_) | Answer::Released) => {
                tracing::debug!(%payment_id, "a payment is not decided, or somebody else has it");
            }
            Err(error) => tracing::warn!(%payment_id, %error, "a payment could not be rescued"),
        }
        drop(slot);
    }));
}
