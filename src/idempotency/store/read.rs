//! Reading what is known of a key.

use sqlx::PgConnection;
use uuid::Uuid;

use super::row::RecordRow;
use crate::{
    db::Step,
    idempotency::{key::IdempotencyKey, record::Sighting},
    ids::MerchantId,
};

/// Reads what is known of keys, in the order of what is asked for.
///
/// In a statement of its own: a rival's row that made a claim fail may be invisible to the
/// statement that failed (READ COMMITTED takes a snapshot per statement).
#[derive(Debug)]
pub struct Read<'a>(pub &'a [(MerchantId, IdempotencyKey)]);

impl Step for Read<'_> {
    const NAME: &'static str = "read";
    type Output = Vec<Sighting>;

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<Vec<Sighting>> {
        let merchants: Vec<Uuid> = self.0.iter().map(|(merchant, _)| merchant.uuid()).collect();
        let keys: Vec<String> = self
            .0
            .iter()
            .map(|(_, key)| key.as_str().to_owned())
            .collect();
        let rows = sqlx::query_as!(
            RecordRow,
            r#"-- read
            SELECT
                sought.place AS "place!",
                used.resource_id AS "used_resource_id!",
                used.operation AS "used_operation!",
                record.operation AS "operation?",
                record.request_hash AS "request_hash?",
                record.hash_version AS "hash_version?",
                record.request AS "request?",
                record.gateway AS "gateway?",
                record.status AS "status?",
                record.retryable AS "retryable?",
                record.response_status AS "response_status?",
                record.response_body AS "response_body?",
                record.response_headers AS "response_headers?",
                record.fence AS "fence?",
                record.owner AS "owner?",
                record.attempts AS "attempts?",
                record.request_id AS "request_id?",
                record.created_at AS "created_at?",
                record.completed_at AS "completed_at?",
                record.expires_at AS "expires_at?",
                COALESCE(record.expires_at <= now(), false) AS "expired!",
                COALESCE(record.lease_expires_at <= now(), false) AS "left!",
                record.unknown_since IS NOT NULL AS "unknown!",
                COALESCE(
                    (EXTRACT(epoch FROM now() - record.created_at) * 1000)::bigint, 0
                ) AS "age_ms!"
            FROM UNNEST($1::uuid[], $2::text[])
                WITH ORDINALITY AS sought (merchant_id, key, place)
            JOIN used_keys AS used
                ON used.merchant_id = sought.merchant_id
                AND used.key = sought.key
            LEFT JOIN idempotency_keys AS record
                ON record.merchant_id = used.merchant_id
                AND record.key = used.key"#,
            &merchants,
            &keys,
        )
        .fetch_all(connection)
        .await?;

        let mut sightings: Vec<Sighting> = self.0.iter().map(|_| Sighting::Absent).collect();
        for row in rows {
            let place = usize::try_from(row.place - 1).ok();
            if let Some(sighting) = place.and_then(|place| sightings.get_mut(place)) {
                *sighting = row.sighting()?;
            }
        }
        Ok(sightings)
    }
}
