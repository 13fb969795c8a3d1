//! Reading payments.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::row::PaymentRow;
use crate::{
    db::Step,
    ids::{MerchantId, PaymentId},
    payments::{model::Payment, state::PaymentStatus},
};

/// Finds payments of merchants by id; those that do not exist are missing from the answer.
#[derive(Debug)]
pub struct Find<'a>(pub &'a [(MerchantId, PaymentId)]);

impl Step for Find<'_> {
    const NAME: &'static str = "find_payments";
    type Output = Vec<Payment>;

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<Vec<Payment>> {
        let merchants: Vec<Uuid> = self.0.iter().map(|(merchant, _)| merchant.uuid()).collect();
        let ids: Vec<Uuid> = self.0.iter().map(|(_, id)| id.uuid()).collect();
        sqlx::query_as!(
            PaymentRow,
            r#"-- find_payments
            SELECT
                merchant_id, id, status, amount, amount_captured, amount_refunded, currency,
                payment_method, capture_method, reference, description, customer, metadata,
                failure_code, failure_message, gateway, gateway_key, gateway_reference, version,
                created_at, updated_at
            FROM payments
            JOIN UNNEST($1::uuid[], $2::uuid[]) AS sought (merchant_id, id)
                USING (merchant_id, id)"#,
            &merchants,
            &ids,
        )
        .fetch_all(connection)
        .await?
        .into_iter()
        .map(PaymentRow::payment)
        .collect()
    }
}

/// Which payments of a merchant, and how many.
#[derive(Clone, Debug)]
pub struct Page {
    pub merchant_id: MerchantId,
    /// Only payments that are older than this one.
    pub before: Option<PaymentId>,
    pub limit: i64,
    pub status: Option<PaymentStatus>,
    pub reference: Option<String>,
    pub idempotency_key: Option<String>,
    pub created_after: Option<DateTime<Utc>>,
    pub created_before: Option<DateTime<Utc>>,
}

/// Lists payments, newest first. The order is that of the ids, which are version 7: stable while
/// others are inserted, and served by the primary key.
#[derive(Debug)]
pub struct List<'a>(pub &'a Page);

impl Step for List<'_> {
    const NAME: &'static str = "list_payments";
    type Output = Vec<Payment>;

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<Vec<Payment>> {
        let page = self.0;
        sqlx::query_as!(
            PaymentRow,
            r#"-- list_payments
            SELECT
                merchant_id, id, status, amount, amount_captured, amount_refunded, currency,
                payment_method, capture_method, reference, description, customer, metadata,
                failure_code, failure_message, gateway, gateway_key, gateway_reference, version,
                created_at, updated_at
            FROM payments
            WHERE merchant_id = $1
              AND ($2::uuid IS NULL OR id < $2)
              -- The times again as bounds of the ids, so that the primary key skips the rest.
              AND ($9::uuid IS NULL OR id >= $9)
              AND ($10::uuid IS NULL OR id < $10)
              AND ($3::text IS NULL OR status = $3)
              AND ($4::text IS NULL OR reference = $4)
              -- The key names at most one resource, for ever: used_keys has it.
              AND (
                  $5::text IS NULL
                  OR id = (
                      SELECT resource_id
                      FROM used_keys
                      WHERE merchant_id = $1
                        AND key = $5
                  )
              )
              AND ($6::timestamptz IS NULL OR created_at >= $6)
              AND ($7::timestamptz IS NULL OR created_at < $7)
            ORDER BY id DESC
            LIMIT $8"#,
            page.merchant_id.uuid(),
            page.before.map(PaymentId::uuid),
            page.status.map(PaymentStatus::as_str),
            page.reference.as_deref(),
            page.idempotency_key.as_deref(),
            page.created_after,
            page.created_before,
            page.limit,
            page.created_after.map(|at| PaymentId::lowest_at(at).uuid()),
            page.created_before
                .map(|at| PaymentId::lowest_at(at + TimeDelta::milliseconds(1)).uuid()),
        )
        .fetch_all(connection)
        .await?
        .into_iter()
        .map(PaymentRow::payment)
        .collect()
    }
}
