//! Deleting records whose time is over, and measuring what is there.

use sqlx::PgConnection;

use crate::{
    db::Step,
    seeded::{self, Bug, seeded},
};

/// Deletes at most so many expired records by the function of the migrations, the only way in
/// which records are deleted. Answers how many it deleted.
#[derive(Clone, Copy, Debug)]
pub struct DeleteExpired {
    pub batch_size: i32,
}

impl Step for DeleteExpired {
    const NAME: &'static str = "delete_expired";
    type Output = u64;

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<u64> {
        if seeded(Bug::CleanerIgnoresStatus) {
            return seeded::delete_old(connection).await;
        }
        let deleted = sqlx::query_scalar!(
            r#"-- delete_expired
            SELECT delete_expired_idempotency_keys($1) AS "deleted!""#,
            self.batch_size,
        )
        .fetch_one(&mut *connection)
        .await?;
        if seeded(Bug::UsedKeysDeleted) {
            seeded::forget_used_keys(connection).await?;
        }
        Ok(u64::try_from(deleted).unwrap_or(0))
    }
}

/// Counts for the gauges. Bounded: a backlog of millions is not counted to the last row.
#[derive(Clone, Copy, Debug)]
pub struct Measure;

/// What is there now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// Expired records that are not deleted yet, at most a million.
    pub backlog_rows: i64,
    /// Heap, indexes and TOAST of `idempotency_keys`.
    pub table_bytes: i64,
    /// Records in processing, unknown ones included.
    pub processing: i64,
    pub processing_oldest_seconds: i64,
    pub unknown: i64,
    pub unknown_oldest_seconds: i64,
}

impl Step for Measure {
    const NAME: &'static str = "measure";
    type Output = Measures;

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<Measures> {
        sqlx::query_as!(
            Measures,
            r#"-- measure
            SELECT
                (
                    SELECT count(*)
                    FROM (
                        SELECT
                        FROM idempotency_keys
                        WHERE status <> 'processing'
                          AND expires_at <= now()
                        LIMIT 1000000
                    ) AS expired
                ) AS "backlog_rows!",
                pg_total_relation_size('idempotency_keys') AS "table_bytes!",
                count(*) AS "processing!",
                COALESCE(EXTRACT(epoch FROM now() - min(created_at))::bigint, 0)
                    AS "processing_oldest_seconds!",
                count(unknown_since) AS "unknown!",
                COALESCE(EXTRACT(epoch FROM now() - min(unknown_since))::bigint, 0)
                    AS "unknown_oldest_seconds!"
            FROM idempotency_keys
            WHERE status = 'processing'"#,
        )
        .fetch_one(connection)
        .await
    }
}
