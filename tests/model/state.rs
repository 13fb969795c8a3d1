//! One moment of the whole system: clients, workers, database and gateway of one key.

use super::{
    gateway::Gateway,
    invariants::Invariant,
    table::{Age, Table},
};

/// Clients that share the key: one that repeats itself, and its impatient double.
pub const CLIENTS: usize = 2;

/// Requests or rescues that are worked on at the same time, in one process or in two: they share
/// nothing but the database.
pub const WORKERS: usize = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub clients: [Client; CLIENTS],
    pub workers: [Worker; WORKERS],
    pub database: Table,
    /// What a failover would leave of the database.
    pub standby: Table,
    pub gateway: Gateway,
    /// Whether a claim of the key was ever committed.
    pub claimed: bool,
    /// Whether a failover has lost a commit.
    pub lost: bool,
    /// What the first forbidden step has broken.
    pub breach: Option<Invariant>,
}

/// Sends the same request under the same key until the answer is final.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Client {
    #[default]
    Waiting,
    Asking,
    Done(Final),
}

/// The answers that end a client's retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Final {
    /// 201.
    Created,
    /// 402.
    Declined,
    /// 410.
    Expired,
}

/// The answers after which a client sends the same request again. Nothing in the state remembers
/// them: what they claim is checked where they are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interim {
    /// 202, or 409 in progress.
    Unresolved,
    /// 503: certainly nothing was executed.
    Released,
    /// 503: may have been executed.
    OutcomeUnknown,
}

/// One task that works for a client or, after the client has gone, for nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Worker {
    pub task: Task,
    pub asker: Option<usize>,
}

/// What the worker does next. Between two tasks anything may happen, so each is one statement or
/// one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Task {
    #[default]
    Idle,
    Claiming,
    /// Its claim was not answered: it looks whether it is the owner.
    Recognising(Held),
    /// It reads the record and decides.
    Looking,
    Reclaiming,
    TakingOver {
        seen: u8,
    },
    /// A successor that asks the gateway; `age` is what its take-over was told.
    Asking {
        held: Held,
        age: Age,
    },
    /// It has looked at its lease for the last time and is about to send.
    Poised {
        held: Held,
        standing: Standing,
    },
    Ending {
        held: Held,
        end: End,
    },
    /// Its own word no longer counts: it reads what is stored.
    Reading,
}

/// The right to write, as its holder remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Held {
    pub fence: u8,
    pub owner: u8,
    pub gateway_key: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Standing {
    First,
    Successor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    Settle(Verdict),
    Park,
    Review,
    Release,
}

/// What a gateway decides about a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    Approved,
    Declined,
}

impl State {
    /// An owner that nobody in the system knows: a fresh UUID.
    pub fn fresh_owner(&self) -> u8 {
        let tables = [self.database, self.standby];
        let records = tables.iter().filter_map(|table| table.record);
        let holders = self.workers.iter().filter_map(|worker| worker.task.held());
        let known = records.map(|record| record.owner);
        known
            .chain(holders.map(|held| held.owner))
            .max()
            .map_or(1, |owner| owner + 1)
    }
}

impl Task {
    pub fn held(&self) -> Option<Held> {
        match *self {
            Self::Recognising(held)
            | Self::Asking { held, .. }
            | Self::Poised { held, .. }
            | Self::Ending { held, .. } => Some(held),
            Self::Idle
            | Self::Claiming
            | Self::Looking
            | Self::Reclaiming
            | Self::TakingOver { .. }
            | Self::Reading => None,
        }
    }

    pub fn held_mut(&mut self) -> Option<&mut Held> {
        match self {
            Self::Recognising(held)
            | Self::Asking { held, .. }
            | Self::Poised { held, .. }
            | Self::Ending { held, .. } => Some(held),
            Self::Idle
            | Self::Claiming
            | Self::Looking
            | Self::Reclaiming
            | Self::TakingOver { .. }
            | Self::Reading => None,
        }
    }
}
