//! Winning the right to execute a new payment.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgConnection, postgres::types::PgInterval};
use uuid::Uuid;

use crate::{
    db::Step,
    idempotency::{record::Acquired, record::NewRecord, store::interval},
    payments::command::CreatePayment,
};

/// What a claim of `payments.create` writes.
#[derive(Clone, Debug)]
pub struct NewPayment {
    pub record: NewRecord,
    pub command: CreatePayment,
    pub created_at: DateTime<Utc>,
}

/// Claims keys that were never used: used key, record and payment, or nothing at all. Answers with
/// the claims that won; the others met a key that exists.
#[derive(Debug)]
pub struct Claim<'a>(pub &'a [NewPayment]);

impl Step for Claim<'_> {
    const NAME: &'static str = "claim";
    type Output = Vec<Acquired>;

    #[expect(
        clippy::as_conversions,
        clippy::too_many_lines,
        reason = "one statement; `as` is how `query!` is told that a column holds nulls"
    )]
    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<Vec<Acquired>> {
        let records = RecordColumns::of(self.0);
        let payments = PaymentColumns::of(self.0);
        let owners = sqlx::query_scalar!(
            r#"-- claim
            WITH entry AS (
                SELECT *
                FROM UNNEST(
                    $1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::smallint[], $6::jsonb[],
                    $7::uuid[], $8::text[], $9::text[], $10::uuid[], $11::text[], $12::interval[],
                    $13::bigint[], $14::text[], $15::text[], $16::text[], $17::text[],
                    $18::text[], $19::text[], $20::jsonb[], $21::timestamptz[]
                ) AS entry (
                    merchant_id, key, operation, request_hash, hash_version, request,
                    resource_id, gateway, gateway_key, owner, request_id, lease_ttl,
                    amount, currency, payment_method, capture_method, reference,
                    description, customer, metadata, created_at
                )
            ),
            -- The order of the key, as everywhere: two batches that meet each other's keys wait
            -- for one another in one direction only.
            used AS (
                INSERT INTO used_keys (merchant_id, key, operation, resource_id)
                SELECT merchant_id, key, operation, resource_id
                FROM entry
                ORDER BY merchant_id, key COLLATE "C"
                ON CONFLICT DO NOTHING
                RETURNING merchant_id, key
            ),
            claimed AS (
                INSERT INTO idempotency_keys (
                    merchant_id, key, operation, request_hash, hash_version, request,
                    resource_id, gateway, gateway_key, first_sent_at, status, fence, owner,
                    lease_expires_at, attempts, request_id
                )
                SELECT
                    merchant_id, key, operation, request_hash, hash_version, request,
                    resource_id, gateway, gateway_key, now(), 'processing', 1, owner,
                    now() + lease_ttl, 1, request_id
                FROM entry
                JOIN used USING (merchant_id, key)
                ORDER BY merchant_id, key COLLATE "C"
                ON CONFLICT DO NOTHING
                RETURNING merchant_id, key, owner
            ),
            created AS (
                INSERT INTO payments (
                    merchant_id, id, idempotency_key, status, amount, currency, payment_method,
                    capture_method, reference, description, customer, metadata, gateway,
                    gateway_key, created_at, updated_at
                )
                SELECT
                    merchant_id, resource_id, key, 'processing', amount, currency, payment_method,
                    capture_method, reference, description, customer, metadata, gateway,
                    gateway_key, created_at, created_at
                FROM entry
                JOIN claimed USING (merchant_id, key)
                ORDER BY merchant_id, resource_id
                RETURNING id
            )
            SELECT owner AS "owner!"
            FROM claimed"#,
            &records.merchants,
            &records.keys,
            &records.operations,
            &records.hashes,
            &records.versions,
            &records.requests,
            &records.resources,
            &records.gateways,
            &records.gateway_keys,
            &records.owners,
            &records.request_ids,
            &records.leases,
            &payments.amounts,
            &payments.currencies,
            &payments.payment_methods,
            &payments.capture_methods,
            &payments.references as &[Option<String>],
            &payments.descriptions as &[Option<String>],
            &payments.customers as &[Option<String>],
            &payments.metadata,
            &payments.created_at,
        )
        .fetch_all(connection)
        .await?;

        Ok(self
            .0
            .iter()
            .map(|entry| &entry.record)
            .filter(|record| owners.contains(&record.owner))
            .map(|record| acquired(record, 1, 1))
            .collect())
    }
}

/// Claims released keys again, for the same request only: a fresh owner, the same gateway key, and
/// the payment row that the release took away. Answers with the claims that won.
///
/// The gateway is the one that is sent to from now on: nothing ever had an effect at another.
#[derive(Debug)]
pub struct Reclaim<'a>(pub &'a [NewPayment]);

