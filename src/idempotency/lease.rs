//! How long the holder of a claim may trust itself.
//!
//! The database judges leases by its own clock. A holder must stop earlier than that, and cannot
//! ask each time: so it trusts itself until `sent + ttl − margin`, where `sent` is when the claim
//! or the last renewal that came back was *sent*, by the monotonic clock. A renewal that was slow
//! does not stretch it. Past that point no new step starts and nothing is written; whatever is
//! written all the same meets the fence.
//!
//! One task per process renews all leases held, in one statement and on a connection of its own:
//! behind payments that wait for the pool it would lose the leases of those very payments. A lease that is dropped, also by
//! a panic, leaves the list and is renewed no more.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use uuid::Uuid;

use super::{record::Acquired, store::Renew};
use crate::{
    db::{Database, DbError},
    seeded::{Bug, seeded},
    telemetry::metrics,
};

/// Renewals per lease: one may be lost, and a second, before the lease is.
const RENEWALS_PER_LEASE: u32 = 4;

/// The part of a lease in which a holder no longer trusts itself, for clocks that do not run at
/// the same rate and for the statement that is on its way.
const MARGIN_PARTS: u32 = 8;

/// All leases that this process holds. Cloning shares them.
#[derive(Clone, Debug)]
pub struct LeaseKeeper {
    held: Arc<Mutex<BTreeMap<Uuid, Held>>>,
    ttl: Duration,
}

#[derive(Clone, Debug)]
struct Held {
    acquired: Acquired,
    trusted_until: Instant,
}

/// A lease that is renewed as long as it lives.
#[derive(Debug)]
pub struct Lease {
    keeper: LeaseKeeper,
    acquired: Acquired,
}

impl LeaseKeeper {
    pub fn new(ttl: Duration) -> Self {
        Self {
            held: Arc::default(),
            ttl,
        }
    }

    pub const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// How often [`renew`](Self::renew) is to be called.
    pub fn heartbeat(&self) -> Duration {
        self.ttl / RENEWALS_PER_LEASE
    }

    /// Takes care of what was acquired by a statement that was sent at `sent`.
    pub fn hold(&self, acquired: Acquired, sent: Instant) -> Lease {
        let held = Held {
            acquired: acquired.clone(),
            trusted_until: self.trust(sent),
        };
        self.lock().insert(acquired.owner, held);
        Lease {
            keeper: self.clone(),
            acquired,
        }
    }

    /// Renews all leases held, once. An answer that comes when nobody trusts them any more is not
    /// waited for; the next renewal asks again.
    pub async fn renew(&self, database: &Database) -> Result<(), DbError> {
        let held: Vec<Acquired> = self
            .lock()
            .values()
            .map(|held| held.acquired.clone())
            .collect();
        if held.is_empty() || seeded(Bug::LeaseNotRenewed) {
            return Ok(());
        }
        let sent = Instant::now();
        let renewed = database
            .run_until(
                &Renew {
                    held: &held,
                    lease_ttl: self.ttl,
                },
                self.trust(sent),
            )
            .await?;
        let mut list = self.lock();
        for owner in renewed {
            if let Some(held) = list.get_mut(&owner) {
                held.trusted_until = self.trust(sent);
            }
        }
        Ok(())
    }

    /// What is held now, for letting go at shutdown.
    pub fn held(&self) -> Vec<Acquired> {
        self.lock()
            .values()
            .map(|held| held.acquired.clone())
            .collect()
    }

    fn trust(&self, sent: Instant) -> Instant {
        sent + self.ttl - self.ttl / MARGIN_PARTS
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Uuid, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    pub const fn acquired(&self) -> &Acquired {
        &self.acquired
    }

    /// Whether a new step may start. Counted once when it is not.
    pub fn trusted(&self) -> bool {
        let trusted_until = self.trusted_until();
        let trusted = trusted_until.is_some_and(|until| Instant::now() < until);
        if !trusted && trusted_until.is_some() {
            self.keeper.lock().remove(&self.acquired.owner);
            metrics::lease_lost();
        }
        trusted
    }

    /// Until when a database step of the holder may wait for its answer.
    pub fn trusted_until(&self) -> Option<Instant> {
        self.keeper
            .lock()
            .get(&self.acquired.owner)
            .map(|held| held.trusted_until)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.keeper.lock().remove(&self.acquired.owner);
    }
}
