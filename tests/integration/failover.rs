//! A primary that dies while a synchronous standby has all that it confirmed, and a standby that is
//! away: what was answered 201 is there, and no answer says more than is known.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use oncepay::gateways::sandbox::journal;
use serde_json::json;
use tokio::time::Instant;

use crate::support::{
    client::{Client, Reply, payment},
    race::{PATIENCE, in_background},
    replicated_shop::ReplicatedShop,
    replication::Replication,
    shop::pay_until_made,
    wait::wait_until,
};

/// How many shoppers pay at once, and how many payments they make before the primary dies and
/// after another has taken its place.
const SHOPPERS: usize = 8;
const PAYMENTS: usize = 40;

/// What shoppers share.
#[derive(Debug, Default)]
struct Street {
    made: AtomicUsize,
    /// Answers that were not 201, and requests without one.
    troubles: AtomicUsize,
    closing: AtomicBool,
}

/// Pays under one key after another, each until it is made; gives what was answered first.
async fn go_shopping(client: Client, shopper: usize, street: Arc<Street>) -> Vec<(String, Reply)> {
    let mut paid = Vec::new();
    while !street.closing.load(Ordering::Relaxed) {
        let key = format!("S{shopper}-{}", paid.len());
        let made = pay_patiently(&client, &key, &street).await;
        street.made.fetch_add(1, Ordering::Relaxed);
        paid.push((key, made));
    }
    paid
}

/// Sends the same until it is made.
async fn pay_patiently(client: &Client, key: &str, street: &Street) -> Reply {
    let patience = Instant::now() + Duration::from_mins(1);
    loop {
        match client.pay_or_break(key, &payment()).await {
            Ok(reply) if reply.status == 201 => return reply,
            trouble => assert!(Instant::now() < patience, "{key}: {trouble:?}"),
        }
        street.troubles.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// I1, I2, I3, I5, I15, I18. The primary is killed under load and its synchronous standby promoted.
/// Every payment that was answered 201, before or after, is replayed byte for byte; every key that
/// was under way ends in 201; each has one effect, and the audit finds nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_under_load_loses_no_answered_payment_and_makes_none_twice() {
    let Some(shop) = ReplicatedShop::open(Replication::Synchronous).await else {
        return;
    };
    let service = shop
        .service()
        .env("IDEMPOTENCY_LEASE_TTL", "2s")
        .env("RESCUE_INTERVAL", "200ms")
        .start();
    let client = shop.client(&service);
    let street = Arc::new(Street::default());
    let shoppers =
        (0..SHOPPERS).map(|shopper| go_shopping(client.clone(), shopper, Arc::clone(&street)));
    let shopping = in_background(join_all(shoppers));
    let made = || street.made.load(Ordering::Relaxed);
    wait_until(PATIENCE, async || made() >= PAYMENTS).await;

    shop.servers.fail_over().await;
    let before = made();
    wait_until(PATIENCE, async || made() >= before + PAYMENTS).await;
    street.closing.store(true, Ordering::Relaxed);
    let paid: Vec<(String, Reply)> = shopping.await.unwrap().concat();

    assert!(
        street.troubles.load(Ordering::Relaxed) > 0,
        "a failover that nobody felt was none"
    );
    for (key, first) in &paid {
        client.pay(key, &payment()).await.assert_replays(first);
    }
    let effects = journal::effects(&shop.sandbox.control.lines());
    assert_eq!(effects.len(), paid.len(), "an effect for each key");
    assert!(effects.values().all(|count| *count == 1), "{effects:?}");
    let open = "SELECT count(*) FROM idempotency_keys WHERE status <> 'completed'";
    assert_eq!(shop.servers.count(open).await, 0);
    shop.audit().assert_code(0);
}

/// I10, D6.3. The standby is away, so that no commit is confirmed. A claim is given up at its
/// deadline and its outcome not known, also to a retry that waits behind it: it is committed here,
/// and executed once the standby is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_waits_for_an_absent_standby_is_outcome_unknown_and_sends_nothing() {
    let Some(shop) = ReplicatedShop::open(Replication::Synchronous).await else {
        return;
    };
    let service = shop.service().env("IDEMPOTENCY_LEASE_TTL", "2s").start();
    let client = shop.client(&service);
    client.pay("before", &payment()).await.assert_status(201);
    shop.servers.sever().await;
    let asked = Instant::now();

    let first = client.pay("K", &payment()).await;
    let took = asked.elapsed();
    let retry = client.pay("K", &payment()).await;
    let sends_then = shop.sends();
    shop.servers.mend();
    let made = pay_until_made(&client, "K").await;

    for reply in [&first, &retry] {
        reply.assert_problem(503, "outcome-unknown");
        assert_eq!(reply.json()["retry_with"], "same_key");
    }
    // The claim's deadline of five seconds, and as much for the look at what became of it.
    assert!(took < Duration::from_secs(11), "{took:?}");
    assert_eq!(sends_then, 1, "nothing is sent without a confirmed claim");
    client.pay("K", &payment()).await.assert_replays(&made);
    assert_eq!((shop.sends(), shop.effects()), (2, 2));
}

