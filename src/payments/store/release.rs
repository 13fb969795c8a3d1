//! Giving a key back under which certainly nothing was executed.

use std::time::Duration;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    db::Step,
    idempotency::{
        record::Acquired,
        store::{Holders, interval},
    },
};

/// Releases records and deletes their payments, which never left the house. Answers with the
/// owners whose record was released.
///
/// Only for an owner that got the key by a claim and whose every send ended `NotExecuted`; nothing
/// here can check that.
#[derive(Debug)]
pub struct Release<'a> {
    pub held: &'a [Acquired],
    /// For how long the same request may claim the key again.
    pub ttl: Duration,
}

impl Step for Release<'_> {
    const NAME: &'static str = "release";
    type Output = Vec<Uuid>;

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<Vec<Uuid>> {
        let holders = Holders::of(self.held);
        sqlx::query_scalar!(
            r#"-- release
            WITH holder AS (
                SELECT *
                FROM UNNEST($1::uuid[], $2::text[], $3::bigint[], $4::uuid[])
                    AS holder (merchant_id, key, fence, owner)
            ),
            locked_record AS (
                SELECT record.merchant_id, record.key, record.resource_id, record.owner
                FROM idempotency_keys AS record
                JOIN holder USING (merchant_id, key)
                WHERE record.status = 'processing'
                  AND record.fence = holder.fence
                  AND record.owner = holder.owner
                  AND record.unknown_since IS NULL
                ORDER BY record.merchant_id, record.key
                FOR UPDATE OF record
            ),
            locked_payment AS (
                SELECT payment.merchant_id, payment.id, locked_record.key, locked_record.owner
                FROM payments AS payment
                JOIN locked_record
                    ON locked_record.merchant_id = payment.merchant_id
                    AND locked_record.resource_id = payment.id
                WHERE payment.status = 'processing'
                  AND payment.version = 0
                ORDER BY payment.merchant_id, payment.id
                FOR UPDATE OF payment
            ),
            deleted AS (
                DELETE FROM payments AS payment
                USING locked_payment
                WHERE payment.merchant_id = locked_payment.merchant_id
                  AND payment.id = locked_payment.id
                  AND payment.status = 'processing'
                  AND payment.version = 0
                RETURNING payment.merchant_id, locked_payment.key, locked_payment.owner
            )
            UPDATE idempotency_keys AS record
            SET status = 'failed',
                retryable = true,
                first_sent_at = NULL,
                lease_expires_at = NULL,
                completed_at = now(),
                expires_at = now() + $5::interval
            FROM deleted
            WHERE record.merchant_id = deleted.merchant_id
              AND record.key = deleted.key
              AND record.status = 'processing'
              AND record.owner = deleted.owner
            RETURNING record.owner"#,
            &holders.merchants,
            &holders.keys,
            &holders.fences,
            &holders.owners,
            interval(self.ttl),
        )
        .fetch_all(connection)
        .await
    }
}
