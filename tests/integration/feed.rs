//! The feed of events: gapless, in the order of commits, and one per merchant.

use std::time::Duration;

use futures_util::future::join_all;

use crate::support::{
    app::TestApp,
    client::{Client, payment, payment_with},
    process::Process,
    wait::wait_until,
};

const PAYMENTS: usize = 40;

/// I14 and I16: two services settle payments of two merchants at once. Each merchant's positions
/// are 1…n, each payment's sequence is its version, and the counter stands at the newest.
#[tokio::test]
async fn positions_have_no_gaps_after_concurrent_settles_of_two_merchants() {
    let one = TestApp::start().await;
    let other = TestApp::builder().beside(&one).start().await;
    let (_, second) = one.other_merchant().await;
    let clients = [
        one.client.clone(),
        one.client.at(other.client.base()),
        second.clone(),
        second.at(other.client.base()),
    ];

    let pay = |number: usize| {
        let client = &clients[number % clients.len()];
        // Declines have events too.
        let method = if number.is_multiple_of(5) {
            "pm_card_declined"
        } else {
            "pm_card_visa"
        };
        async move {
            client
                .pay(&format!("K{number}"), &payment_with(method))
                .await
        }
    };
    join_all((0..PAYMENTS * 2).map(pay)).await;

    let wrong = "SELECT count(*) FROM (
            SELECT merchant_id, min(position) AS first, max(position) AS last, count(*) AS count
            FROM events GROUP BY merchant_id
        ) AS feed
        JOIN event_counters USING (merchant_id)
        WHERE first <> 1 OR last <> count OR count <> event_counters.position OR count <> 40";
    assert_eq!(one.database.count(wrong).await, 0);
    let feeds = "SELECT count(DISTINCT merchant_id) FROM events";
    assert_eq!(one.database.count(feeds).await, 2);
    let sequences = "SELECT count(*) FROM events
        JOIN payments ON payments.merchant_id = events.merchant_id AND payments.id = payment_id
        WHERE sequence = version AND sequence = 1";
    assert_eq!(one.database.count(sequences).await, 80);
}

/// D10: position order is commit order. A consumer that reads while payments settle never sees a
/// position whose predecessors are missing; with a sequence in place of the counter it would.
#[tokio::test]
async fn a_consumer_never_sees_a_position_before_its_predecessors() {
    const LANES: usize = 8;
    let app = TestApp::start().await;
    let lane = async |lane: usize| {
        for number in 0..PAYMENTS / 4 {
            let key = format!("K{lane}-{number}");
            let paid = app.client.pay(&key, &payment()).await;
            paid.assert_status(201);
        }
    };
    let pool = app.database.pool().await;
    let all = i64::try_from(PAYMENTS / 4 * LANES).unwrap();
    let consume = async {
        let mut between = 0;
        loop {
            let seen: (i64, i64) =
                sqlx::query_as("SELECT count(*), COALESCE(max(position), 0) FROM events")
                    .fetch_one(&pool)
                    .await
                    .unwrap();
            assert_eq!(seen.0, seen.1, "a gap was seen");
            if seen.0 == all {
                return between;
            }
            between += i32::from(seen.0 > 0);
        }
    };

    let (_, between) = tokio::join!(join_all((0..LANES).map(lane)), consume);

    assert!(between > 0, "the consumer must look while payments settle");
}

/// I14 and I3 through a crash: an owner that was killed after the effect and before its settle
/// leaves no hole in the feed, and whoever takes over writes the one event.
#[tokio::test]
async fn a_take_over_writes_the_one_event_of_its_payment() {
    let app = TestApp::start().await;
    let mut doomed = Process::builder(&app.database, app.sandbox.path())
        .env("IDEMPOTENCY_LEASE_TTL", "2s")
        .start();
    let body = payment_with("pm_slow_after_charge_9s");
    let at_doomed = app.client.at(doomed.base());
    let paying = at_doomed.request(reqwest::Method::POST, "/v1/payments");
    let paying = paying.header("idempotency-key", "K").json(&body);
    let charged = wait_until(Duration::from_secs(10), async || app.effects() == 1);
    tokio::select! {
        reply = paying.send() => panic!("{reply:?}"),
        () = charged => doomed.kill(),
    }

    let settled = settle_by_retries(&app.client, &body);
    settled.await;

    let events = "SELECT count(*) FROM events WHERE position = 1 AND sequence = 1";
    assert_eq!(app.database.count(events).await, 1);
    assert_eq!(app.database.count("SELECT count(*) FROM events").await, 1);
    assert_eq!(app.effects(), 1);
}

/// Sends the request again until it is answered for good.
async fn settle_by_retries(client: &Client, body: &serde_json::Value) {
    wait_until(Duration::from_secs(10), async || {
        client.pay("K", body).await.status == 201
    })
    .await;
}
