//! B15: a service that is cut off from its database while it owns a payment. It knows by its own
//! monotonic clock when its lease is over; then it starts nothing and writes nothing.

use serde_json::json;

use crate::support::{
    client::payment,
    faults::slow_claims,
    process::Process,
    proxy::{Network, Proxy},
    race::{PATIENCE, in_background},
    shop::Shop,
    wait::wait_until,
};

/// Whether the lease of the only record is over, by the clock that decides.
const OVER: &str = "SELECT count(*) FROM idempotency_keys WHERE lease_expires_at < now()";

/// A service that reaches its database by way of a proxy.
async fn behind_a_proxy(shop: &Shop) -> (Process, Proxy) {
    let proxy = Proxy::start(&shop.database).await;
    let service = shop
        .service_at(&proxy.url())
        .env("IDEMPOTENCY_LEASE_TTL", "2s")
        .start();
    (service, proxy)
}

/// B15, I8, I9. The network swallows everything while the gateway works, for longer than the lease.
/// Another service finishes the payment. The owner drops what the gateway tells it, says that it
/// does not know, and what it had sent before arrives when the network is back and changes nothing.
#[tokio::test]
async fn an_owner_that_cannot_renew_its_lease_drops_its_outcome() {
    let shop = Shop::open().await;
    let (owner, proxy) = behind_a_proxy(&shop).await;
    let other = shop.service().start();
    let slow = json!({"fault": "delay", "delay_ms": 3000});
    shop.sandbox.control.fault(slow).await;
    let asking = shop.client(&owner);
    let cut_off = in_background(async move { asking.pay("K", &payment()).await });
    shop.at_the_gateway().await;

    proxy.set(Network::BlackHole);
    let left = async || shop.effects() == 1 && shop.database.count(OVER).await == 1;
    wait_until(PATIENCE, left).await;
    let finished = shop.client(&other).pay("K", &payment()).await;
    let cut_off = cut_off.await.unwrap();
    proxy.set(Network::Up);
    let ready = shop.client(&owner);
    wait_until(PATIENCE, async || ready.get("/readyz").await.status == 200).await;

    finished.assert_status(201);
    cut_off.assert_problem(503, "outcome-unknown");
    let lost = owner.metric("idempotency_leases_lost_total").await;
    assert!((lost - 1.0).abs() < 0.1, "it knows that it lost it: {lost}");
    ready.pay("K", &payment()).await.assert_replays(&finished);
    let twice = "SELECT count(*) FROM idempotency_keys, payments, events
        WHERE fence = 2 AND payments.version = 1 AND position = 1";
    assert_eq!(shop.database.count(twice).await, 1, "one settle, one event");
    assert_eq!((shop.sends(), shop.effects()), (1, 1));
}

/// B15, A5. The answer to a claim arrives when its lease is over. Nothing was sent, and now nothing
/// is: somebody else may be at it.
#[tokio::test]
async fn an_owner_whose_claim_came_back_after_its_lease_sends_nothing() {
    let shop = Shop::open().await;
    let (owner, proxy) = behind_a_proxy(&shop).await;
    slow_claims(&shop.database, "1 second").await;
    let asking = shop.client(&owner);
    let late = in_background(async move { asking.pay("K", &payment()).await });
    let under_way = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event = 'PgSleep'";
    wait_until(PATIENCE, async || shop.database.count(under_way).await == 1).await;

    proxy.set(Network::BlackHole);
    wait_until(PATIENCE, async || shop.database.count(OVER).await == 1).await;
    proxy.set(Network::Up);
    let late = late.await.unwrap();
    let sends_then = shop.sends();
    let retry = shop.client(&owner).pay("K", &payment()).await;

    late.assert_status(202);
    assert_eq!(sends_then, 0, "a step that had not begun must not begin");
    let lost = owner.metric("idempotency_leases_lost_total").await;
    assert!((lost - 1.0).abs() < 0.1, "it knows that it lost it: {lost}");
    retry.assert_status(201);
    assert_eq!(retry.json()["id"], late.json()["id"]);
    assert_eq!((shop.sends(), shop.effects()), (1, 1));
}
