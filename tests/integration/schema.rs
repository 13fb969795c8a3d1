//! What the schema itself promises, whatever program writes to it.

use std::collections::BTreeSet;

use oncepay::payments::state::PaymentStatus;

use crate::support::database::TestDatabase;

/// Tables of ours; sqlx's own list of migrations is not.
const OURS: &str = "relnamespace = 'public'::regnamespace AND relname <> '_sqlx_migrations'";

/// B91: a column without a time zone means another instant to every session.
#[tokio::test]
async fn no_column_is_a_timestamp_without_time_zone() {
    let database = TestDatabase::create().await;

    let without = database
        .texts(
            "SELECT table_name || '.' || column_name FROM information_schema.columns
             WHERE table_schema = 'public'
                AND (data_type LIKE '%without time zone' OR data_type = 'date')",
        )
        .await;

    assert_eq!(without, Vec::<String>::new());
}

/// B98: an unlogged table is empty after a crash, with the money already moved.
#[tokio::test]
async fn every_table_and_index_survives_a_crash() {
    let database = TestDatabase::create().await;

    let volatile = database
        .texts(
            "SELECT relname::text FROM pg_class
             WHERE relnamespace = 'public'::regnamespace AND relpersistence <> 'p'",
        )
        .await;
    let tables = database
        .texts(&format!(
            "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND {OURS} ORDER BY 1"
        ))
        .await;

    assert_eq!(volatile, Vec::<String>::new());
    assert_eq!(
        tables,
        [
            "api_keys",
            "event_counters",
            "events",
            "idempotency_keys",
            "merchants",
            "payments",
            "pending_payments",
            "used_keys"
        ]
    );
}

/// D5: every table, column and function says what it is for.
#[tokio::test]
async fn every_table_column_and_function_has_a_comment() {
    let database = TestDatabase::create().await;

    let silent = database
        .texts(&format!(
            "SELECT relname::text FROM pg_class
             WHERE relkind = 'r' AND {OURS} AND obj_description(oid, 'pg_class') IS NULL
             UNION ALL
             SELECT relname || '.' || attname FROM pg_class
             JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
             WHERE relkind = 'r' AND {OURS} AND col_description(pg_class.oid, attnum) IS NULL
             UNION ALL
             SELECT proname || '()' FROM pg_proc
             WHERE pronamespace = 'public'::regnamespace
                AND obj_description(oid, 'pg_proc') IS NULL"
        ))
        .await;

    assert_eq!(silent, Vec::<String>::new());
}

/// I16 and D5: a key that does not start with the merchant is one that merchants share. Merchants
/// and API keys are read before the merchant is known.
#[tokio::test]
async fn every_unique_and_foreign_key_starts_with_the_merchant() {
    let database = TestDatabase::create().await;

    let shared = database
        .texts(&format!(
            "SELECT pg_class.relname || ': ' || keys.name FROM pg_class
             JOIN (
                 SELECT indrelid AS relation, indexrelid::regclass::text AS name, indkey[0] AS first
                 FROM pg_index WHERE indisunique
                 UNION ALL
                 SELECT conrelid, conname::text, conkey[1] FROM pg_constraint WHERE contype = 'f'
             ) AS keys ON keys.relation = pg_class.oid
             LEFT JOIN pg_attribute
                 ON attrelid = keys.relation AND attnum = keys.first
             WHERE {OURS} AND relkind = 'r' AND relname NOT IN ('merchants', 'api_keys')
                AND attname IS DISTINCT FROM 'merchant_id'"
        ))
        .await;

    assert_eq!(shared, Vec::<String>::new());
}

/// D5: each status of a record has exactly its columns. Of all combinations of status, release,
/// dates, lease and answer, those that mean something are accepted, and no other.
#[tokio::test]
async fn a_record_has_exactly_the_columns_of_its_status() {
    let database = TestDatabase::create().await;

    database.execute(TRY_RECORDS).await;

    // status, retryable, sent, leased, unknown, completed, expires, answer
    let accepted = database
        .texts("SELECT label FROM accepted ORDER BY label")
        .await;
    assert_eq!(
        accepted,
        [
            "completed f t f f t later 201",
            "completed f t f f t later no-document",
            "failed f t f f t later 402",
            "failed t f f f t later none",
            "processing f t t f f none none",
            "processing f t t t f none none",
        ]
    );
    let tried = database.count("SELECT count FROM tried").await;
    assert_eq!(tried, 3 * 2 * 2 * 2 * 2 * 2 * 3 * 9, "all combinations");
}

