//! What labels may say.

use crate::gateways::{Call, Outcome};

use super::declared::LabelSet;

/// Routes that match nothing share one label: paths that clients make up are unbounded.
pub(super) const ROUTE_UNMATCHED: &str = "unmatched";

pub(super) const ROUTE: LabelSet = ("route", &[ROUTE_UNMATCHED]);
pub(super) const METHOD: LabelSet = ("method", &["GET"]);
pub(super) const STATUS: LabelSet = ("status", &["404"]);
/// Worker names come with the workers, which register themselves.
pub(super) const WORKER: LabelSet = ("worker", &[]);
pub(super) const CONNECTION_STATE: LabelSet = ("state", &["idle", "used"]);
pub(super) const GATEWAY_CALL: LabelSet = (
    "call",
    &[
        Call::Authorize.as_str(),
        Call::Capture.as_str(),
        Call::Cancel.as_str(),
        Call::Refund.as_str(),
    ],
);

/// An enum whose variants are the values of one label, all of them registered at zero.
macro_rules! label {
    (
        $(#[$doc:meta])* $name:ident, $constant:ident = $label:literal {
            $($(#[$variant_doc:meta])* $variant:ident => $text:literal,)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        pub(super) const $constant: LabelSet = ($label, &[$($text),+]);
    };
}

label! {
    /// What an idempotency key led to.
    KeyUse, KEY_USE = "outcome" {
        Executed => "executed",
        Replayed => "replayed",
        InProgress => "in_progress",
        Mismatch => "mismatch",
        Expired => "expired",
        Missing => "missing",
        Invalid => "invalid",
    }
}

label! {
    /// What is known of a gateway call's effect.
    GatewayOutcome, GATEWAY_OUTCOME = "outcome" {
        Approved => "approved",
        Declined => "declined",
        Pending => "pending",
        NotExecuted => "not_executed",
        Unknown => "unknown",
    }
}

label! {
    /// The status that a payment got when it was settled.
    SettledStatus, SETTLED_STATUS = "status" {
        /// The gateway accepted and decides later.
        Processing => "processing",
        Succeeded => "succeeded",
        RequiresCapture => "requires_capture",
        Failed => "failed",
        Canceled => "canceled",
        RequiresReview => "requires_review",
    }
}

label! {
    /// Why a database step is done again, as SQLSTATE.
    Retried, RETRIED = "sqlstate" {
        SerializationFailure => "40001",
        DeadlockDetected => "40P01",
    }
}

impl From<&Outcome> for GatewayOutcome {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Approved { .. } => Self::Approved,
            Outcome::Declined(_) => Self::Declined,
            Outcome::Pending { .. } => Self::Pending,
            Outcome::NotExecuted(_) => Self::NotExecuted,
            Outcome::Unknown(_) => Self::Unknown,
        }
    }
}

/// Methods that nobody defined share one label: a client can make up any number of them.
pub(super) fn method(text: &str) -> &'static str {
    const METHODS: [&str; 9] = [
        "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT",
    ];
    METHODS
        .into_iter()
        .find(|method| *method == text)
        .unwrap_or("other")
}
