//! Application time, injected so that tests can move it.
//!
//! Leases and expiries are never judged by it: those belong to the database's `now()`, which all
//! instances share. This clock dates payments and answers.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

/// Where application time comes from.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time now, in whole microseconds: what PostgreSQL can store and give back unchanged.
    fn now(&self) -> DateTime<Utc>;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that may read the machine's clock"
    )]
    fn now(&self) -> DateTime<Utc> {
        Utc::now().trunc_subsecs(6)
    }
}

/// A clock that stands still until it is told to move.
#[derive(Clone, Debug)]
pub struct MockClock(Arc<Mutex<DateTime<Utc>>>);

impl MockClock {
    pub fn at(now: DateTime<Utc>) -> Self {
        Self(Arc::new(Mutex::new(now.trunc_subsecs(6))))
    }

    pub fn advance(&self, by: TimeDelta) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for MockClock {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
