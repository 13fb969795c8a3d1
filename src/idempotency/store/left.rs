//! Finding what owners left.

use sqlx::PgConnection;

use crate::{
    db::Step,
    idempotency::{key::IdempotencyKey, operation::Operation, record::LeftRecord},
    ids::MerchantId,
};

/// Finds records whose lease has run out, or whose rest is over, the oldest first.
///
/// Passes by what is locked: somebody settles it or takes it over at this moment. It waits for
/// nobody, so it may lock in the order of the lease.
#[derive(Debug)]
pub struct ListLeft<'a> {
    /// What the caller can finish: another version of the program may know more.
    pub operations: &'a [Operation],
    pub limit: i64,
}

impl Step for ListLeft<'_> {
    const NAME: &'static str = "list_left";
    type Output = Vec<LeftRecord>;

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<Vec<LeftRecord>> {
        let operations: Vec<String> = self.operations.iter().map(ToString::to_string).collect();
        let rows = sqlx::query!(
            r#"-- list_left
            SELECT
                merchant_id, key, fence, resource_id, request_id,
                unknown_since IS NOT NULL AS "unknown!"
            FROM idempotency_keys
            WHERE status = 'processing'
              AND lease_expires_at <= now()
              AND operation = ANY($1)
            ORDER BY lease_expires_at
            LIMIT $2
            FOR UPDATE SKIP LOCKED"#,
            &operations,
            self.limit,
        )
        .fetch_all(connection)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| LeftRecord {
                merchant_id: MerchantId::from_uuid(row.merchant_id),
                key: IdempotencyKey::from_stored(row.key),
                fence: row.fence,
                resource_id: row.resource_id,
                request_id: row.request_id,
                unknown: row.unknown,
            })
            .collect())
    }
}