const TRY_RECORDS: &str = "
CREATE TABLE accepted (label text);
CREATE TABLE tried (count bigint);
DO $$
DECLARE
    it record;
    tries bigint := 0;
BEGIN
    FOR it IN
        SELECT *
        FROM UNNEST(ARRAY['processing', 'completed', 'failed']) AS status,
            UNNEST(ARRAY[true, false]) AS retryable,
            UNNEST(ARRAY[true, false]) AS sent,
            UNNEST(ARRAY[true, false]) AS leased,
            UNNEST(ARRAY[true, false]) AS unknown,
            UNNEST(ARRAY[true, false]) AS completed,
            UNNEST(ARRAY['none', 'later', 'same']) AS expires,
            (VALUES
                ('none', NULL, NULL, NULL, NULL),
                ('201', 201, '{}', '[]', '{}'),
                ('no-document', 201, '{}', '[]', NULL),
                ('402', 402, '{}', '[]', '{}'),
                ('302', 302, '{}', '[]', '{}'),
                ('503', 503, '{}', '[]', '{}'),
                ('no-status', NULL, '{}', '[]', '{}'),
                ('no-body', 201, NULL, '[]', '{}'),
                ('no-headers', 402, '{}', NULL, '{}')
            ) AS answer (name, code, body, headers, document)
    LOOP
        tries := tries + 1;
        BEGIN
            INSERT INTO idempotency_keys (
                merchant_id, key, operation, request_hash, hash_version, request, resource_id,
                gateway, gateway_key, fence, owner, attempts, request_id,
                status, retryable, first_sent_at, lease_expires_at, unknown_since, completed_at,
                expires_at, response_status, response_body, response_headers, response
            ) VALUES (
                gen_random_uuid(), 'K', 'payments.create', decode(repeat('00', 32), 'hex'), 1,
                '{}', gen_random_uuid(), 'sandbox', 'G', 1, gen_random_uuid(), 1, 'R',
                it.status, it.retryable,
                CASE WHEN it.sent THEN now() END,
                CASE WHEN it.leased THEN now() END,
                CASE WHEN it.unknown THEN now() END,
                CASE WHEN it.completed THEN now() END,
                CASE it.expires WHEN 'later' THEN now() + interval '1 s' WHEN 'same' THEN now() END,
                it.code, it.body::bytea, it.headers::jsonb, it.document::jsonb
            );
            INSERT INTO accepted VALUES (concat_ws(
                ' ', it.status, it.retryable, it.sent, it.leased, it.unknown, it.completed,
                it.expires, it.name
            ));
        EXCEPTION WHEN check_violation THEN
        END;
    END LOOP;
    INSERT INTO tried VALUES (tries);
END $$";

/// I13 and D8: amounts stay within each other, and each status has its amounts and its failure.
#[tokio::test]
async fn a_payment_has_only_amounts_and_a_failure_that_its_status_allows() {
    let database = TestDatabase::create().await;

    database.execute(TRY_PAYMENTS).await;

    let accepted: BTreeSet<String> = database
        .texts("SELECT label FROM accepted")
        .await
        .into_iter()
        .collect();
    let mut allowed = BTreeSet::new();
    for status in PaymentStatus::ALL {
        for captured in [-1, 0, 40, 100, 101] {
            for (refunded, pending) in AMOUNTS_BACK {
                for failure in ["none", "both", "code", "message"] {
                    for capture in ["automatic", "manual"] {
                        if allows(status, [captured, refunded, pending], failure, capture) {
                            allowed.insert(format!(
                                "{status} {captured} {refunded} {pending} {failure} {capture}"
                            ));
                        }
                    }
                }
            }
        }
    }
    assert_eq!(accepted, allowed);
}

/// Refunded and pending; the same pairs stand in [`TRY_PAYMENTS`].
const AMOUNTS_BACK: [(i64, i64); 8] = [
    (0, 0),
    (-1, 0),
    (0, -1),
    (40, 0),
    (0, 40),
    (40, 1),
    (100, 0),
    (60, 40),
];

fn allows(
    status: PaymentStatus,
    [captured, refunded, pending]: [i64; 3],
    failure: &str,
    capture: &str,
) -> bool {
    use PaymentStatus::{Canceled, Failed, Processing, RequiresCapture, RequiresReview, Succeeded};
    let amounts = (0..=100).contains(&captured)
        && refunded >= 0
        && pending >= 0
        && refunded + pending <= captured;
    let of_status = match status {
        Succeeded => captured > 0,
        RequiresCapture => captured == 0 && capture == "manual",
        Failed | Canceled => captured == 0,
        Processing | RequiresReview => true,
    };
    let reason = if status == Failed { "both" } else { "none" };
    amounts && of_status && failure == reason
}

