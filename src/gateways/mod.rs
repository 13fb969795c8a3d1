//! Whoever moves the money, behind one trait.
//!
//! A gateway promises one thing: calls that carry the same [`GatewayKey`] have one effect, as long
//! as the key is inside its [`Gateway::key_window`]. Everything else it says is an [`Outcome`].
//! An outcome is a value and never an error: not knowing what a gateway did is a state that the
//! protocol resolves (`idempotency`), not a failure to be reported.
//!
//! Implementations do not retry by themselves, and what they send is a pure function of the
//! request they are given: a gateway refuses a key that comes back with other parameters.

#![deny(
    clippy::as_conversions,
    clippy::expect_used,
    clippy::float_arithmetic,
    clippy::get_unwrap,
    clippy::indexing_slicing,
    clippy::let_underscore_must_use,
    clippy::map_err_ignore,
    clippy::panic,
    clippy::string_slice,
    clippy::todo,
    clippy::unimplemented,
    clippy::unused_result_ok,
    clippy::unwrap_in_result,
    clippy::unwrap_used
)]

mod http_client;
pub mod listing;
pub mod sandbox;
pub mod stripe;

use std::{fmt, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use self::listing::{ListError, Listed};
use crate::payments::{model::CaptureMethod, money::Money};

/// The idempotency key that we send to the gateway: a hash, never the client's key in the clear.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GatewayKey(String);

impl GatewayKey {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for GatewayKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the gateway calls the thing it made; support staff look it up there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayReference(pub String);

/// The calls that may have an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    Authorize,
    Capture,
    Cancel,
    Refund,
}

impl Call {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Authorize => "authorize",
            Self::Capture => "capture",
            Self::Cancel => "cancel",
            Self::Refund => "refund",
        }
    }
}

/// Authorises an amount, and captures it at once where `capture_method` is automatic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorize {
    pub gateway_key: GatewayKey,
    pub money: Money,
    pub payment_method: String,
    pub capture_method: CaptureMethod,
    pub description: Option<String>,
}

/// Takes (part of) what was authorised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    pub gateway_key: GatewayKey,
    pub authorization: GatewayReference,
    pub money: Money,
}

/// Lets an authorisation go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancel {
    pub gateway_key: GatewayKey,
    pub authorization: GatewayReference,
}

/// Gives back (part of) what was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refund {
    pub gateway_key: GatewayKey,
    pub charge: GatewayReference,
    pub money: Money,
}

/// What is looked for: the effect of one call under one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Find {
    pub call: Call,
    pub gateway_key: GatewayKey,
    /// The payment that the call made or was about, where its name is known. It is read by that,
    /// which no search has to have caught up with.
    pub reference: Option<GatewayReference>,
}

/// What the gateway did, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did what was asked.
    Approved { reference: GatewayReference },
    /// It refused for good: nothing moved, and nothing will under this key.
    Declined(Decline),
    /// It accepted and decides later. An answer, not a doubt.
    Pending { reference: GatewayReference },
    /// This one send certainly had no effect. It says nothing about earlier sends of the key.
    NotExecuted(NotExecuted),
    /// It may have had an effect.
    Unknown(Unknown),
}

/// Why a gateway refused, in its words made safe for storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decline {
    /// Stable, kebab-case: `card-declined`, `insufficient-funds`.
    pub code: String,
    pub message: String,
    pub reference: Option<GatewayReference>,
}

/// Why it is certain that a send had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotExecuted {
    /// No connection came about, so no byte was sent.
    Unreachable,
    /// The gateway said that it did nothing (maintenance, rate limit before processing).
    Refused,
}

/// Why it is not known what a send did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// No answer within the time allowed.
    Timeout,
    /// The connection broke after the first byte was sent.
    LostReply,
    /// A server error after the request had arrived.
    GatewayError,
    /// The server error that the gateway keeps as the key's answer: each further send of the key
    /// gets it again and does nothing, so only a look-up can tell what the first one did.
    ErrorReplayed,
    /// The gateway is still busy with this key.
    InUse,
    /// A look-up did not find the key, which proves nothing, and it may not be sent again.
    NotFound,
    /// The gateway knows this key with other parameters; a person must look.
    ParametersDiffer,
    /// The gateway reports another amount or currency than was asked; a person must look.
    AmountDiffers,
    /// The gateway may have forgotten the key, so it cannot be sent again; a person must look.
    KeyWindowOver,
    /// The record was claimed for another gateway than the one configured; a person must look.
    GatewayChanged,
}

impl Unknown {
    /// Whether waiting cannot resolve it: the payment goes to `requires_review`.
    pub const fn requires_review(self) -> bool {
        match self {
            Self::ParametersDiffer
            | Self::AmountDiffers
            | Self::KeyWindowOver
            | Self::GatewayChanged => true,
            Self::Timeout
            | Self::LostReply
            | Self::GatewayError
            | Self::ErrorReplayed
            | Self::InUse
            | Self::NotFound => false,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::LostReply => "lost-reply",
            Self::GatewayError => "gateway-error",
            Self::ErrorReplayed => "error-replayed",
            Self::InUse => "in-use",
            Self::NotFound => "not-found",
            Self::ParametersDiffer => "parameters-differ",
            Self::AmountDiffers => "amount-differs",
            Self::KeyWindowOver => "key-window-over",
            Self::GatewayChanged => "gateway-changed",
        }
    }
}

/// What a look-up found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The key is known; `Outcome::Unknown` where it is not decided, or the answer was lost.
    Known(Outcome),
    /// Not found, or found undone. Proves nothing: searches lag, and a send may be under way.
    Absent,
}

/// Moves money once per gateway key.
#[async_trait]
pub trait Gateway: fmt::Debug + Send + Sync {
    /// The name kept in every record: a record is only sent to the gateway it was claimed for.
    fn name(&self) -> &'static str;

    /// For how long the gateway remembers a key.
    fn key_window(&self) -> Duration;

    async fn authorize(&self, request: &Authorize) -> Outcome;
    async fn capture(&self, request: &Capture) -> Outcome;
    async fn cancel(&self, request: &Cancel) -> Outcome;
    async fn refund(&self, request: &Refund) -> Outcome;
    async fn find(&self, sought: &Find) -> Finding;

    /// Everything that was made since then, by the gateway's clock, and how it stands now. All of
    /// it or an error.
    async fn list(&self, since: DateTime<Utc>) -> Result<Vec<Listed>, ListError>;
}
