//! Owners over the stripe gateway that die, stop or are slow, as processes: what they leave is
//! finished once, under the same gateway key, by whoever comes next.

use std::time::Duration;

use nix::sys::signal::Signal;
use oncepay::{
    gateways::{Call, sandbox::journal},
    idempotency::{gateway_key::gateway_key, key::IdempotencyKey, operation::Operation},
};
use serde_json::json;
use tokio::time::Instant;

use crate::support::{
    client::{Reply, payment},
    faults::{self, Fault},
    race::{PATIENCE, in_background},
    sandbox::fault,
    shop::{Shop, gateway_keys},
    wait::wait_until,
};

/// Whether the lease of the only record is over, by the clock that decides.
const OVER: &str = "SELECT count(*) FROM idempotency_keys WHERE lease_expires_at < now()";

const SUCCEEDED: &str = "SELECT count(*) FROM payments WHERE status = 'succeeded'";

/// B10, B11, B76, I1, I11. The owner is killed while its send hangs before the effect. A retry at a
/// process that was started anew gets the payment within the lease, whatever the TTL of the record
/// (24 h). The gateway hears the same key again, and compares all else that is sent.
#[tokio::test]
async fn a_killed_owner_s_payment_is_sent_again_as_it_was() {
    let shop = Shop::open().await;
    let service = || shop.service().env("IDEMPOTENCY_LEASE_TTL", "2s").start();
    let mut first = service();
    let client = shop.client(&first);
    shop.sandbox.control.fault(fault("hang_before")).await;
    let lost = in_background(async move { client.pay_or_break("K", &payment()).await });
    shop.at_the_gateway().await;

    first.kill();
    let killed = Instant::now();
    let second = service();
    let client = shop.client(&second);
    let mut answer = client.pay("K", &payment()).await;
    wait_until(PATIENCE, async || {
        answer = client.pay("K", &payment()).await;
        answer.status != 409
    })
    .await;
    let took = killed.elapsed();

    assert!(lost.await.unwrap().is_err(), "nobody answers for the dead");
    answer.assert_status(201);
    // A lease and a second, and as much for the start of a process on a busy machine.
    let limit = Duration::from_secs(4);
    assert!(took < limit, "lease 2 s, and it took {took:?}");
    assert_eq!((shop.sends(), shop.effects()), (2, 1));
    let key = IdempotencyKey::from_path_segment(b"K").unwrap();
    let operation = Operation::PaymentsCreate;
    let expected = gateway_key(shop.merchant_id, &key, operation, Call::Authorize);
    let lines = shop.sandbox.control.lines();
    let keys: Vec<&str> = gateway_keys(&lines).into_iter().collect();
    assert_eq!(keys, [expected.as_str()], "one key for every call");
}

/// B12, I8. The gateway takes twice as long as the lease. The heartbeat keeps it, so that another
/// service tells every retry to wait.
#[tokio::test]
async fn a_lease_is_kept_while_the_gateway_is_slower_than_it() {
    let shop = Shop::open().await;
    let service = || shop.service().env("IDEMPOTENCY_LEASE_TTL", "2s").start();
    let (owner, other) = (service(), service());
    let slow = json!({"fault": "delay", "delay_ms": 4500});
    shop.sandbox.control.fault(slow).await;
    let asking = shop.client(&owner);
    let first = in_background(async move { asking.pay("K", &payment()).await });
    shop.at_the_gateway().await;

    let client = shop.client(&other);
    let (mut told, until) = (Vec::new(), Instant::now() + Duration::from_secs(4));
    wait_until(PATIENCE, async || {
        told.push(client.pay("K", &payment()).await);
        Instant::now() > until
    })
    .await;
    let first = first.await.unwrap();

    for reply in &told {
        reply.assert_problem(409, "idempotency-key-in-progress");
    }
    first.assert_status(201);
    assert_eq!((shop.sends(), shop.effects()), (1, 1));
    let fence = "SELECT fence FROM idempotency_keys";
    assert_eq!(shop.database.count(fence).await, 1, "nobody took over");
}

