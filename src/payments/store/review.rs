//! Payments in front of a person, with what is known of them.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{db::Step, ids::PaymentId};

/// A payment in `requires_review`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewRow {
    pub merchant_id: Uuid,
    pub payment_id: Uuid,
    pub idempotency_key: String,
    pub amount: i64,
    pub currency: String,
    pub gateway: String,
    pub gateway_key: String,
    pub gateway_reference: Option<String>,
    /// When it was put here, by the clock of the service.
    pub since: Option<DateTime<Utc>>,
    /// Why: an [`Unknown`](crate::gateways::Unknown).
    pub reason: Option<String>,
    /// The record that waits for the decision; none where its key was answered before.
    pub record: Option<ReviewedRecord>,
}

/// What the record adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewedRecord {
    pub key: String,
    pub operation: String,
    pub fence: i64,
    pub request_id: String,
    pub attempts: i32,
    pub first_sent_at: Option<DateTime<Utc>>,
    pub unknown_since: Option<DateTime<Utc>>,
}

/// Lists payments in review, the oldest first; with an id, only that one.
#[derive(Clone, Copy, Debug)]
pub struct ListReviews {
    pub payment_id: Option<PaymentId>,
    pub limit: i64,
}

impl Step for ListReviews {
    const NAME: &'static str = "list_reviews";
    type Output = Vec<ReviewRow>;

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<Vec<ReviewRow>> {
        let rows = sqlx::query!(
            r#"-- list_reviews
            SELECT
                payment.merchant_id, payment.id AS payment_id, payment.idempotency_key,
                payment.amount, payment.currency, payment.gateway, payment.gateway_key,
                payment.gateway_reference,
                event.created_at AS "since?",
                event.data ->> 'review_reason' AS reason,
                record.key AS "key?",
                record.operation AS "operation?",
                record.fence AS "fence?",
                record.request_id AS "request_id?",
                record.attempts AS "attempts?",
                record.first_sent_at,
                record.unknown_since
            FROM payments AS payment
            LEFT JOIN events AS event
                ON event.merchant_id = payment.merchant_id
                AND event.payment_id = payment.id
                AND event.sequence = payment.version
            -- Whatever operation waits: a payment that is being captured has two records.
            LEFT JOIN idempotency_keys AS record
                ON record.status = 'processing'
                AND record.merchant_id = payment.merchant_id
                AND record.resource_id = payment.id
            WHERE payment.status = 'requires_review'
              AND ($1::uuid IS NULL OR payment.id = $1)
            ORDER BY payment.id
            LIMIT $2"#,
            self.payment_id.map(PaymentId::uuid),
            self.limit,
        )
        .fetch_all(connection)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| ReviewRow {
                merchant_id: row.merchant_id,
                payment_id: row.payment_id,
                idempotency_key: row.idempotency_key,
                amount: row.amount,
                currency: row.currency,
                gateway: row.gateway,
                gateway_key: row.gateway_key,
                gateway_reference: row.gateway_reference,
                since: row.since,
                reason: row.reason,
                record: (|| {
                    Some(ReviewedRecord {
                        key: row.key?,
                        operation: row.operation?,
                        fence: row.fence?,
                        request_id: row.request_id?,
                        attempts: row.attempts?,
                        first_sent_at: row.first_sent_at,
                        unknown_since: row.unknown_since,
                    })
                })(),
            })
            .collect())
    }
}
