//! When to ask the gateway again about payments that it has accepted and not decided.

use std::time::Duration;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    db::Step,
    idempotency::store::interval,
    ids::{MerchantId, PaymentId},
};

/// From the answer that a payment is pending to the first poll: webhooks usually come sooner.
pub(super) const FIRST_POLL_AFTER: Duration = Duration::from_mins(1);

/// The longest pause between two polls. Bank transfers take days, and an hour late is early.
const POLL_PAUSE_MAX: Duration = Duration::from_hours(1);

/// A payment that is asked about now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub merchant_id: MerchantId,
    pub payment_id: PaymentId,
}

/// Takes payments that are due, the oldest first, and dates their next poll: a minute, doubled
/// with each poll, at most an hour.
///
/// The date is moved before the gateway is asked, so that other instances pass by; whoever dies
/// meanwhile has delayed a poll and nothing else.
#[derive(Clone, Copy, Debug)]
pub struct TakeDue {
    pub limit: i64,
}

impl Step for TakeDue {
    const NAME: &'static str = "take_due";
    type Output = Vec<Due>;

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<Vec<Due>> {
        let rows = sqlx::query!(
            r#"-- take_due
            WITH due AS (
                SELECT merchant_id, payment_id
                FROM pending_payments
                WHERE next_poll_at <= now()
                ORDER BY next_poll_at
                LIMIT $1
                FOR UPDATE SKIP LOCKED
            )
            UPDATE pending_payments AS pending
            SET polls = pending.polls + 1,
                -- Ten doublings exceed every limit; more could overflow the interval.
                next_poll_at = now()
                    + LEAST($2::interval * (2 ^ LEAST(pending.polls, 10)), $3::interval)
            FROM due
            WHERE pending.merchant_id = due.merchant_id
              AND pending.payment_id = due.payment_id
            RETURNING pending.merchant_id, pending.payment_id"#,
            self.limit,
            interval(FIRST_POLL_AFTER),
            interval(POLL_PAUSE_MAX),
        )
        .fetch_all(connection)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| Due {
                merchant_id: MerchantId::from_uuid(row.merchant_id),
                payment_id: PaymentId::from_uuid(row.payment_id),
            })
            .collect())
    }
}

/// Forgets payments that somebody else has decided, a webhook for example.
#[derive(Debug)]
pub struct DropPending<'a>(pub &'a [Due]);

impl Step for DropPending<'_> {
    const NAME: &'static str = "drop_pending";
    type Output = u64;

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<u64> {
        let merchants: Vec<Uuid> = self.0.iter().map(|due| due.merchant_id.uuid()).collect();
        let payments: Vec<Uuid> = self.0.iter().map(|due| due.payment_id.uuid()).collect();
        let dropped = sqlx::query!(
            r#"-- drop_pending
            DELETE FROM pending_payments AS pending
            USING UNNEST($1::uuid[], $2::uuid[]) AS sought (merchant_id, payment_id),
                payments AS payment
            WHERE pending.merchant_id = sought.merchant_id
              AND pending.payment_id = sought.payment_id
              AND payment.merchant_id = pending.merchant_id
              AND payment.id = pending.payment_id
              AND payment.status <> 'processing'"#,
            &merchants,
            &payments,
        )
        .execute(connection)
        .await?;
        Ok(dropped.rows_affected())
    }
}