/// B13, I8, I9. The owner is stopped (SIGSTOP) while its payment is at the gateway, which charges
/// and answers into a socket that nobody reads. Another service takes over, finds the charge and
/// answers. The owner wakes up with an approval in its hands: it writes nothing and answers the
/// same bytes.
#[tokio::test]
async fn an_owner_that_wakes_up_after_its_lease_writes_nothing_and_answers_the_same() {
    let shop = Shop::open().await;
    let service = || shop.service().env("IDEMPOTENCY_LEASE_TTL", "2s").start();
    let (owner, other) = (service(), service());
    let slow = json!({"fault": "delay", "delay_ms": 1000});
    shop.sandbox.control.fault(slow).await;
    let asking = shop.client(&owner);
    let late = in_background(async move { asking.pay("K", &payment()).await });
    shop.at_the_gateway().await;

    owner.signal(Signal::SIGSTOP);
    let left = async || shop.effects() == 1 && shop.database.count(OVER).await == 1;
    wait_until(PATIENCE, left).await;
    let finished = shop.client(&other).pay("K", &payment()).await;
    let rows = "SELECT md5(string_agg(row::text, ',' ORDER BY row::text)) FROM (
        SELECT record::text AS row FROM idempotency_keys AS record
        UNION ALL SELECT payment::text FROM payments AS payment
        UNION ALL SELECT event::text FROM events AS event) AS written";
    let before = shop.database.text(rows).await;
    owner.signal(Signal::SIGCONT);
    let late = late.await.unwrap();

    finished.assert_status(201);
    late.assert_replays(&finished);
    assert_eq!(shop.database.text(rows).await, before, "not one byte");
    assert!(owner.metric("idempotency_leases_lost_total").await > 0.5);
    assert_eq!((shop.sends(), shop.effects()), (1, 1));
}

/// B19, B74, I3, I4. The gateway charges and never answers: 202. The rescuer asks it, and the same
/// key is 201 without a retry in between.
#[tokio::test]
async fn a_charge_that_was_never_answered_is_202_and_201_once_the_rescuer_has_asked() {
    let shop = Shop::open().await;
    let service = shop
        .service()
        .env("GATEWAY_TIMEOUT", "1s")
        .env("RESCUE_INTERVAL", "100ms")
        .start();
    let client = shop.client(&service);
    shop.sandbox.control.fault(fault("hang_after_effect")).await;

    let unknown = client.pay("K", &payment()).await;
    wait_until(PATIENCE, async || shop.database.count(SUCCEEDED).await == 1).await;
    let known = client.pay("K", &payment()).await;

    unknown.assert_status(202);
    assert_eq!(unknown.json()["status"], "processing");
    assert!(unknown.json()["failure"].is_null());
    known.assert_status(201);
    assert!(known.replayed(), "the rescuer has stored the answer");
    assert_eq!(known.json()["id"], unknown.json()["id"]);
    assert_eq!(known.json()["status"], "succeeded");
    assert_eq!((shop.sends(), shop.effects()), (1, 1));
    let asked = shop.sandbox.control.lines();
    let asked = asked.iter().filter(|line| line.call == journal::Call::Find);
    assert!(asked.count() > 0, "it asks, and does not guess");
}

/// B20, I1. The code fails right after the gateway has charged, by an error or a panic. The lease
/// is let go, and the first retry asks the gateway.
#[tokio::test]
async fn a_failure_after_the_charge_is_finished_by_the_first_retry() {
    for (action, status, code) in [
        ("return", 503, "outcome-unknown"),
        ("panic", 500, "internal-error"),
    ] {
        let shop = Shop::open().await;
        let failing = format!("performed=1*{action}");
        let service = shop.service().env("FAILPOINTS", &failing).start();
        let client = shop.client(&service);

        let failed = client.pay("K", &payment()).await;
        let mut retries: Vec<Reply> = Vec::new();
        for _retry in 0..3 {
            retries.push(client.pay("K", &payment()).await);
        }

        failed.assert_problem(status, code);
        retries[0].assert_status(201);
        assert_eq!(retries[0].json()["status"], "succeeded");
        retries[1].assert_replays(&retries[0]);
        retries[2].assert_replays(&retries[0]);
        assert_eq!((shop.sends(), shop.effects()), (1, 1), "{action}");
    }
}

/// B75, D6.10. The settle is rolled back three times after the charge: it alone is repeated.
#[tokio::test]
async fn a_settle_that_is_rolled_back_is_repeated_without_the_gateway() {
    let shop = Shop::open().await;
    let refused = Fault::Refuse("40001");
    faults::meet(&shop.database, "UPDATE ON payments", refused, 3).await;
    let service = shop.service().start();

    let made = shop.client(&service).pay("K", &payment()).await;

    made.assert_status(201);
    assert_eq!(faults::met(&shop.database).await, 4);
    assert_eq!(shop.sandbox.control.lines().len(), 3, "one call, no look");
    let payments = "SELECT count(*) FROM payments";
    assert_eq!(shop.database.count(payments).await, 1);
}
