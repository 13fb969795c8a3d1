//! What the sandbox remembers of one gateway key.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::{
    charge::Charge,
    journal::Call,
    plan::{Ending, Reason},
    request::{Name, Request},
};
use crate::gateways::{Decline, GatewayReference, Outcome};

/// From what age on a look-up decides a pending payment. Long enough that the service stores and
/// answers `processing` first.
pub(super) const PENDING_AGE: TimeDelta = TimeDelta::seconds(2);

/// A gateway key: who sent what, how often, and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    /// For whoever reads the file; decisions need only the fingerprint.
    pub(super) request: Option<Box<Request>>,
    fingerprint: String,
    pub(super) call: Call,
    /// Sends that found the key undecided. Survives a restart, because faults count sends.
    pub(super) sends: u32,
    state: State,
    /// The money of an authorisation.
    pub(super) charge: Option<Charge>,
    /// The authorisation that a capture took from.
    pub(super) authorization: Option<Name>,
    /// When the key was first sent. Not known of files that an earlier version wrote.
    #[serde(default)]
    pub(super) made_at: Option<DateTime<Utc>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
enum State {
    /// Sent, and so far without any effect.
    Undecided,
    Approved,
    Declined {
        code: String,
        message: String,
    },
    Pending {
        since: DateTime<Utc>,
        ending: Ending,
    },
}

impl Entry {
    pub(super) fn new(request: &Request, now: DateTime<Utc>) -> serde_json::Result<Self> {
        Ok(Self {
            request: Some(Box::new(request.clone())),
            fingerprint: request.fingerprint()?,
            call: request.call(),
            sends: 0,
            state: State::Undecided,
            charge: None,
            authorization: None,
            made_at: Some(now),
        })
    }

    /// Whether the key was sent with these parameters.
    pub(super) fn is_of(&self, request: &Request) -> serde_json::Result<bool> {
        Ok(self.fingerprint == request.fingerprint()?)
    }

    /// What is answered to this key from now on; nothing while it is undecided.
    pub(super) fn outcome(&self, name: &Name) -> Option<Outcome> {
        let reference = GatewayReference(name.reference(self.call));
        match &self.state {
            State::Undecided => None,
            State::Approved => Some(Outcome::Approved { reference }),
            State::Pending { .. } => Some(Outcome::Pending { reference }),
            State::Declined { code, message } => Some(Outcome::Declined(Decline {
                code: code.clone(),
                message: message.clone(),
                // Only an authorisation makes an object when it is refused.
                reference: (self.call == Call::Authorize).then_some(reference),
            })),
        }
    }

    pub(super) fn approve(&mut self) {
        self.state = State::Approved;
    }

    pub(super) fn decline(&mut self, reason: Reason) {
        self.state = State::Declined {
            code: reason.code.to_owned(),
            message: reason.message.to_owned(),
        };
    }

    pub(super) fn pend(&mut self, ending: Ending, since: DateTime<Utc>) {
        self.state = State::Pending { since, ending };
    }

    pub(super) fn is_approved(&self) -> bool {
        self.state == State::Approved
    }

    /// How a pending payment ends, once it is old enough. A clock that is set back only delays it.
    pub(super) fn ending(&self, now: DateTime<Utc>) -> Option<Ending> {
        match self.state {
            State::Pending { since, ending } if now - since >= PENDING_AGE => Some(ending),
            State::Pending { .. } | State::Undecided | State::Approved | State::Declined { .. } => {
                None
            }
        }
    }
}
