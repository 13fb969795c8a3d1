//! What a gateway's own list says, for whoever holds it against the database.
//!
//! It speaks of objects and not of calls: a payment, which may have been captured or canceled since
//! it was made, and a refund. Whose they are is told by the gateway key in our metadata.

use hyper::StatusCode;
use tower::BoxError;

use super::{GatewayKey, GatewayReference};
use crate::payments::money::Money;

/// Objects of one list, at most. A million is a gigabyte of answers and hours of asking; who has
/// more asks for a shorter time, several times.
pub const LIST_MAX: usize = 1_000_000;

/// An object, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub reference: GatewayReference,
    /// The key in our metadata. An object without it is somebody else's.
    pub gateway_key: Option<GatewayKey>,
    /// Nothing where it is a sum that we cannot have asked for.
    pub money: Option<Money>,
    pub state: ListedState,
}

/// What kind of object it is, and where its money is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListedState {
    /// A payment whose money is held.
    Held,
    /// A payment whose money was taken: so many minor units, where they can be counted in those.
    Taken { captured: Option<i64> },
    /// A payment that was accepted and is not decided.
    Pending,
    /// A payment that was let go.
    Canceled,
    /// A payment without an effect: refused, or never confirmed.
    NotExecuted,
    /// A refund of this payment that was made, or is under way.
    Refunded { payment: Option<GatewayReference> },
    /// A refund that came to nothing.
    NotRefunded,
}

/// Why there is no list. Part of a list is none: what is missing from it would look like lost money.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error("the gateway cannot be asked for its list")]
    Unanswered(#[source] BoxError),
    #[error("the gateway refuses to list: HTTP status {0}")]
    Refused(StatusCode),
    #[error("the gateway's list cannot be believed: {0}")]
    Malformed(String),
    #[error("the gateway lists more than {LIST_MAX} objects; ask for a shorter time")]
    TooLong,
}
