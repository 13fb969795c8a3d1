//! What must hold when several processes work beside each other: services, and the cleaner.

use chrono::TimeDelta;
use futures_util::future::join_all;
use oncepay::gateways::sandbox::journal;
use serde_json::json;

use crate::support::{
    client::{payment, payment_with},
    command::oncepay,
    race::{PATIENCE, in_background},
    sandbox::fault_status,
    shop::Shop,
    wait::wait_until,
};

/// B21, I1, I5. Requests wait at two services for the first, which finishes at one of them. A
/// waiter that took a record which is not in progress any more for a free one would pay again.
#[tokio::test]
async fn waiters_at_two_services_get_the_answer_of_the_first_when_it_finishes() {
    let shop = Shop::open().await;
    let services = [shop.service().start(), shop.service().start()];
    let clients = [shop.client(&services[0]), shop.client(&services[1])];
    let body = payment_with("pm_slow_30ms");

    for round in 0..20 {
        let key = format!("K{round}");
        let wait = |number: usize| clients[number % 2].pay_preferring(&key, &body, "wait=20");
        let replies = join_all((0..51).map(wait)).await;

        let first = replies.iter().find(|reply| !reply.replayed()).unwrap();
        first.assert_status(201);
        for replay in replies.iter().filter(|reply| *reply != first) {
            replay.assert_replays(first);
        }
    }

    assert_eq!((shop.sends(), shop.effects()), (20, 20), "one for each key");
}

/// B82, I7. A decline is the outcome of its key: when the gateway would approve, the key is still
/// declined, at another service too, and another key is another payment.
#[tokio::test]
async fn a_decline_stays_declined_when_the_gateway_would_approve() {
    let shop = Shop::open().await;
    let services = [shop.service().start(), shop.service().start()];
    let clients = [shop.client(&services[0]), shop.client(&services[1])];
    shop.sandbox
        .control
        .fault(fault_status("status_before", 402))
        .await;

    let declined = clients[0].pay("K", &payment()).await;
    let same = clients[0].pay("K", &payment()).await;
    let elsewhere = clients[1].pay("K", &payment()).await;
    let sends_then = shop.sends();
    let other = clients[0].pay("another", &payment()).await;

    declined.assert_problem(402, "payment-declined");
    assert_eq!(declined.json()["retry_with"], "new_key");
    same.assert_replays(&declined);
    elsewhere.assert_replays(&declined);
    assert_eq!(sends_then, 1, "a replay asks nobody");
    other.assert_status(201);
    assert_eq!((shop.sends(), shop.effects()), (2, 1));
}

/// B87, I12. A payment is at the gateway whose record is a week old, so that each of its times is
/// in the past; the heartbeat keeps its lease. The cleaners of a service and of the command line come
/// by, delete what is finished and expired, and leave it.
#[tokio::test]
async fn cleaners_leave_a_payment_that_is_under_way_however_old() {
    let shop = Shop::open().await;
    let owner = shop.service().env("IDEMPOTENCY_LEASE_TTL", "2s").start();
    let client = shop.client(&owner);
    client.pay("old", &payment()).await.assert_status(201);
    let slow = json!({"fault": "delay", "delay_ms": 4000});
    shop.sandbox.control.fault(slow).await;
    let asking = client.clone();
    let under_way = in_background(async move { asking.pay("K", &payment()).await });
    wait_until(PATIENCE, async || shop.sends() == 2).await;
    for key in ["old", "K"] {
        shop.database.age(key, TimeDelta::weeks(1)).await;
    }

    let _cleaning = shop.service().env("CLEANUP_INTERVAL", "50ms").start();
    let old = "SELECT count(*) FROM idempotency_keys WHERE key = 'old'";
    wait_until(PATIENCE, async || shop.database.count(old).await == 0).await;
    let cleaned = oncepay(&shop.database.url(), &["cleanup"]);
    let made = under_way.await.unwrap();

    cleaned.assert_code(0);
    assert_eq!(cleaned.objects()[0]["rows_deleted"], 0);
    made.assert_status(201);
    client.pay("K", &payment()).await.assert_replays(&made);
    let expired = client.pay("old", &payment()).await;
    expired.assert_problem(410, "idempotency-key-expired");
    let effects = journal::effects(&shop.sandbox.control.lines());
    assert_eq!((effects.len(), shop.effects()), (2, 2), "one for each key");
}
