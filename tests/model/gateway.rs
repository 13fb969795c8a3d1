//! The gateway of the model: one effect per gateway key, for as long as it remembers the key.

use super::{
    invariants::Invariant,
    state::{State, Verdict},
};

/// The keys that it can tell apart. One would do for the protocol; the second is for its bugs.
pub const GATEWAY_KEYS: usize = 2;

/// Effects are counted up to here: a third proves no more than the second.
const EFFECTS_MAX: u8 = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gateway {
    /// What it decided for each key, while it remembers.
    pub remembers: [Option<Verdict>; GATEWAY_KEYS],
    /// The key of a send that its sender has given up, and that arrives later. One at a time.
    pub under_way: Option<usize>,
    /// What it did in truth; never forgotten.
    pub effects: u8,
    /// The key that it was first sent.
    pub first_key: Option<usize>,
}

/// What becomes of a send on its way to the gateway and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    Answered,
    /// It acted, and its answer is lost: `Unknown`.
    ReplyLost,
    /// It did nothing and says so: `NotExecuted`.
    Refused,
    /// It heard nothing, and nobody can know that: `Unknown`.
    Dropped,
    /// It has not heard it yet; the sender's time is over: `Unknown`.
    Delayed,
}

/// What the sender learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Decided(Verdict),
    NotExecuted,
    Unknown,
}

/// What becomes of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    Answered,
    /// The gateway's index lags: it finds nothing, whatever there is.
    Lags,
    /// No answer in time.
    Silent,
}

impl Gateway {
    /// Whether it has to decide when `key` arrives.
    pub fn undecided(&self, key: usize) -> bool {
        self.remembers[key].is_none()
    }

    fn arrive(&mut self, key: usize, verdict: Verdict) -> Verdict {
        if let Some(decided) = self.remembers[key] {
            return decided;
        }
        self.remembers[key] = Some(verdict);
        if verdict == Verdict::Approved {
            self.effects = (self.effects + 1).min(EFFECTS_MAX);
        }
        verdict
    }
}

impl State {
    /// A worker sends; `verdict` is what the gateway decides if it has not yet.
    pub fn send(&mut self, key: usize, delivery: Delivery, verdict: Verdict) -> Option<Outcome> {
        if !self.claimed {
            self.breached(Invariant::ClaimCommittedBeforeSend);
        }
        let gateway = &mut self.gateway;
        let one_key = *gateway.first_key.get_or_insert(key) == key;
        let outcome = match delivery {
            Delivery::Answered => Outcome::Decided(gateway.arrive(key, verdict)),
            Delivery::ReplyLost => {
                gateway.arrive(key, verdict);
                Outcome::Unknown
            }
            Delivery::Refused => Outcome::NotExecuted,
            Delivery::Dropped => Outcome::Unknown,
            Delivery::Delayed if gateway.under_way.is_some() => return None,
            Delivery::Delayed => {
                gateway.under_way = Some(key);
                Outcome::Unknown
            }
        };
        if !one_key {
            self.breached(Invariant::OneGatewayKey);
        }
        Some(outcome)
    }

    /// What was under way arrives after all.
    pub fn delayed_send_arrives(&mut self, verdict: Verdict) -> Option<()> {
        let key = self.gateway.under_way.take()?;
        self.gateway.arrive(key, verdict);
        Some(())
    }
}
