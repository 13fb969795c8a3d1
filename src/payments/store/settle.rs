//! Writing what the gateway did: payment, event and record in one statement, or nothing.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgConnection, postgres::types::PgInterval};
use uuid::Uuid;

use super::pending::FIRST_POLL_AFTER;
use crate::{
    db::Step,
    idempotency::{
        record::{Acquired, StoredResponse},
        store::{Holders, interval},
    },
    ids::EventId,
    payments::{model::Payment, state::PaymentStatus},
};

/// One payment that is settled, and the record that goes with it.
#[derive(Clone, Debug)]
pub struct Settlement {
    pub held: Acquired,
    /// Where the payment must still stand; its version then is one less than `payment.version`.
    pub status_before: PaymentStatus,
    /// The payment as it is from now on.
    pub payment: Payment,
    pub event_id: EventId,
    pub event_type: &'static str,
    /// The payment as the feed shows it.
    pub event_data: Value,
    pub end: RecordEnd,
}

/// What becomes of the record.
#[derive(Clone, Debug)]
pub enum RecordEnd {
    /// It is replayed for `ttl` from now on.
    Finished {
        response: StoredResponse,
        ttl: Duration,
    },
    /// A person must look at the payment; the gateway is asked again after `rest`.
    Resting { rest: Duration },
}

/// Settles payments. Answers with the owners whose payment was settled; for one that is missing
/// nothing was written: its lease is lost, or the payment is not where it was.
#[derive(Debug)]
pub struct Settle<'a>(pub &'a [Settlement]);

