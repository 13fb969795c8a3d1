//! Payments that nobody follows, or that hold what they cannot; and tables that could forget them.

use sqlx::PgConnection;

use crate::audit::Found;

/// A payment that is not what its record's request asked for.
pub(in crate::audit) async fn payment_of_other_request(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Found>> {
    sqlx::query_as!(
        Found,
        r#"-- payment_of_other_request
            SELECT
                record.merchant_id AS "merchant_id?",
                record.resource_id AS "payment_id?",
                record.key AS "key?",
                format(
                    'asked for %s %s, made %s %s',
                    record.request ->> 'amount', record.request ->> 'currency',
                    payment.amount, payment.currency
                ) AS "detail!"
            FROM idempotency_keys AS record
            JOIN payments AS payment
                ON payment.merchant_id = record.merchant_id
                AND payment.id = record.resource_id
            WHERE record.operation = 'payments.create'
              AND (
                  record.request ->> 'amount' IS DISTINCT FROM payment.amount::text
                  OR record.request ->> 'currency' IS DISTINCT FROM payment.currency
              )
            LIMIT 1000"#,
    )
    .fetch_all(connection)
    .await
}

/// More taken than authorised, or more given back than taken. The table's CHECKs refuse it; this is
/// for the day on which somebody has dropped one.
pub(in crate::audit) async fn amounts_out_of_bounds(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Found>> {
    sqlx::query_as!(
        Found,
        r#"-- amounts_out_of_bounds
            SELECT
                merchant_id AS "merchant_id?",
                id AS "payment_id?",
                NULL::text AS "key?",
                format(
                    'of %s captured %s, refunded %s, being refunded %s',
                    amount, amount_captured, amount_refunded, refund_pending
                ) AS "detail!"
            FROM payments
            WHERE amount_captured NOT BETWEEN 0 AND amount
               OR amount_refunded < 0
               OR refund_pending < 0
               OR amount_refunded + refund_pending > amount_captured
            LIMIT 1000"#,
    )
    .fetch_all(connection)
    .await
}

/// A payment in processing that neither a record nor the poller of pending payments will finish.
pub(in crate::audit) async fn payment_forgotten(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Found>> {
    sqlx::query_as!(
        Found,
        r#"-- payment_forgotten
            SELECT
                payment.merchant_id AS "merchant_id?",
                payment.id AS "payment_id?",
                payment.idempotency_key AS "key?",
                'nothing will finish the payment' AS "detail!"
            FROM payments AS payment
            WHERE payment.status = 'processing'
              AND NOT EXISTS (
                  SELECT
                  FROM idempotency_keys AS record
                  WHERE record.merchant_id = payment.merchant_id
                    AND record.resource_id = payment.id
                    AND record.status = 'processing'
              )
              AND NOT EXISTS (
                  SELECT
                  FROM pending_payments AS pending
                  WHERE pending.merchant_id = payment.merchant_id
                    AND pending.payment_id = payment.id
              )
            LIMIT 1000"#,
    )
    .fetch_all(connection)
    .await
}

/// A table that a crash of the server empties.
pub(in crate::audit) async fn table_not_durable(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Found>> {
    sqlx::query_as!(
        Found,
        r#"-- table_not_durable
            SELECT
                NULL::uuid AS "merchant_id?",
                NULL::uuid AS "payment_id?",
                NULL::text AS "key?",
                format('the table %s is not logged', relname) AS "detail!"
            FROM pg_class
            WHERE relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'used_keys'::regclass)
              AND relkind IN ('r', 'p')
              AND relpersistence <> 'p'
            LIMIT 1000"#,
    )
    .fetch_all(connection)
    .await
}