/// I2, I4. The standby goes away while the gateway charges. The settle waits, so that nobody is
/// told of a payment which a failover could lose; the client hears that it is not known yet. When
/// the standby is back the same payment is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settle_that_waits_for_an_absent_standby_is_told_to_nobody_before_it_is_back() {
    let Some(shop) = ReplicatedShop::open(Replication::Synchronous).await else {
        return;
    };
    let service = shop
        .service()
        .env("GATEWAY_TIMEOUT", "5s")
        .env("REQUEST_TIMEOUT", "6s")
        .start();
    let client = shop.client(&service);
    let slow = json!({"fault": "delay", "delay_ms": 2000});
    shop.sandbox.control.fault(slow).await;
    let asking = client.clone();
    let first = in_background(async move { asking.pay("K", &payment()).await });
    wait_until(PATIENCE, async || shop.sends() == 1).await;

    shop.servers.sever().await;
    let first = first.await.unwrap();
    let retry = client.pay("K", &payment()).await;
    let effects_then = shop.effects();
    shop.servers.mend();
    let made = pay_until_made(&client, "K").await;

    assert_eq!(effects_then, 1, "the money had moved");
    first.assert_status(202);
    assert_eq!(first.json()["status"], "processing");
    retry.assert_problem(409, "idempotency-key-in-progress");
    assert_eq!(made.json()["id"], first.json()["id"]);
    assert_eq!(made.json()["status"], "succeeded");
    assert_eq!((shop.sends(), shop.effects()), (1, 1));
}

/// D6.3. The address leads to a standby that is not promoted yet, as a virtual one may for a
/// moment. It can be read and not written: an owner with a charge in its hands keeps trying, and
/// settles when it is promoted; nobody is told that nothing was executed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_settles_on_the_standby_when_it_is_promoted() {
    let Some(shop) = ReplicatedShop::open(Replication::Synchronous).await else {
        return;
    };
    let service = shop.service().start();
    let client = shop.client(&service);
    let slow = json!({"fault": "delay", "delay_ms": 1000});
    shop.sandbox.control.fault(slow).await;
    let asking = client.clone();
    let first = in_background(async move { asking.pay("K", &payment()).await });
    wait_until(PATIENCE, async || shop.sends() == 1).await;

    shop.servers.kill_primary();
    shop.servers.lead_to_standby();
    let refused = client.pay("other", &payment()).await;
    let repeated = "a settle did not come through and is repeated";
    wait_until(PATIENCE, async || service.log().contains(repeated)).await;
    shop.servers.promote().await;
    let first = first.await.unwrap();

    refused.assert_problem(503, "service-unavailable");
    first.assert_status(201);
    let fence = "SELECT fence FROM idempotency_keys WHERE key = 'K'";
    assert_eq!(shop.servers.count(fence).await, 1, "its owner settled");
    client.pay("K", &payment()).await.assert_replays(&first);
    assert_eq!((shop.sends(), shop.effects()), (1, 1));
    shop.audit().assert_code(0);
}
