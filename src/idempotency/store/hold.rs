//! What a holder may write about its lease.

use std::time::Duration;

use sqlx::{PgConnection, postgres::types::PgInterval};
use uuid::Uuid;

use super::{Holders, interval};
use crate::{db::Step, idempotency::record::Acquired};

/// Renews leases: exactly those that are still held by who asks. A record that was parked or let go
/// meanwhile has another owner.
#[derive(Debug)]
pub struct Renew<'a> {
    pub held: &'a [Acquired],
    pub lease_ttl: Duration,
}

impl Step for Renew<'_> {
    const NAME: &'static str = "renew";
    /// The owners whose lease was renewed.
    type Output = Vec<Uuid>;

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<Vec<Uuid>> {
        let holders = Holders::of(self.held);
        sqlx::query_scalar!(
            r#"-- renew
            WITH holder AS (
                SELECT *
                FROM UNNEST($1::uuid[], $2::text[], $3::bigint[], $4::uuid[])
                    AS holder (merchant_id, key, fence, owner)
            ),
            -- A row that somebody has locked is being settled or taken over: its answer comes
            -- from there, and one busy row must not keep the leases of all others from renewal.
            locked AS (
                SELECT record.merchant_id, record.key
                FROM idempotency_keys AS record
                JOIN holder USING (merchant_id, key)
                WHERE record.status = 'processing'
                  AND record.fence = holder.fence
                  AND record.owner = holder.owner
                ORDER BY record.merchant_id, record.key
                FOR UPDATE OF record SKIP LOCKED
            )
            UPDATE idempotency_keys AS record
            SET lease_expires_at = now() + $5::interval
            FROM locked
            JOIN holder USING (merchant_id, key)
            WHERE record.merchant_id = locked.merchant_id
              AND record.key = locked.key
              AND record.status = 'processing'
              AND record.fence = holder.fence
              AND record.owner = holder.owner
            RETURNING record.owner"#,
            &holders.merchants,
            &holders.keys,
            &holders.fences,
            &holders.owners,
            interval(self.lease_ttl),
        )
        .fetch_all(connection)
        .await
    }
}

/// Lets records rest: it is not known what the gateway did, and somebody looks again later.
///
/// A parked record has an owner that nobody is: a renewal that was sent before and arrives after
/// would otherwise turn the rest into a lease.
#[derive(Debug)]
pub struct Park<'a> {
    pub held: &'a [Acquired],
    /// Until the next look, one for each.
    pub rests: &'a [Duration],
}

impl Step for Park<'_> {
    const NAME: &'static str = "park";
    /// The owners whose record rests now.
    type Output = Vec<Uuid>;

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<Vec<Uuid>> {
        let holders = Holders::of(self.held);
        let rests: Vec<PgInterval> = self.rests.iter().copied().map(interval).collect();
        sqlx::query_scalar!(
            r#"-- park
            WITH holder AS (
                SELECT *
                FROM UNNEST($1::uuid[], $2::text[], $3::bigint[], $4::uuid[], $5::interval[])
                    AS holder (merchant_id, key, fence, owner, rest)
            ),
            locked AS (
                SELECT record.merchant_id, record.key
                FROM idempotency_keys AS record
                JOIN holder USING (merchant_id, key)
                WHERE record.status = 'processing'
                  AND record.fence = holder.fence
                  AND record.owner = holder.owner
                ORDER BY record.merchant_id, record.key
                FOR UPDATE OF record
            )
            UPDATE idempotency_keys AS record
            SET owner = gen_random_uuid(),
                unknown_since = COALESCE(record.unknown_since, now()),
                lease_expires_at = now() + holder.rest
            FROM locked
            JOIN holder USING (merchant_id, key)
            WHERE record.merchant_id = locked.merchant_id
              AND record.key = locked.key
              AND record.status = 'processing'
              AND record.fence = holder.fence
              AND record.owner = holder.owner
            RETURNING holder.owner AS "owner!""#,
            &holders.merchants,
            &holders.keys,
            &holders.fences,
            &holders.owners,
            &rests,
        )
        .fetch_all(connection)
        .await
    }
}

/// Ends leases before their time, so that somebody else takes over at once. This is not a release:
/// the gateway may have heard of the record. Like a parked record it has an owner that nobody is.
#[derive(Debug)]
pub struct LetGo<'a>(pub &'a [Acquired]);

impl Step for LetGo<'_> {
    const NAME: &'static str = "let_go";
    type Output = u64;

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<u64> {
        let holders = Holders::of(self.0);
        let done = sqlx::query!(
            r#"-- let_go
            WITH holder AS (
                SELECT *
                FROM UNNEST($1::uuid[], $2::text[], $3::bigint[], $4::uuid[])
                    AS holder (merchant_id, key, fence, owner)
            ),
            locked AS (
                SELECT record.merchant_id, record.key
                FROM idempotency_keys AS record
                JOIN holder USING (merchant_id, key)
                WHERE record.status = 'processing'
                  AND record.fence = holder.fence
                  AND record.owner = holder.owner
                ORDER BY record.merchant_id, record.key
                FOR UPDATE OF record
            )
            UPDATE idempotency_keys AS record
            SET owner = gen_random_uuid(),
                lease_expires_at = now()
            FROM locked
            JOIN holder USING (merchant_id, key)
            WHERE record.merchant_id = locked.merchant_id
              AND record.key = locked.key
              AND record.status = 'processing'
              AND record.fence = holder.fence
              AND record.owner = holder.owner"#,
            &holders.merchants,
            &holders.keys,
            &holders.fences,
            &holders.owners,
        )
        .execute(connection)
        .await?;
        Ok(done.rows_affected())
    }
}
