//! What the server makes, as it is remembered. Amounts are in Stripe's units.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::gateways::sandbox::{charge::Charge, entry::PENDING_AGE, plan::Ending, request::Sum};

/// A payment intent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Intent {
    pub(super) id: String,
    /// Counts everything that was made, for the order of lists.
    pub(super) number: u64,
    /// The key that made it, for the journal.
    pub(super) gateway_key: String,
    pub(super) charge: Charge,
    pub(super) capture_method: CaptureMethod,
    pub(super) payment_method: String,
    pub(super) description: Option<String>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) state: IntentState,
    pub(super) created_at: DateTime<Utc>,
    pub(super) changed_at: DateTime<Utc>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CaptureMethod {
    Automatic,
    Manual,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub(super) enum IntentState {
    Succeeded,
    RequiresCapture,
    Processing { ending: Ending },
    Failed { code: String, message: String },
    Canceled,
}

/// A refund; it always succeeds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Refund {
    pub(super) id: String,
    pub(super) number: u64,
    pub(super) gateway_key: String,
    pub(super) intent: String,
    pub(super) sum: Sum,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) created_at: DateTime<Utc>,
}

impl Intent {
    /// How it ends, if it was processing for long enough.
    pub(super) fn ending(&self, now: DateTime<Utc>) -> Option<Ending> {
        match self.state {
            IntentState::Processing { ending } if now - self.created_at >= PENDING_AGE => {
                Some(ending)
            }
            _ => None,
        }
    }

    /// Authorised, and captured where that was asked for.
    pub(super) fn approve(&mut self) {
        let sum = self.charge.authorized.clone();
        (self.charge, self.state) = match self.capture_method {
            CaptureMethod::Automatic => (Charge::captured(sum), IntentState::Succeeded),
            CaptureMethod::Manual => (Charge::authorized(sum), IntentState::RequiresCapture),
        };
    }
}
