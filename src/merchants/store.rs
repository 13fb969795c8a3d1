//! The rows of merchants and API keys.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{
    ApiKey, Merchant,
    api_key::{Credential, Revoked},
};
use crate::ids::{ApiKeyId, MerchantId};

/// One statement, so that no merchant is ever without its counter: settling updates that row and
/// would hit none.
pub(super) async fn insert_merchant(
    connection: &mut PgConnection,
    merchant: &Merchant,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "
        -- insert_merchant
        WITH merchant AS (
            INSERT INTO merchants (id, name, created_at)
            VALUES ($1, $2, $3)
            RETURNING id
        )
        INSERT INTO event_counters (merchant_id, position)
        SELECT id, 0
        FROM merchant
        ",
        merchant.id.uuid(),
        merchant.name.as_str(),
        merchant.created_at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Whether the merchant exists.
pub(super) async fn find_merchant(
    connection: &mut PgConnection,
    id: MerchantId,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"
        -- find_merchant
        SELECT EXISTS (SELECT FROM merchants WHERE id = $1) AS "found!"
        "#,
        id.uuid(),
    )
    .fetch_one(connection)
    .await
}

/// Inserts nothing and says `false` when there is no such merchant.
pub(super) async fn insert_api_key(
    connection: &mut PgConnection,
    api_key: &ApiKey,
    secret_hash: &[u8; 32],
) -> Result<bool, sqlx::Error> {
    let inserted = sqlx::query!(
        "
        -- insert_api_key
        INSERT INTO api_keys (id, merchant_id, name, prefix, secret_hash, created_at)
        SELECT $1, merchants.id, $3, $4, $5, $6
        FROM merchants
        WHERE merchants.id = $2
        ",
        api_key.id.uuid(),
        api_key.merchant_id.uuid(),
        api_key.name,
        api_key.prefix,
        secret_hash.as_slice(),
        api_key.created_at,
    )
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

pub(super) async fn list_api_keys(
    connection: &mut PgConnection,
    merchant_id: MerchantId,
) -> Result<Vec<ApiKey>, sqlx::Error> {
    let rows = sqlx::query_as!(
        ApiKeyRow,
        "
        -- list_api_keys
        SELECT id, merchant_id, name, prefix, created_at, revoked_at
        FROM api_keys
        WHERE merchant_id = $1
        ORDER BY created_at, id
        ",
        merchant_id.uuid(),
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(ApiKey::from).collect())
}

/// Keeps the time of an earlier revocation.
pub(super) async fn mark_api_key_revoked(
    connection: &mut PgConnection,
    id: ApiKeyId,
    now: DateTime<Utc>,
) -> Result<Option<ApiKey>, sqlx::Error> {
    let row = sqlx::query_as!(
        ApiKeyRow,
        "
        -- mark_api_key_revoked
        UPDATE api_keys
        SET revoked_at = COALESCE(revoked_at, $2)
        WHERE id = $1
        RETURNING id, merchant_id, name, prefix, created_at, revoked_at
        ",
        id.uuid(),
        now,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(ApiKey::from))
}

/// Finds by the public prefix; whether the secret is right is decided in constant time outside.
pub(super) async fn find_credential(
    connection: &mut PgConnection,
    prefix: &str,
) -> Result<Option<Credential>, sqlx::Error> {
    let row = sqlx::query!(
        r#"
        -- find_credential
        SELECT id, merchant_id, secret_hash, revoked_at IS NOT NULL AS "revoked!"
        FROM api_keys
        WHERE prefix = $1
        "#,
        prefix,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| Credential {
        api_key_id: ApiKeyId::from_uuid(row.id),
        merchant_id: MerchantId::from_uuid(row.merchant_id),
        secret_hash: row.secret_hash,
        revoked: if row.revoked {
            Revoked::Yes
        } else {
            Revoked::No
        },
    }))
}

struct ApiKeyRow {
    id: uuid::Uuid,
    merchant_id: uuid::Uuid,
    name: Option<String>,
    prefix: String,
    created_at: DateTime<Utc>,
    revoked_at: Option<DateTime<Utc>>,
}

impl From<ApiKeyRow> for ApiKey {
    fn from(row: ApiKeyRow) -> Self {
        Self {
            id: ApiKeyId::from_uuid(row.id),
            merchant_id: MerchantId::from_uuid(row.merchant_id),
            name: row.name,
            prefix: row.prefix,
            created_at: row.created_at,
            revoked_at: row.revoked_at,
        }
    }
}
