//! A key whose payment certainly was not executed: it is free again, for the same request only.

use std::sync::Arc;

use chrono::TimeDelta;
use futures_util::future::join_all;
use oncepay::gateways::{NotExecuted, Outcome, sandbox::journal};
use serde_json::json;

use crate::support::{
    app::TestApp,
    client::{payment, payment_with},
    gateway::{Act, Scripted},
    pair::sends,
};

/// As many refusals as one request takes.
fn refusals() -> [Act; 3] {
    [NotExecuted::Unreachable; 3].map(|reason| Act::Say(Outcome::NotExecuted(reason)))
}

/// B23, B53, D6.8. The gateway refuses every send of one request: 503, no payment, and the key free
/// for the same request, which then executes under the same gateway key and the same id.
#[tokio::test]
async fn a_payment_that_was_certainly_not_executed_is_executed_by_the_next_same_request() {
    let app = TestApp::start().await;
    let body = payment_with("pm_error_before_charge_3");
    let reserved = "SELECT resource_id::text FROM used_keys";

    let refused = app.client.pay("K", &body).await;
    let reserved = app.database.text(reserved).await.unwrap();
    let released = "SELECT count(*) FROM idempotency_keys WHERE status = 'failed' AND retryable";
    let released = app.database.count(released).await;
    let payments = app.client.get("/v1/payments").await;
    let executed = app.client.pay("K", &body).await;

    refused.assert_problem(503, "gateway-unavailable");
    assert_eq!(refused.json()["retry_with"], "same_key");
    assert!(refused.json().get("payment_id").is_none(), "there is none");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(released, 1);
    assert_eq!(payments.json()["data"], json!([]));
    executed.assert_status(201);
    let id = format!("pay_{}", reserved.replace('-', ""));
    assert_eq!(executed.json()["id"], id);
    let lines = journal::read(app.sandbox.path().join(journal::FILE_NAME)).unwrap();
    assert!(
        lines
            .iter()
            .all(|line| line.gateway_key == lines[0].gateway_key)
    );
    assert_eq!((sends(&lines), app.effects()), (4, 1));
}

/// D6.8, I6. Another request does not get a released key, and executes nothing.
#[tokio::test]
async fn a_released_key_refuses_another_request() {
    let app = TestApp::start().await;
    app.client
        .pay("K", &payment_with("pm_error_before_charge"))
        .await
        .assert_status(503);

    let other = app.client.pay("K", &payment_with("pm_card_visa")).await;

    other.assert_problem(422, "idempotency-key-reused");
    assert_eq!(other.json()["errors"][0]["pointer"], "/payment_method");
    assert_eq!(app.effects(), 0);
}

/// I1. A released key is claimed again by many at once: one wins, as at the first claim.
#[tokio::test]
async fn of_parallel_retries_of_a_released_key_exactly_one_pays() {
    let app = TestApp::start().await;
    let body = payment_with("pm_error_before_charge_3");
    app.client.pay("K", &body).await.assert_status(503);

    let replies = join_all((0..30).map(async |_| app.client.pay("K", &body).await)).await;

    for reply in &replies {
        assert!(
            [201, 409].contains(&reply.status.as_u16()),
            "{}",
            reply.text()
        );
    }
    assert_eq!(app.sends(), 3 + 1);
    let fences = "SELECT fence FROM idempotency_keys";
    assert_eq!(app.database.count(fences).await, 2, "claimed again once");
    assert_eq!(app.effects(), 1);
    assert_eq!(app.database.count("SELECT count(*) FROM payments").await, 1);
}

/// D5, D7. A released key that nobody came back for is forgotten altogether: it paid nothing.
#[tokio::test]
async fn a_released_key_that_expired_and_was_deleted_is_new() {
    let gateway = Arc::new(Scripted::new(refusals()));
    let app = TestApp::builder().gateway(&gateway).start().await;
    app.client
        .pay("K", &payment_with("pm_card_mastercard"))
        .await
        .assert_status(503);
    app.database.age("K", TimeDelta::hours(25)).await;

    let deleted = app
        .database
        .count("SELECT delete_expired_idempotency_keys(1000)")
        .await;
    let other = app.client.pay("K", &payment()).await;

    assert_eq!(deleted, 1);
    other.assert_status(201);
    assert_eq!(gateway.sent().len(), 4);
}

/// D6.5. The gateway changed between release and retry. Nothing ever reached the old one, so that the
/// new one executes; and record and payment name the gateway that has the money.
#[tokio::test]
async fn a_released_key_is_claimed_again_for_the_gateway_that_gets_it() {
    let before = Arc::new(Scripted::new(refusals()));
    let before = TestApp::builder().gateway(&before).start().await;
    before.client.pay("K", &payment()).await.assert_status(503);
    let other = Arc::new(Scripted::default().named("other"));
    let after = TestApp::builder().beside(&before).gateway(&other);
    let after = after.start().await;

    let paid = before
        .client
        .at(after.client.base())
        .pay("K", &payment())
        .await;

    paid.assert_status(201);
    assert_eq!(other.sent().len(), 1);
    assert_eq!(paid.json()["gateway"], "other");
    for table in ["idempotency_keys", "payments"] {
        let gateway = before
            .database
            .text(&format!("SELECT gateway FROM {table}"))
            .await;
        assert_eq!(gateway.as_deref(), Some("other"), "{table}");
    }
}