impl Step for Settle<'_> {
    const NAME: &'static str = "settle";
    type Output = Vec<Uuid>;

    #[expect(
        clippy::as_conversions,
        clippy::too_many_lines,
        reason = "one statement; `as` is how `query!` is told that a column holds nulls"
    )]
    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<Vec<Uuid>> {
        let holders = Holders::of(self.0.iter().map(|entry| &entry.held));
        let payments = PaymentColumns::of(self.0);
        let ends = EndColumns::of(self.0);
        sqlx::query_scalar!(
            r#"-- settle
            WITH entry AS (
                SELECT *
                FROM UNNEST(
                    $1::uuid[], $2::text[], $3::bigint[], $4::uuid[], $5::uuid[], $6::text[],
                    $7::text[], $8::bigint[], $9::bigint[], $10::text[], $11::text[], $12::text[],
                    $13::timestamptz[], $14::uuid[], $15::text[], $16::jsonb[],
                    $17::text[], $18::smallint[], $19::bytea[], $20::jsonb[], $21::jsonb[],
                    $22::interval[]
                ) AS entry (
                    merchant_id, key, fence, owner, payment_id, status_before,
                    status, amount_captured, version, failure_code, failure_message,
                    gateway_reference, updated_at, event_id, event_type, event_data,
                    record_status, response_status, response_body, response_headers, response,
                    span
                )
            ),
            locked_record AS (
                SELECT record.merchant_id, record.key
                FROM idempotency_keys AS record
                JOIN entry USING (merchant_id, key)
                WHERE record.status = 'processing'
                  AND record.fence = entry.fence
                  AND record.owner = entry.owner
                ORDER BY record.merchant_id, record.key
                FOR UPDATE OF record
            ),
            locked_payment AS (
                SELECT payment.merchant_id, payment.id
                FROM payments AS payment
                JOIN entry
                    ON entry.merchant_id = payment.merchant_id
                    AND entry.payment_id = payment.id
                JOIN locked_record
                    ON locked_record.merchant_id = entry.merchant_id
                    AND locked_record.key = entry.key
                WHERE payment.status = entry.status_before
                  AND payment.version = entry.version - 1
                ORDER BY payment.merchant_id, payment.id
                FOR UPDATE OF payment
            ),
            -- The counter is locked last and until the commit: that makes the order of positions
            -- the order of commits. Everything below hangs on it, so that a merchant without a
            -- counter settles nothing rather than something without an event.
            locked_counter AS (
                SELECT counter.merchant_id
                FROM event_counters AS counter
                WHERE counter.merchant_id IN (SELECT merchant_id FROM locked_payment)
                ORDER BY counter.merchant_id
                FOR UPDATE
            ),
            counted AS (
                UPDATE event_counters AS counter
                SET position = counter.position + settled.count
                FROM (
                    SELECT merchant_id, count(*) AS count
                    FROM locked_payment
                    GROUP BY merchant_id
                ) AS settled
                JOIN locked_counter USING (merchant_id)
                WHERE counter.merchant_id = settled.merchant_id
                RETURNING counter.merchant_id, counter.position - settled.count AS before
            ),
            updated AS (
                UPDATE payments AS payment
                SET status = entry.status,
                    amount_captured = entry.amount_captured,
                    failure_code = entry.failure_code,
                    failure_message = entry.failure_message,
                    gateway_reference = entry.gateway_reference,
                    version = entry.version,
                    updated_at = entry.updated_at
                FROM entry
                JOIN locked_payment
                    ON locked_payment.merchant_id = entry.merchant_id
                    AND locked_payment.id = entry.payment_id
                JOIN counted ON counted.merchant_id = entry.merchant_id
                WHERE payment.merchant_id = entry.merchant_id
                  AND payment.id = entry.payment_id
                  AND payment.status = entry.status_before
                  AND payment.version = entry.version - 1
                RETURNING payment.merchant_id, payment.id, counted.before
            ),
            told AS (
                INSERT INTO events (
                    merchant_id, position, id, type, payment_id, sequence, data, created_at
                )
                SELECT
                    entry.merchant_id,
                    updated.before + row_number() OVER (
                        PARTITION BY entry.merchant_id ORDER BY entry.payment_id
                    ),
                    entry.event_id, entry.event_type, entry.payment_id, entry.version,
                    entry.event_data, entry.updated_at
                FROM entry
                JOIN updated
                    ON updated.merchant_id = entry.merchant_id
                    AND updated.id = entry.payment_id
                RETURNING payment_id
            ),
            -- What is answered while the gateway has still to decide is asked about later.
            awaited AS (
                INSERT INTO pending_payments (merchant_id, payment_id, next_poll_at)
                SELECT entry.merchant_id, entry.payment_id, now() + $23::interval
                FROM entry
                JOIN updated
                    ON updated.merchant_id = entry.merchant_id
                    AND updated.id = entry.payment_id
                WHERE entry.status = 'processing'
                  AND entry.record_status <> 'processing'
                ON CONFLICT DO NOTHING
            ),
            ended AS (
                UPDATE idempotency_keys AS record
                SET status = entry.record_status,
                    -- One that goes on resting is nobody's, as after `park`.
                    owner = CASE
                        WHEN entry.record_status = 'processing' THEN gen_random_uuid()
                        ELSE record.owner
                    END,
                    response_status = entry.response_status,
                    response_body = entry.response_body,
                    response_headers = entry.response_headers,
                    response = entry.response,
                    lease_expires_at = CASE
                        WHEN entry.record_status = 'processing' THEN now() + entry.span
                    END,
                    unknown_since = CASE
                        WHEN entry.record_status = 'processing'
                            THEN COALESCE(record.unknown_since, now())
                    END,
                    completed_at = CASE
                        WHEN entry.record_status <> 'processing' THEN now()
                    END,
                    expires_at = CASE
                        WHEN entry.record_status <> 'processing' THEN now() + entry.span
                    END
                FROM entry
                JOIN updated
                    ON updated.merchant_id = entry.merchant_id
                    AND updated.id = entry.payment_id
                WHERE record.merchant_id = entry.merchant_id
                  AND record.key = entry.key
                  AND record.status = 'processing'
                  AND record.fence = entry.fence
                  AND record.owner = entry.owner
                RETURNING entry.owner
            )
            SELECT owner AS "owner!"
            FROM ended"#,
            &holders.merchants,
            &holders.keys,
            &holders.fences,
            &holders.owners,
            &payments.ids,
            &payments.statuses_before,
            &payments.statuses,
            &payments.captured,
            &payments.versions,
            &payments.failure_codes as &[Option<String>],
            &payments.failure_messages as &[Option<String>],
            &payments.gateway_references as &[Option<String>],
            &payments.updated_at,
            &payments.event_ids,
            &payments.event_types,
            &payments.event_data,
            &ends.statuses,
            &ends.response_statuses as &[Option<i16>],
            &ends.bodies as &[Option<Vec<u8>>],
            &ends.headers as &[Option<Value>],
            &ends.documents as &[Option<Value>],
            &ends.spans,
            interval(FIRST_POLL_AFTER),
        )
        .fetch_all(connection)
        .await
    }
}

