//! B99: a failover to an asynchronous standby, which has not heard of the last commits. The money
//! has moved and the record is gone; only the gateway remembers. A retry must reach it with the
//! same gateway key and the same parameters.

use oncepay::{
    gateways::{Call, sandbox::journal},
    idempotency::{gateway_key::gateway_key, key::IdempotencyKey, operation::Operation},
};
use serde_json::{Value, json};

use crate::support::{
    client::payment,
    race::{PATIENCE, in_background},
    replicated_shop::ReplicatedShop,
    replication::Replication,
    shop::pay_until_made,
    wait::wait_until,
};

/// The gateway key of a merchant's payment, as the journal has it.
fn key_of(shop: &ReplicatedShop, key: &[u8]) -> String {
    let merchant_id = shop.servers.merchant_id;
    let key = IdempotencyKey::from_path_segment(key).unwrap();
    let operation = Operation::PaymentsCreate;
    let key = gateway_key(merchant_id, &key, operation, Call::Authorize);
    key.as_str().to_owned()
}

/// The journal's lines of one kind of authorisation.
fn lines(shop: &ReplicatedShop, kind: journal::Kind) -> Vec<journal::Line> {
    let mut lines = shop.sandbox.control.lines();
    lines.retain(|line| line.kind == kind && line.call == journal::Call::Authorize);
    lines
}

/// What a request says, without its time.
fn parameters(line: &journal::Line) -> (&str, Option<i64>, Option<&str>) {
    let currency = line.currency.as_deref();
    (&line.gateway_key, line.amount, currency)
}

/// B99, I1, I11. Claim and settle are lost. The audit shows a charge that no payment accounts for;
/// the retry sends the same again, and the gateway answers with what it did. It compares every
/// parameter, metadata included, and would refuse a key that came back with others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_that_a_failover_lost_is_found_at_the_gateway_by_the_retry() {
    let Some(shop) = ReplicatedShop::open(Replication::Asynchronous).await else {
        return;
    };
    let service = shop.service().env("IDEMPOTENCY_LEASE_TTL", "2s").start();
    let client = shop.client(&service);
    client.pay("before", &payment()).await.assert_status(201);
    shop.servers.caught_up().await;
    shop.servers.sever().await;
    let lost = client.pay("K", &payment()).await;
    shop.servers.fail_over().await;

    let records = "SELECT count(*) FROM used_keys WHERE key = 'K'";
    let records_then = shop.servers.count(records).await;
    let gap = shop.audit();
    let made = client.pay("K", &payment()).await;

    lost.assert_status(201);
    made.assert_status(201);
    assert!(!made.replayed(), "nobody remembers it here");
    assert_eq!(records_then, 0, "the loss is what this is about");
    gap.assert_code(1);
    let gateway_key = key_of(&shop, b"K");
    let breaches = gap.objects();
    assert_eq!(
        breaches.len(),
        2,
        "one breach and the summary: {breaches:?}"
    );
    assert_eq!(breaches[0]["check"], "effect_without_payment");
    assert_eq!(breaches[0]["gateway_key"], gateway_key.as_str());
    assert_same_charge(&lost.json(), &made.json());
    let mut sent = lines(&shop, journal::Kind::Request);
    sent.retain(|line| line.gateway_key == gateway_key);
    assert_eq!(sent.len(), 2, "the lost send and the retry's");
    assert_eq!(parameters(&sent[0]), parameters(&sent[1]));
    assert_eq!(shop.effects(), 2, "one each");
    client.pay("K", &payment()).await.assert_replays(&made);
    shop.audit().assert_code(0);
}

/// The payment may have another id; the charge is the same.
#[track_caller]
fn assert_same_charge(lost: &Value, made: &Value) {
    for member in [
        "status",
        "amount",
        "amount_captured",
        "currency",
        "gateway_reference",
    ] {
        assert_eq!(made[member], lost[member], "{member}");
    }
}

/// The half of it: the claim arrived at the standby, and the settle did not. The record is in
/// progress and its lease over; whoever takes over asks the gateway, and does not send.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_whose_settle_a_failover_lost_is_finished_from_its_claim() {
    let Some(shop) = ReplicatedShop::open(Replication::Asynchronous).await else {
        return;
    };
    let service = shop.service().env("IDEMPOTENCY_LEASE_TTL", "2s").start();
    let client = shop.client(&service);
    let slow = json!({"fault": "delay", "delay_ms": 4000});
    shop.sandbox.control.fault(slow).await;
    let asking = client.clone();
    let answered = in_background(async move { asking.pay("K", &payment()).await });
    wait_until(PATIENCE, async || shop.sends() == 1).await;
    shop.servers.caught_up().await;
    shop.servers.sever().await;
    let lost = answered.await.unwrap();
    shop.servers.fail_over().await;

    let undecided = "SELECT count(*) FROM idempotency_keys AS record
        JOIN payments AS payment ON payment.id = record.resource_id
        WHERE record.status = 'processing' AND payment.status = 'processing'";
    let undecided_then = shop.servers.count(undecided).await;
    let made = pay_until_made(&client, "K").await;

    lost.assert_status(201);
    assert_eq!(undecided_then, 1, "the loss is what this is about");
    assert_same_charge(&lost.json(), &made.json());
    assert_eq!(made.json()["id"], lost.json()["id"]);
    assert_eq!(shop.sends(), 1, "whoever takes over asks before it sends");
    assert_eq!(shop.effects(), 1);
    client.pay("K", &payment()).await.assert_replays(&made);
    shop.audit().assert_code(0);
}
