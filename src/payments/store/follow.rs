//! Writing what became of a payment whose record is finished: the payment and its event.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;

use crate::{
    db::Step,
    ids::EventId,
    payments::{model::Payment, state::PaymentStatus},
};

/// One payment that goes on after its key was answered.
#[derive(Clone, Debug)]
pub struct FollowUp {
    /// Where the payment must still stand; its version then is one less than `payment.version`.
    pub status_before: PaymentStatus,
    /// The payment as it is from now on.
    pub payment: Payment,
    pub event_id: EventId,
    pub event_type: &'static str,
    pub event_data: Value,
}

/// Settles a payment without its record, which stays as it was answered (I7).
///
/// Nobody holds a lease for it: status and version decide, so of several that follow one payment
/// one writes. Answers whether it was this one.
#[derive(Debug)]
pub struct Follow<'a>(pub &'a FollowUp);

impl Step for Follow<'_> {
    const NAME: &'static str = "follow";
    type Output = bool;

    #[expect(clippy::too_many_lines, reason = "one statement")]
    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<bool> {
        let FollowUp {
            status_before,
            payment,
            event_id,
            event_type,
            event_data,
        } = self.0;
        let failure = payment.failure.as_ref();
        let updated_at: DateTime<Utc> = payment.updated_at;
        let written = sqlx::query_scalar!(
            r#"-- follow
            WITH locked_payment AS (
                SELECT merchant_id, id
                FROM payments
                WHERE merchant_id = $1
                  AND id = $2
                  AND status = $3
                  AND version = $4::bigint - 1
                FOR UPDATE
            ),
            -- The counter last and until the commit, as in settle.
            locked_counter AS (
                SELECT counter.merchant_id
                FROM event_counters AS counter
                WHERE counter.merchant_id IN (SELECT merchant_id FROM locked_payment)
                FOR UPDATE
            ),
            counted AS (
                UPDATE event_counters AS counter
                SET position = counter.position + 1
                FROM locked_counter
                WHERE counter.merchant_id = locked_counter.merchant_id
                RETURNING counter.merchant_id, counter.position
            ),
            updated AS (
                UPDATE payments AS payment
                SET status = $5,
                    amount_captured = $6,
                    failure_code = $7,
                    failure_message = $8,
                    gateway_reference = $9,
                    version = $4,
                    updated_at = $10
                FROM locked_payment
                JOIN counted USING (merchant_id)
                WHERE payment.merchant_id = locked_payment.merchant_id
                  AND payment.id = locked_payment.id
                  AND payment.status = $3
                  AND payment.version = $4::bigint - 1
                RETURNING payment.merchant_id, payment.id, counted.position
            ),
            told AS (
                INSERT INTO events (
                    merchant_id, position, id, type, payment_id, sequence, data, created_at
                )
                SELECT merchant_id, position, $11, $12, id, $4, $13, $10
                FROM updated
            ),
            decided AS (
                DELETE FROM pending_payments AS pending
                USING updated
                WHERE pending.merchant_id = updated.merchant_id
                  AND pending.payment_id = updated.id
            )
            SELECT count(*) AS "written!"
            FROM updated"#,
            payment.merchant_id.uuid(),
            payment.id.uuid(),
            status_before.as_str(),
            payment.version,
            payment.status.as_str(),
            payment.amount_captured,
            failure.map(|failure| failure.code.as_str()),
            failure.map(|failure| failure.message.as_str()),
            payment.gateway_reference.as_deref(),
            updated_at,
            event_id.uuid(),
            event_type,
            event_data,
        )
        .fetch_one(connection)
        .await?;
        Ok(written == 1)
    }
}
