//! Payments as merchants see them. Wire types only: what is stored and sent is made here.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::problem::{self, Problem, ProblemKind};
use crate::{
    idempotency::record::StoredResponse,
    payments::{create::Presenter, model::Payment, state::PaymentStatus},
};

/// How payments are shown, for whoever stores an answer.
pub const PRESENTER: Presenter = Presenter { answer, document };

/// A payment.
#[derive(Debug, Serialize, ToSchema)]
pub struct PaymentView {
    /// `pay_…`
    #[schema(value_type = String, example = "pay_0198f3a1c0de7abc8def0123456789ab")]
    id: String,
    #[schema(value_type = String, example = "payment")]
    object: &'static str,
    /// One of `processing`, `succeeded`, `requires_capture`, `failed`, `canceled`,
    /// `requires_review`.
    #[schema(value_type = String, example = "succeeded")]
    status: &'static str,
    /// In minor units of the currency.
    #[schema(example = 1999)]
    amount: i64,
    amount_captured: i64,
    amount_refunded: i64,
    #[schema(value_type = String, example = "EUR")]
    currency: &'static str,
    #[schema(example = "pm_card_visa")]
    payment_method: String,
    #[schema(value_type = String, example = "automatic")]
    capture_method: &'static str,
    reference: Option<String>,
    description: Option<String>,
    customer: Option<String>,
    metadata: BTreeMap<String, String>,
    /// Why it failed, or null.
    failure: Option<FailureView>,
    gateway: String,
    /// What support staff look up at the gateway.
    gateway_reference: Option<String>,
    /// Grows by one with every change.
    version: i64,
    #[serde(serialize_with = "timestamp")]
    created_at: DateTime<Utc>,
    #[serde(serialize_with = "timestamp")]
    updated_at: DateTime<Utc>,
}

/// Why a payment failed.
#[derive(Debug, Serialize, ToSchema)]
pub struct FailureView {
    #[schema(example = "card-declined")]
    code: String,
    message: String,
}

/// A page of payments, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct PaymentListView {
    #[schema(value_type = String, example = "list")]
    pub object: &'static str,
    pub data: Vec<PaymentView>,
    pub has_more: bool,
    /// Pass it as `cursor` for the next page; null on the last.
    pub next_cursor: Option<String>,
}

impl From<&Payment> for PaymentView {
    fn from(payment: &Payment) -> Self {
        Self {
            id: payment.id.to_string(),
            object: "payment",
            status: payment.status.as_str(),
            amount: payment.money.amount_minor,
            amount_captured: payment.amount_captured,
            amount_refunded: payment.amount_refunded,
            currency: payment.money.currency.code(),
            payment_method: payment.payment_method.clone(),
            capture_method: payment.capture_method.as_str(),
            reference: payment.reference.clone(),
            description: payment.description.clone(),
            customer: payment.customer.clone(),
            metadata: payment.metadata.clone(),
            failure: payment.failure.as_ref().map(|failure| FailureView {
                code: failure.code.clone(),
                message: failure.message.clone(),
            }),
            gateway: payment.gateway.clone(),
            gateway_reference: payment.gateway_reference.clone(),
            version: payment.version,
            created_at: payment.created_at,
            updated_at: payment.updated_at,
        }
    }
}

/// RFC 3339 in UTC, always with six digits: the same instant has one spelling.
pub fn timestamp<S: Serializer>(at: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*at))
}

pub fn rfc3339(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// Where a payment is found.
pub fn location(payment_id: impl std::fmt::Display) -> String {
    format!("/v1/payments/{payment_id}")
}

/// The final answer to whoever asked for the payment: 201 with it, or 402 where it was declined.
fn answer(payment: &Payment, request_id: &str) -> StoredResponse {
    if payment.status == PaymentStatus::Failed {
        return declined(payment, request_id);
    }
    StoredResponse {
        status: 201,
        headers: vec![
            header("content-type", "application/json"),
            header("location", &location(payment.id)),
        ],
        body: serde_json::to_vec(&PaymentView::from(payment)).unwrap_or_default(),
    }
}

fn declined(payment: &Payment, request_id: &str) -> StoredResponse {
    let detail = match &payment.failure {
        Some(failure) => format!("{} ({})", failure.message, failure.code),
        None => "The gateway declined the payment.".to_owned(),
    };
    let document = Problem::new(ProblemKind::PaymentDeclined, detail)
        .with_payment(payment.id)
        .document(request_id);
    StoredResponse {
        status: 402,
        headers: vec![
            header("content-type", problem::MEDIA_TYPE),
            header("location", &location(payment.id)),
        ],
        body: serde_json::to_vec(&document).unwrap_or_default(),
    }
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn document(payment: &Payment) -> serde_json::Value {
    serde_json::to_value(PaymentView::from(payment)).unwrap_or_default()
}
