//! What one send does: perhaps wait, do the deed, perhaps wait again, answer or not.

use std::{future, time::Duration};

use serde::{Deserialize, Serialize};

use crate::gateways::{NotExecuted, Outcome, Unknown};

/// Why the sandbox refuses for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    pub(super) code: &'static str,
    pub(super) message: &'static str,
}

impl Reason {
    pub(super) const fn new(code: &'static str, message: &'static str) -> Self {
        Self { code, message }
    }
}

/// A wait that is part of the behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    None,
    For(Duration),
    /// Until the caller gives up.
    Forever,
}

impl Pause {
    pub(super) async fn pass(self) {
        match self {
            Self::None => {}
            Self::For(delay) => tokio::time::sleep(delay).await,
            Self::Forever => future::pending().await,
        }
    }
}

/// How a pending payment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ending {
    Succeeds,
    Fails,
}

/// What a send does to a key that is not decided yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Approve,
    Decline(Reason),
    Pend(Ending),
    /// Nothing, and says so.
    Refuse,
    /// Nothing, and does not say so.
    Break,
}

impl Deed {
    /// The answer of a send that leaves its key undecided.
    pub(super) const fn undecided(self) -> Outcome {
        match self {
            Self::Refuse => Outcome::NotExecuted(NotExecuted::Refused),
            Self::Approve | Self::Decline(_) | Self::Pend(_) | Self::Break => {
                Outcome::Unknown(Unknown::GatewayError)
            }
        }
    }
}

/// Whether the caller gets to hear the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Outcome,
    ServerError,
}

impl Reply {
    pub(super) fn of(self, outcome: Outcome) -> Outcome {
        match self {
            Self::Outcome => outcome,
            Self::ServerError => Outcome::Unknown(Unknown::GatewayError),
        }
    }
}

/// What one send does, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) before: Pause,
    pub(super) deed: Deed,
    pub(super) after: Pause,
    pub(super) reply: Reply,
}

impl Plan {
    /// Does it at once and says so.
    pub(super) const fn prompt(deed: Deed) -> Self {
        Self {
            before: Pause::None,
            deed,
            after: Pause::None,
            reply: Reply::Outcome,
        }
    }

    pub(super) const fn begins_with_a_pause(&self) -> bool {
        !matches!(self.before, Pause::None)
    }
}