/// The payments and events of a batch as the columns that `UNNEST` takes.
#[derive(Default)]
struct PaymentColumns {
    ids: Vec<Uuid>,
    statuses_before: Vec<String>,
    statuses: Vec<String>,
    captured: Vec<i64>,
    versions: Vec<i64>,
    failure_codes: Vec<Option<String>>,
    failure_messages: Vec<Option<String>>,
    gateway_references: Vec<Option<String>>,
    updated_at: Vec<DateTime<Utc>>,
    event_ids: Vec<Uuid>,
    event_types: Vec<String>,
    event_data: Vec<Value>,
}

impl PaymentColumns {
    fn of(entries: &[Settlement]) -> Self {
        let mut columns = Self::default();
        for entry in entries {
            let payment = &entry.payment;
            let failure = payment.failure.as_ref();
            columns.ids.push(payment.id.uuid());
            columns
                .statuses_before
                .push(entry.status_before.as_str().to_owned());
            columns.statuses.push(payment.status.as_str().to_owned());
            columns.captured.push(payment.amount_captured);
            columns.versions.push(payment.version);
            columns
                .failure_codes
                .push(failure.map(|failure| failure.code.clone()));
            columns
                .failure_messages
                .push(failure.map(|failure| failure.message.clone()));
            columns
                .gateway_references
                .push(payment.gateway_reference.clone());
            columns.updated_at.push(payment.updated_at);
            columns.event_ids.push(entry.event_id.uuid());
            columns.event_types.push(entry.event_type.to_owned());
            columns.event_data.push(entry.event_data.clone());
        }
        columns
    }
}

/// The ends of the records of a batch as the columns that `UNNEST` takes.
#[derive(Default)]
struct EndColumns {
    statuses: Vec<String>,
    response_statuses: Vec<Option<i16>>,
    bodies: Vec<Option<Vec<u8>>>,
    headers: Vec<Option<Value>>,
    documents: Vec<Option<Value>>,
    /// The TTL of a finished record, the rest of a resting one.
    spans: Vec<PgInterval>,
}

impl EndColumns {
    fn of(entries: &[Settlement]) -> Self {
        let mut columns = Self::default();
        for entry in entries {
            match &entry.end {
                RecordEnd::Finished { response, ttl } => columns.finished(response, *ttl),
                RecordEnd::Resting { rest } => columns.resting(*rest),
            }
        }
        columns
    }

    fn finished(&mut self, response: &StoredResponse, ttl: Duration) {
        let status = if response.status < 300 {
            "completed"
        } else {
            "failed"
        };
        self.statuses.push(status.to_owned());
        self.response_statuses
            .push(i16::try_from(response.status).ok());
        self.bodies.push(Some(response.body.clone()));
        self.headers
            .push(serde_json::to_value(&response.headers).ok());
        self.documents
            .push(serde_json::from_slice(&response.body).ok());
        self.spans.push(interval(ttl));
    }

    fn resting(&mut self, rest: Duration) {
        self.statuses.push("processing".to_owned());
        self.response_statuses.push(None);
        self.bodies.push(None);
        self.headers.push(None);
        self.documents.push(None);
        self.spans.push(interval(rest));
    }
}