const TRY_PAYMENTS: &str = "
CREATE TABLE accepted (label text);
DO $$
DECLARE
    it record;
BEGIN
    FOR it IN
        SELECT *
        FROM UNNEST(ARRAY[
                'processing', 'succeeded', 'requires_capture', 'failed', 'canceled',
                'requires_review'
            ]) AS status,
            UNNEST(ARRAY[-1, 0, 40, 100, 101]) AS captured,
            (VALUES (0, 0), (-1, 0), (0, -1), (40, 0), (0, 40), (40, 1), (100, 0), (60, 40))
                AS back (refunded, pending),
            (VALUES ('none', NULL, NULL), ('both', 'c', 'm'), ('code', 'c', NULL),
                ('message', NULL, 'm')) AS failure (name, code, message),
            UNNEST(ARRAY['automatic', 'manual']) AS capture_method
    LOOP
        BEGIN
            INSERT INTO payments (
                merchant_id, id, idempotency_key, status, amount, amount_captured, amount_refunded,
                refund_pending, currency, payment_method, capture_method, failure_code,
                failure_message, gateway, gateway_key, created_at, updated_at
            ) VALUES (
                gen_random_uuid(), gen_random_uuid(), 'K', it.status, 100, it.captured,
                it.refunded, it.pending, 'EUR', 'pm', it.capture_method, it.code, it.message,
                'sandbox', 'G', now(), now()
            );
            INSERT INTO accepted VALUES (concat_ws(
                ' ', it.status, it.captured, it.refunded, it.pending, it.name, it.capture_method
            ));
        EXCEPTION WHEN check_violation THEN
        END;
    END LOOP;
END $$";

/// B79 and B77 behind the API: what no request may ask for, no program may write.
#[tokio::test]
async fn an_amount_or_currency_that_cannot_be_is_refused() {
    let database = TestDatabase::create().await;
    let mut accepted = Vec::new();

    for (amount, currency) in [
        ("0", "EUR"),
        ("-1", "EUR"),
        ("1000000000001", "EUR"),
        ("1", "eur"),
        ("1", "EURO"),
        ("1", ""),
        ("1", "ÉUR"),
    ] {
        let insert = format!(
            "INSERT INTO payments (
                merchant_id, id, idempotency_key, status, amount, currency, payment_method,
                capture_method, gateway, gateway_key, created_at, updated_at
             ) VALUES (
                gen_random_uuid(), gen_random_uuid(), 'K', 'processing', {amount}, '{currency}',
                'pm', 'automatic', 'sandbox', 'G', now(), now()
             )"
        );
        let error = database.try_execute(&insert).await;
        if error.as_deref() != Some("23514") {
            accepted.push((amount, currency, error));
        }
    }

    assert_eq!(accepted, []);
}

/// B24: the edges of D8, pair by pair, for the statement that forgets its WHERE.
#[tokio::test]
async fn the_database_knows_the_same_edges_as_the_program() {
    let database = TestDatabase::create().await;

    for from in PaymentStatus::ALL {
        for to in PaymentStatus::ALL.into_iter().filter(|to| *to != from) {
            database.execute("DELETE FROM payments").await;
            database.execute(&payment_in(from)).await;
            let failure = if to == PaymentStatus::Failed {
                "'f'"
            } else {
                "NULL"
            };
            let captured = if to == PaymentStatus::Succeeded {
                100
            } else {
                0
            };
            let update = format!(
                "UPDATE payments SET status = '{to}', amount_captured = {captured},
                    failure_code = {failure}, failure_message = {failure}"
            );

            let error = database.try_execute(&update).await;

            assert_eq!(error.is_none(), from.may_become(to), "{from} → {to}");
        }
    }
}

fn payment_in(status: PaymentStatus) -> String {
    let captured = if status == PaymentStatus::Succeeded {
        100
    } else {
        0
    };
    let failure = if status == PaymentStatus::Failed {
        "'f'"
    } else {
        "NULL"
    };
    format!(
        "INSERT INTO payments (
            merchant_id, id, idempotency_key, status, amount, amount_captured, currency,
            payment_method, capture_method, failure_code, failure_message, gateway, gateway_key,
            created_at, updated_at
         ) VALUES (
            gen_random_uuid(), gen_random_uuid(), 'K', '{status}', 100, {captured}, 'EUR', 'pm',
            'manual', {failure}, {failure}, 'sandbox', 'G', now(), now()
         )"
    )
}
