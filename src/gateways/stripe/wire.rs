//! Stripe's documents, as far as they are read. A member that is missing or of another type makes
//! the document unreadable, which is an unknown outcome and never a default.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

/// Longer than any id of Stripe's, which promises that none is longer.
const ID_CHARS_MAX: usize = 255;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PaymentIntent {
    #[serde(deserialize_with = "id")]
    pub(super) id: String,
    #[serde(rename = "object")]
    _object: PaymentIntentTag,
    pub(super) status: String,
    pub(super) amount: i64,
    pub(super) amount_received: i64,
    pub(super) currency: String,
    pub(super) capture_method: String,
    #[serde(default)]
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) last_payment_error: Option<ApiError>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Refund {
    #[serde(deserialize_with = "id")]
    pub(super) id: String,
    #[serde(rename = "object")]
    _object: RefundTag,
    pub(super) status: String,
    pub(super) amount: i64,
    pub(super) currency: String,
    pub(super) payment_intent: Option<String>,
    #[serde(default)]
    pub(super) metadata: BTreeMap<String, String>,
}

/// A page of a search or of a list.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Page<T> {
    pub(super) data: Vec<T>,
    pub(super) has_more: bool,
}

/// A page of a list, which says that it is one.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ListPage<T> {
    #[serde(rename = "object")]
    _object: ListTag,
    pub(super) data: Vec<T>,
    pub(super) has_more: bool,
}

/// The member `object` of a list.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) enum ListTag {
    #[serde(rename = "list")]
    List,
}

/// A payment intent in a list of whoever uses the account.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ListedIntent {
    #[serde(deserialize_with = "id")]
    pub(super) id: String,
    #[serde(rename = "object")]
    _object: PaymentIntentTag,
    pub(super) created: i64,
    pub(super) status: String,
    pub(super) amount: i64,
    pub(super) amount_received: i64,
    pub(super) currency: String,
    #[serde(default)]
    pub(super) metadata: BTreeMap<String, String>,
}

/// A refund in such a list. Old ones have no status, and some no metadata; ours have both.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ListedRefund {
    #[serde(deserialize_with = "id")]
    pub(super) id: String,
    #[serde(rename = "object")]
    _object: RefundTag,
    pub(super) created: i64,
    pub(super) status: Option<String>,
    pub(super) amount: i64,
    pub(super) currency: String,
    pub(super) payment_intent: Option<String>,
    pub(super) metadata: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct ErrorDocument {
    pub(super) error: ApiError,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct ApiError {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) code: Option<String>,
    pub(super) decline_code: Option<String>,
    pub(super) message: Option<String>,
    /// Read by whoever needs it: an error is an error whatever its object looks like.
    payment_intent: Option<Value>,
}

impl ApiError {
    pub(super) fn payment_intent(&self) -> Option<PaymentIntent> {
        PaymentIntent::deserialize(self.payment_intent.as_ref()?).ok()
    }
}

/// The member `object`, which must name the type that was asked for.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) enum PaymentIntentTag {
    #[serde(rename = "payment_intent")]
    PaymentIntent,
}

/// The same of a refund.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) enum RefundTag {
    #[serde(rename = "refund")]
    Refund,
}

/// An id is what support staff look up, what later calls go by, and part of their paths: a text
/// that cannot be one makes its document unreadable.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let id = String::deserialize(deserializer)?;
    let plain = id
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if plain && (1..=ID_CHARS_MAX).contains(&id.len()) {
        Ok(id)
    } else {
        Err(D::Error::custom("an id that cannot be one"))
    }
}
