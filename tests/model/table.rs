//! What the database holds of the key.

use super::state::{Held, Verdict};

/// The owner of a record that rests: a fresh UUID that is told to nobody.
pub const NOBODY: u8 = 0;

/// `used_keys` and `idempotency_keys`, for the one key; a payment goes with its record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Table {
    pub used: bool,
    pub record: Option<Record>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    pub fence: u8,
    pub owner: u8,
    pub gateway_key: usize,
    pub stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    Processing(Processing),
    /// `completed` or `failed`, replayed until it has expired.
    Finished {
        verdict: Verdict,
        expired: bool,
    },
    Released,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Processing {
    pub lease: Lease,
    pub doubt: Doubt,
    pub age: Age,
}

/// The lease of a holder, or the rest of a parked record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lease {
    Valid,
    Expired,
}

/// What is not known about the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doubt {
    None,
    /// `unknown_since` is set.
    Unknown,
    /// The payment is in `requires_review` as well.
    Review,
}

/// How long ago `first_sent_at` was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Age {
    /// The gateway certainly remembers what it heard since.
    InWindow,
    /// The key window is over, but for its margin.
    AtMargin,
}

impl Table {
    pub fn processing(&mut self) -> Option<&mut Processing> {
        match &mut self.record.as_mut()?.stage {
            Stage::Processing(processing) => Some(processing),
            Stage::Finished { .. } | Stage::Released => None,
        }
    }

    /// Whether the record is in processing and this is its holder.
    pub fn is_held_by(&self, held: Held) -> bool {
        self.record.is_some_and(|record| {
            matches!(record.stage, Stage::Processing(_))
                && (record.fence, record.owner) == (held.fence, held.owner)
        })
    }
}
