//! Gaps between what happened and what the feed tells.

use sqlx::PgConnection;

use crate::audit::Found;

/// A feed whose positions are not 1, 2, 3, … up to its counter.
pub(in crate::audit) async fn feed_has_gaps(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Found>> {
    sqlx::query_as!(
        Found,
        r#"-- feed_has_gaps
            SELECT
                feed.merchant_id AS "merchant_id?",
                NULL::uuid AS "payment_id?",
                NULL::text AS "key?",
                format(
                    'the counter is at %s, with %s events from %s to %s',
                    feed.position, feed.count, feed.first, feed.last
                ) AS "detail!"
            FROM (
                SELECT
                    merchant_id,
                    COALESCE(counter.position, 0) AS position,
                    count(event.position) AS count,
                    COALESCE(min(event.position), 1) AS first,
                    COALESCE(max(event.position), 0) AS last
                FROM event_counters AS counter
                FULL JOIN events AS event USING (merchant_id)
                GROUP BY merchant_id, counter.position
            ) AS feed
            WHERE feed.first <> 1
               OR feed.last <> feed.position
               OR feed.count <> feed.position
            LIMIT 1000"#,
    )
    .fetch_all(connection)
    .await
}

/// A payment with more or fewer events than changes: each settle writes one of each.
pub(in crate::audit) async fn payment_without_its_events(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Found>> {
    sqlx::query_as!(
        Found,
        r#"-- payment_without_its_events
            SELECT
                payment.merchant_id AS "merchant_id?",
                payment.id AS "payment_id?",
                payment.idempotency_key AS "key?",
                format(
                    'version %s with %s events, the last %s',
                    payment.version, count(event.sequence), COALESCE(max(event.sequence), 0)
                ) AS "detail!"
            FROM payments AS payment
            LEFT JOIN events AS event
                ON event.merchant_id = payment.merchant_id
                AND event.payment_id = payment.id
            GROUP BY payment.merchant_id, payment.id
            HAVING count(event.sequence) <> payment.version
                OR COALESCE(max(event.sequence), 0) <> payment.version
            LIMIT 1000"#,
    )
    .fetch_all(connection)
    .await
}

/// An event of a payment that the merchant does not have.
pub(in crate::audit) async fn event_without_payment(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Found>> {
    sqlx::query_as!(
        Found,
        r#"-- event_without_payment
            SELECT
                event.merchant_id AS "merchant_id?",
                event.payment_id AS "payment_id?",
                NULL::text AS "key?",
                format('the event at %s tells of a payment that is not there', event.position)
                    AS "detail!"
            FROM events AS event
            LEFT JOIN payments AS payment
                ON payment.merchant_id = event.merchant_id
                AND payment.id = event.payment_id
            WHERE payment.id IS NULL
            LIMIT 1000"#,
    )
    .fetch_all(connection)
    .await
}
