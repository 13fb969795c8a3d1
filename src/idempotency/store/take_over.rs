//! Taking over what a dead or stuck owner left.

use std::time::Duration;

use sqlx::{PgConnection, postgres::types::PgInterval};
use uuid::Uuid;

use super::{interval, millis};
use crate::{
    db::Step,
    idempotency::{key::IdempotencyKey, record::Acquired},
    ids::MerchantId,
};

/// A record whose lease has run out, as it was seen.
#[derive(Clone, Debug)]
pub struct Abandoned {
    pub merchant_id: MerchantId,
    pub key: IdempotencyKey,
    /// The fence that was seen: somebody who raised it meanwhile has it.
    pub fence: i64,
    pub when: When,
    /// The fresh owner that takes over.
    pub owner: Uuid,
    pub lease_ttl: Duration,
}

/// Under which condition a record is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Its lease has run out, or its rest is over.
    Left,
    /// Whatever its lease says: by whoever brings a final word (D6.9). An owner that is at it
    /// writes nothing any more.
    Always,
}

/// What a take-over won.
#[derive(Clone, Debug)]
pub struct TakenOver {
    pub acquired: Acquired,
    /// How long ago the gateway may first have heard of it.
    pub since_first_sent: Duration,
}

/// Takes over records by compare-and-set: fence + 1 and a new owner, if [`When`] allows and the
/// fence is still the one that was seen. Answers with those that it won.
#[derive(Debug)]
pub struct TakeOver<'a>(pub &'a [Abandoned]);

impl Step for TakeOver<'_> {
    const NAME: &'static str = "take_over";
    type Output = Vec<TakenOver>;

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<Vec<TakenOver>> {
        let merchants: Vec<Uuid> = self.0.iter().map(|it| it.merchant_id.uuid()).collect();
        let keys: Vec<String> = self.0.iter().map(|it| it.key.as_str().to_owned()).collect();
        let fences: Vec<i64> = self.0.iter().map(|it| it.fence).collect();
        let owners: Vec<Uuid> = self.0.iter().map(|it| it.owner).collect();
        let leases: Vec<PgInterval> = self.0.iter().map(|it| interval(it.lease_ttl)).collect();
        let always: Vec<bool> = self.0.iter().map(|it| it.when == When::Always).collect();
        let rows = sqlx::query!(
            r#"-- take_over
            WITH abandoned AS (
                SELECT *
                FROM UNNEST(
                    $1::uuid[], $2::text[], $3::bigint[], $4::uuid[], $5::interval[],
                    $6::boolean[]
                ) AS abandoned (merchant_id, key, fence, owner, lease_ttl, always)
            ),
            -- Locks first and in the order of the key, so that two batches cannot deadlock.
            locked AS (
                SELECT record.merchant_id, record.key
                FROM idempotency_keys AS record
                JOIN abandoned USING (merchant_id, key)
                WHERE record.status = 'processing'
                  AND record.fence = abandoned.fence
                  AND (abandoned.always OR record.lease_expires_at <= now())
                ORDER BY record.merchant_id, record.key
                FOR UPDATE OF record
            )
            UPDATE idempotency_keys AS record
            SET fence = record.fence + 1,
                owner = abandoned.owner,
                attempts = record.attempts + 1,
                lease_expires_at = now() + abandoned.lease_ttl
            FROM locked
            JOIN abandoned USING (merchant_id, key)
            WHERE record.merchant_id = locked.merchant_id
              AND record.key = locked.key
              AND record.status = 'processing'
              AND record.fence = abandoned.fence
              AND (abandoned.always OR record.lease_expires_at <= now())
            RETURNING
                record.owner,
                record.fence,
                record.attempts,
                (EXTRACT(epoch FROM now() - record.first_sent_at) * 1000)::bigint
                    AS "since_first_sent_ms!""#,
            &merchants,
            &keys,
            &fences,
            &owners,
            &leases,
            &always,
        )
        .fetch_all(connection)
        .await?;

        let won = |it: &Abandoned| {
            let row = rows.iter().find(|row| row.owner == it.owner)?;
            Some(it.taken_over(row.fence, row.attempts, millis(row.since_first_sent_ms)))
        };
        Ok(self.0.iter().filter_map(won).collect())
    }
}

impl Abandoned {
    fn taken_over(&self, fence: i64, attempts: i32, since_first_sent: Duration) -> TakenOver {
        TakenOver {
            acquired: Acquired {
                merchant_id: self.merchant_id,
                key: self.key.clone(),
                fence,
                owner: self.owner,
                attempts,
            },
            since_first_sent,
        }
    }
}
