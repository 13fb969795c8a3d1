//! Records that contradict themselves, their payment, or the clock.

use sqlx::PgConnection;

use crate::audit::Found;

/// Two records that the gateway takes for one: it would move the money of one of them only.
/// Over all merchants, because the gateway knows none of them.
pub(in crate::audit) async fn gateway_key_shared(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Found>> {
    sqlx::query_as!(
        Found,
        r#"-- gateway_key_shared
            SELECT
                record.merchant_id AS "merchant_id?",
                record.resource_id AS "payment_id?",
                record.key AS "key?",
                format('%s records have the gateway key %s', shared.count, shared.gateway_key)
                    AS "detail!"
            FROM idempotency_keys AS record
            JOIN (
                SELECT gateway_key, count(*) AS count
                FROM idempotency_keys
                GROUP BY gateway_key
                HAVING count(*) > 1
            ) AS shared USING (gateway_key)
            LIMIT 1000"#,
    )
    .fetch_all(connection)
    .await
}

/// A record that names a payment which is not there, though it was not released.
pub(in crate::audit) async fn record_without_payment(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Found>> {
    sqlx::query_as!(
        Found,
        r#"-- record_without_payment
            SELECT
                record.merchant_id AS "merchant_id?",
                record.resource_id AS "payment_id?",
                record.key AS "key?",
                format('a record in status %s has no payment', record.status) AS "detail!"
            FROM idempotency_keys AS record
            LEFT JOIN payments AS payment
                ON payment.merchant_id = record.merchant_id
                AND payment.id = record.resource_id
            WHERE record.operation = 'payments.create'
              AND NOT record.retryable
              AND payment.id IS NULL
            LIMIT 1000"#,
    )
    .fetch_all(connection)
    .await
}

/// A payment that was decided without its record: the key would never be answered with it.
pub(in crate::audit) async fn record_of_decided_payment(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Found>> {
    sqlx::query_as!(
        Found,
        r#"-- record_of_decided_payment
            SELECT
                record.merchant_id AS "merchant_id?",
                record.resource_id AS "payment_id?",
                record.key AS "key?",
                format('the payment is %s and its record still in processing', payment.status)
                    AS "detail!"
            FROM idempotency_keys AS record
            JOIN payments AS payment
                ON payment.merchant_id = record.merchant_id
                AND payment.id = record.resource_id
            WHERE record.operation = 'payments.create'
              AND record.status = 'processing'
              AND payment.status NOT IN ('processing', 'requires_review')
            LIMIT 1000"#,
    )
    .fetch_all(connection)
    .await
}

/// An answer that says *failed* of a payment that did not, or *done* of one that failed. A pending
/// payment may fail after its answer, which said so.
pub(in crate::audit) async fn answer_contradicts_payment(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Found>> {
    sqlx::query_as!(
        Found,
        r#"-- answer_contradicts_payment
            SELECT
                record.merchant_id AS "merchant_id?",
                record.resource_id AS "payment_id?",
                record.key AS "key?",
                format(
                    'the answer is %s and the payment %s', record.response_status, payment.status
                ) AS "detail!"
            FROM idempotency_keys AS record
            JOIN payments AS payment
                ON payment.merchant_id = record.merchant_id
                AND payment.id = record.resource_id
            WHERE record.operation = 'payments.create'
              AND (
                  (record.response_status = 402 AND payment.status <> 'failed')
                  OR (
                      record.status = 'completed'
                      AND payment.status = 'failed'
                      AND record.response ->> 'status' IS DISTINCT FROM 'processing'
                  )
              )
            LIMIT 1000"#,
    )
    .fetch_all(connection)
    .await
}

/// An answer that shows another payment than the record's: a merchant would see a stranger's.
pub(in crate::audit) async fn answer_of_other_payment(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Found>> {
    sqlx::query_as!(
        Found,
        r#"-- answer_of_other_payment
            SELECT
                record.merchant_id AS "merchant_id?",
                record.resource_id AS "payment_id?",
                record.key AS "key?",
                format('the answer shows %s', COALESCE(record.response ->> 'id', 'no payment'))
                    AS "detail!"
            FROM idempotency_keys AS record
            WHERE record.operation = 'payments.create'
              AND record.status = 'completed'
              AND record.response ->> 'id'
                  IS DISTINCT FROM 'pay_' || replace(record.resource_id::text, '-', '')
            LIMIT 1000"#,
    )
    .fetch_all(connection)
    .await
}

/// A record or payment whose key is not remembered as used, or for something else: when the
/// record is deleted, the key would execute again.
pub(in crate::audit) async fn key_not_used(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Found>> {
    sqlx::query_as!(
        Found,
        r#"-- key_not_used
            SELECT
                made.merchant_id AS "merchant_id?",
                made.resource_id AS "payment_id?",
                made.key AS "key?",
                CASE
                    WHEN used.key IS NULL THEN 'the key is not remembered as used'
                    ELSE 'the key is remembered as used for something else'
                END AS "detail!"
            FROM (
                SELECT merchant_id, key, resource_id
                FROM idempotency_keys
                UNION
                SELECT merchant_id, idempotency_key, id
                FROM payments
            ) AS made (merchant_id, key, resource_id)
            LEFT JOIN used_keys AS used USING (merchant_id, key)
            WHERE used.resource_id IS DISTINCT FROM made.resource_id
            LIMIT 1000"#,
    )
    .fetch_all(connection)
    .await
}

/// A record that nobody looks after: its lease ran out a quarter of an hour ago, and a rescuer takes
/// it within seconds.
pub(in crate::audit) async fn record_unattended(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Found>> {
    sqlx::query_as!(
        Found,
        r#"-- record_unattended
            SELECT
                merchant_id AS "merchant_id?",
                resource_id AS "payment_id?",
                key AS "key?",
                format('its lease ran out at %s', lease_expires_at) AS "detail!"
            FROM idempotency_keys
            WHERE status = 'processing'
              AND lease_expires_at < now() - interval '15 minutes'
            LIMIT 1000"#,
    )
    .fetch_all(connection)
    .await
}

/// An outcome that is unknown for longer than any gateway remembers a key (a day), with the longest
/// rest and an hour to spare, and that no person was asked to look at.
pub(in crate::audit) async fn outcome_unknown_for_too_long(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Found>> {
    sqlx::query_as!(
        Found,
        r#"-- outcome_unknown_for_too_long
            SELECT
                record.merchant_id AS "merchant_id?",
                record.resource_id AS "payment_id?",
                record.key AS "key?",
                format('the outcome is unknown since %s', record.unknown_since) AS "detail!"
            FROM idempotency_keys AS record
            JOIN payments AS payment
                ON payment.merchant_id = record.merchant_id
                AND payment.id = record.resource_id
            WHERE record.status = 'processing'
              AND record.unknown_since < now() - interval '26 hours'
              AND payment.status <> 'requires_review'
            LIMIT 1000"#,
    )
    .fetch_all(connection)
    .await
}

/// A released record whose payment is still there: the release says that nothing was executed.
pub(in crate::audit) async fn released_with_payment(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Found>> {
    sqlx::query_as!(
        Found,
        r#"-- released_with_payment
            SELECT
                record.merchant_id AS "merchant_id?",
                record.resource_id AS "payment_id?",
                record.key AS "key?",
                format('the record is released and its payment %s', payment.status) AS "detail!"
            FROM idempotency_keys AS record
            JOIN payments AS payment
                ON payment.merchant_id = record.merchant_id
                AND payment.id = record.resource_id
            WHERE record.operation = 'payments.create'
              AND record.retryable
            LIMIT 1000"#,
    )
    .fetch_all(connection)
    .await
}
