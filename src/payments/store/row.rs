//! The row of a payment as the database gives it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    gateways::GatewayKey,
    ids::{MerchantId, PaymentId},
    payments::{
        currency::Currency,
        model::{Failure, Payment},
        money::Money,
    },
};

/// A row of `payments`.
#[derive(Debug)]
pub(super) struct PaymentRow {
    pub(super) merchant_id: Uuid,
    pub(super) id: Uuid,
    pub(super) status: String,
    pub(super) amount: i64,
    pub(super) amount_captured: i64,
    pub(super) amount_refunded: i64,
    pub(super) currency: String,
    pub(super) payment_method: String,
    pub(super) capture_method: String,
    pub(super) reference: Option<String>,
    pub(super) description: Option<String>,
    pub(super) customer: Option<String>,
    pub(super) metadata: Value,
    pub(super) failure_code: Option<String>,
    pub(super) failure_message: Option<String>,
    pub(super) gateway: String,
    pub(super) gateway_key: String,
    pub(super) gateway_reference: Option<String>,
    pub(super) version: i64,
    pub(super) created_at: DateTime<Utc>,
    pub(super) updated_at: DateTime<Utc>,
}

impl PaymentRow {
    /// # Errors
    ///
    /// When a column holds what its CHECK excludes, or a currency that this version does not know:
    /// a payment that is read wrongly is worse than one that cannot be read.
    pub(super) fn payment(self) -> sqlx::Result<Payment> {
        let currency = Currency::from_code(&self.currency).ok_or_else(|| decode("currency"))?;
        let metadata: BTreeMap<String, String> =
            serde_json::from_value(self.metadata).map_err(|_refused| decode("metadata"))?;
        Ok(Payment {
            merchant_id: MerchantId::from_uuid(self.merchant_id),
            id: PaymentId::from_uuid(self.id),
            status: self.status.parse().map_err(|_unknown| decode("status"))?,
            money: Money {
                amount_minor: self.amount,
                currency,
            },
            amount_captured: self.amount_captured,
            amount_refunded: self.amount_refunded,
            payment_method: self.payment_method,
            capture_method: self
                .capture_method
                .parse()
                .map_err(|_unknown| decode("capture_method"))?,
            reference: self.reference,
            description: self.description,
            customer: self.customer,
            metadata,
            failure: self
                .failure_code
                .zip(self.failure_message)
                .map(|(code, message)| Failure { code, message }),
            gateway: self.gateway,
            gateway_key: GatewayKey::new(self.gateway_key),
            gateway_reference: self.gateway_reference,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

fn decode(column: &'static str) -> sqlx::Error {
    sqlx::Error::Decode(format!("payments.{column} holds what this version cannot read").into())
}
