//! The nouns of a payment.

use std::{collections::BTreeMap, fmt, str::FromStr};

use chrono::{DateTime, Utc};

use super::{money::Money, state::PaymentStatus};
use crate::{
    gateways::GatewayKey,
    ids::{MerchantId, PaymentId},
};

/// A payment as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    pub merchant_id: MerchantId,
    pub id: PaymentId,
    pub status: PaymentStatus,
    pub money: Money,
    pub amount_captured: i64,
    pub amount_refunded: i64,
    pub payment_method: String,
    pub capture_method: CaptureMethod,
    pub reference: Option<String>,
    pub description: Option<String>,
    pub customer: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub failure: Option<Failure>,
    pub gateway: String,
    pub gateway_key: GatewayKey,
    pub gateway_reference: Option<String>,
    /// Grows by one with every settle.
    pub version: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Why a payment failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Stable, kebab-case.
    pub code: String,
    /// For people, in the words of the gateway made safe.
    pub message: String,
}

/// When the money is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureMethod {
    /// At once, with the authorisation.
    Automatic,
    /// Later, by `payments.capture`.
    Manual,
}

impl CaptureMethod {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::Manual => "manual",
        }
    }
}

impl fmt::Display for CaptureMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no value of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a known value")]
pub struct UnknownValue;

impl FromStr for CaptureMethod {
    type Err = UnknownValue;

    fn from_str(text: &str) -> Result<Self, UnknownValue> {
        match text {
            "automatic" => Ok(Self::Automatic),
            "manual" => Ok(Self::Manual),
            _ => Err(UnknownValue),
        }
    }
}