impl Step for Reclaim<'_> {
    const NAME: &'static str = "reclaim";
    type Output = Vec<Acquired>;

    #[expect(
        clippy::as_conversions,
        clippy::too_many_lines,
        reason = "one statement; `as` is how `query!` is told that a column holds nulls"
    )]
    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<Vec<Acquired>> {
        let records = RecordColumns::of(self.0);
        let payments = PaymentColumns::of(self.0);
        let rows = sqlx::query!(
            r#"-- reclaim
            WITH entry AS (
                SELECT *
                FROM UNNEST(
                    $1::uuid[], $2::text[], $3::bytea[], $4::smallint[], $5::uuid[], $6::text[],
                    $7::interval[], $8::bigint[], $9::text[], $10::text[], $11::text[],
                    $12::text[], $13::text[], $14::text[], $15::jsonb[], $16::timestamptz[],
                    $17::text[]
                ) AS entry (
                    merchant_id, key, request_hash, hash_version, owner, request_id,
                    lease_ttl, amount, currency, payment_method, capture_method,
                    reference, description, customer, metadata, created_at, gateway
                )
            ),
            locked AS (
                SELECT record.merchant_id, record.key
                FROM idempotency_keys AS record
                JOIN entry USING (merchant_id, key)
                WHERE record.status = 'failed'
                  AND record.retryable
                  AND record.request_hash = entry.request_hash
                  AND record.hash_version = entry.hash_version
                ORDER BY record.merchant_id, record.key
                FOR UPDATE OF record
            ),
            claimed AS (
                UPDATE idempotency_keys AS record
                SET status = 'processing',
                    retryable = false,
                    fence = record.fence + 1,
                    owner = entry.owner,
                    attempts = record.attempts + 1,
                    request_id = entry.request_id,
                    gateway = entry.gateway,
                    first_sent_at = now(),
                    lease_expires_at = now() + entry.lease_ttl,
                    completed_at = NULL,
                    expires_at = NULL
                FROM locked
                JOIN entry USING (merchant_id, key)
                WHERE record.merchant_id = locked.merchant_id
                  AND record.key = locked.key
                  AND record.status = 'failed'
                  AND record.retryable
                RETURNING
                    record.merchant_id, record.key, record.owner, record.fence, record.attempts,
                    record.resource_id, record.gateway, record.gateway_key
            ),
            created AS (
                INSERT INTO payments (
                    merchant_id, id, idempotency_key, status, amount, currency, payment_method,
                    capture_method, reference, description, customer, metadata, gateway,
                    gateway_key, created_at, updated_at
                )
                SELECT
                    merchant_id, claimed.resource_id, key, 'processing', amount, currency,
                    payment_method, capture_method, reference, description, customer, metadata,
                    claimed.gateway, claimed.gateway_key, created_at, created_at
                FROM entry
                JOIN claimed USING (merchant_id, key)
                ORDER BY merchant_id, claimed.resource_id
                RETURNING id
            )
            SELECT owner AS "owner!", fence AS "fence!", attempts AS "attempts!"
            FROM claimed"#,
            &records.merchants,
            &records.keys,
            &records.hashes,
            &records.versions,
            &records.owners,
            &records.request_ids,
            &records.leases,
            &payments.amounts,
            &payments.currencies,
            &payments.payment_methods,
            &payments.capture_methods,
            &payments.references as &[Option<String>],
            &payments.descriptions as &[Option<String>],
            &payments.customers as &[Option<String>],
            &payments.metadata,
            &payments.created_at,
            &records.gateways,
        )
        .fetch_all(connection)
        .await?;

        Ok(self
            .0
            .iter()
            .filter_map(|entry| {
                let row = rows.iter().find(|row| row.owner == entry.record.owner)?;
                Some(acquired(&entry.record, row.fence, row.attempts))
            })
            .collect())
    }
}

fn acquired(record: &NewRecord, fence: i64, attempts: i32) -> Acquired {
    Acquired {
        merchant_id: record.merchant_id,
        key: record.key.clone(),
        fence,
        owner: record.owner,
        attempts,
    }
}

/// The records of a batch as the columns that `UNNEST` takes.
#[derive(Default)]
struct RecordColumns {
    merchants: Vec<Uuid>,
    keys: Vec<String>,
    operations: Vec<String>,
    hashes: Vec<Vec<u8>>,
    versions: Vec<i16>,
    requests: Vec<Value>,
    resources: Vec<Uuid>,
    gateways: Vec<String>,
    gateway_keys: Vec<String>,
    owners: Vec<Uuid>,
    request_ids: Vec<String>,
    leases: Vec<PgInterval>,
}

impl RecordColumns {
    fn of(entries: &[NewPayment]) -> Self {
        let mut columns = Self::default();
        for NewPayment { record, .. } in entries {
            columns.merchants.push(record.merchant_id.uuid());
            columns.keys.push(record.key.as_str().to_owned());
            columns
                .operations
                .push(record.operation.as_str().to_owned());
            columns.hashes.push(record.fingerprint.hash.to_vec());
            columns.versions.push(record.fingerprint.version);
            columns.requests.push(record.request.clone());
            columns.resources.push(record.resource_id);
            columns.gateways.push(record.gateway.to_owned());
            columns
                .gateway_keys
                .push(record.gateway_key.as_str().to_owned());
            columns.owners.push(record.owner);
            columns.request_ids.push(record.request_id.clone());
            columns.leases.push(interval(record.lease_ttl));
        }
        columns
    }
}

/// The payments of a batch as the columns that `UNNEST` takes.
#[derive(Default)]
struct PaymentColumns {
    amounts: Vec<i64>,
    currencies: Vec<String>,
    payment_methods: Vec<String>,
    capture_methods: Vec<String>,
    references: Vec<Option<String>>,
    descriptions: Vec<Option<String>>,
    customers: Vec<Option<String>>,
    metadata: Vec<Value>,
    created_at: Vec<DateTime<Utc>>,
}

impl PaymentColumns {
    fn of(entries: &[NewPayment]) -> Self {
        let mut columns = Self::default();
        for NewPayment {
            command,
            created_at,
            ..
        } in entries
        {
            columns.amounts.push(command.money.amount_minor);
            columns
                .currencies
                .push(command.money.currency.code().to_owned());
            columns.payment_methods.push(command.payment_method.clone());
            columns
                .capture_methods
                .push(command.capture_method.as_str().to_owned());
            columns.references.push(command.reference.clone());
            columns.descriptions.push(command.description.clone());
            columns.customers.push(command.customer.clone());
            columns.metadata.push(
                command
                    .metadata
                    .iter()
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
            );
            columns.created_at.push(*created_at);
        }
        columns
    }
}
