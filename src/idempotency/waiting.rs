//! Requests that wait for another one with their key.
//!
//! A waiter holds no connection. It is woken at once when the first request ends in this process;
//! for one that ends elsewhere, one statement per process looks at all keys that are waited for,
//! every [`LOOK_INTERVAL`], and only while there are any. LISTEN and NOTIFY would be no better: a
//! NOTIFY takes a lock of the whole server until after the commit.
//!
//! Waking is a hint. The waiter reads the record and decides anew, so one that is woken for nothing
//! waits again, and one that missed its waking is woken by the next look.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};

use super::{
    key::IdempotencyKey,
    record::{RecordState, Sighting},
    store::Read,
};
use crate::{app::App, db::DbError, ids::MerchantId, lifecycle::Tasks};

/// How late a waiter learns of an end in another process, at most.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// After an error, before looking again: the database is away.
pub const RESTART_INTERVAL: Duration = Duration::from_millis(200);

/// Keys of one statement. More are looked at in several.
const KEYS_PER_LOOK: usize = 500;

type Name = (MerchantId, IdempotencyKey);

/// Everybody who waits in this process. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    keys: Arc<Mutex<BTreeMap<Name, Waiters>>>,
    begun: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Waiters {
    count: usize,
    woken: Arc<Notify>,
}

/// One waiter; gone from the list when it is dropped.
#[derive(Debug)]
struct Place<'a> {
    waiting: &'a Waiting,
    name: Name,
}

impl Waiting {
    /// Waits until there may be news of the key, at most until `deadline` or shutdown.
    pub async fn news(
        &self,
        tasks: &Tasks,
        merchant_id: MerchantId,
        key: &IdempotencyKey,
        deadline: Instant,
    ) {
        let name = (merchant_id, key.clone());
        let woken = self.enter(name.clone());
        let _place = Place {
            waiting: self,
            name,
        };
        self.begun.notify_one();
        tokio::select! {
            () = woken.notified() => {}
            () = sleep_until(deadline) => {}
            () = tasks.stopped() => {}
        }
    }

    /// Wakes whoever waits for the key.
    pub fn wake(&self, merchant_id: MerchantId, key: &IdempotencyKey) {
        if let Some(waiters) = self.lock().get(&(merchant_id, key.clone())) {
            waiters.woken.notify_waiters();
        }
    }

    /// Looks at what is waited for, until an error or until the process is asked to stop.
    pub async fn look_out(&self, app: &App) -> Result<(), DbError> {
        while !app.tasks.stopping() {
            if self.lock().is_empty() {
                tokio::select! {
                    () = self.begun.notified() => {}
                    () = app.tasks.stopped() => return Ok(()),
                }
            }
            sleep(LOOK_INTERVAL).await;
            let names = self.names();
            for names in names.chunks(KEYS_PER_LOOK) {
                self.look(app, names).await?;
            }
        }
        Ok(())
    }

    async fn look(&self, app: &App, names: &[Name]) -> Result<(), DbError> {
        let sightings = app.database.run(&Read(names)).await?;
        for ((merchant_id, key), sighting) in names.iter().zip(sightings) {
            if !is_held(&sighting) {
                self.wake(*merchant_id, key);
            }
        }
        Ok(())
    }

    fn enter(&self, name: Name) -> Arc<Notify> {
        let mut keys = self.lock();
        let waiters = keys.entry(name).or_default();
        waiters.count += 1;
        Arc::clone(&waiters.woken)
    }

    fn names(&self) -> Vec<Name> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Waiters>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut keys = self.waiting.lock();
        if let Some(waiters) = keys.get_mut(&self.name) {
            waiters.count -= 1;
            if waiters.count == 0 {
                keys.remove(&self.name);
            }
        }
    }
}

fn is_held(sighting: &Sighting) -> bool {
    match sighting {
        Sighting::Present(record) => matches!(record.state, RecordState::Held { .. }),
        Sighting::Absent | Sighting::Deleted { .. } => false,
    }
}
