//! `POST /v1/payments` of a service process with `GATEWAY=stripe`, against a sandbox process.

use std::time::Duration;

use chrono::TimeDelta;
use oncepay::gateways::sandbox::journal::{Call, Kind};
use serde_json::json;

use crate::support::{
    client::{payment, payment_with},
    open_shop::OpenShop,
    sandbox::{fault, fault_status},
    wait::wait_until,
};

/// A log line is written in milliseconds; a loaded machine may take longer.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_payment_is_made_once_and_replayed() {
    let shop = OpenShop::open().await;

    let first = shop.client.pay("K", &payment()).await;
    let second = shop.client.pay("K", &payment()).await;

    first.assert_status(201);
    let made = first.json();
    assert_eq!(made["status"], "succeeded");
    assert_eq!(made["gateway"], "stripe");
    assert!(
        made["gateway_reference"]
            .as_str()
            .unwrap()
            .starts_with("pi_")
    );
    second.assert_replays(&first);
    assert_eq!(shop.sandbox.control.effects(), 1);
}

#[tokio::test]
async fn a_decline_is_402_and_replayed() {
    let shop = OpenShop::open().await;
    let body = payment_with("pm_card_insufficient_funds");

    let first = shop.client.pay("K", &body).await;
    let second = shop.client.pay("K", &body).await;

    first.assert_problem(402, "payment-declined");
    second.assert_replays(&first);
    assert_eq!(shop.sandbox.control.effects(), 0);
}

/// B74: an answer that is lost after the money moved is no failure, and a retry brings the truth.
#[tokio::test]
async fn a_lost_answer_is_202_and_the_same_key_is_201_later() {
    for name in ["hang_after_effect", "drop_after_effect", "status_after"] {
        let shop = OpenShop::open().await;
        shop.sandbox.control.fault(fault(name)).await;

        let unknown = shop.client.pay("K", &payment()).await;
        shop.database.age("K", TimeDelta::minutes(1)).await;
        let known = shop.client.pay("K", &payment()).await;

        unknown.assert_status(202);
        assert_eq!(unknown.json()["status"], "processing");
        known.assert_status(201);
        assert_eq!(known.json()["id"], unknown.json()["id"], "{name}");
        assert_eq!(shop.sandbox.control.effects(), 1, "{name}");
    }
}

/// B53: a gateway that certainly did nothing frees the key.
#[tokio::test]
async fn a_refusal_is_503_and_the_key_is_free_again() {
    let shop = OpenShop::open().await;
    let refuse = json!({"fault": "refuse", "times": 3});
    shop.sandbox.control.fault(refuse).await;

    let refused = shop.client.pay("K", &payment()).await;
    let made = shop.client.pay("K", &payment()).await;

    refused.assert_problem(503, "gateway-unavailable");
    made.assert_status(201);
    assert_eq!(shop.sandbox.control.effects(), 1);
}

#[tokio::test]
async fn a_gateway_that_is_down_is_503_and_its_return_is_201() {
    let mut shop = OpenShop::open().await;
    shop.sandbox.kill();

    let refused = shop.client.pay("K", &payment()).await;
    shop.sandbox.restart();
    let made = shop.client.pay("K", &payment()).await;

    refused.assert_problem(503, "gateway-unavailable");
    made.assert_status(201);
    assert_eq!(shop.sandbox.control.effects(), 1);
}

/// What a wrong amount makes of a payment is for a person, never a success.
#[tokio::test]
async fn a_wrong_amount_is_for_a_person() {
    let shop = OpenShop::open().await;
    shop.sandbox.control.fault(fault("wrong_amount")).await;

    let answer = shop.client.pay("K", &payment()).await;

    answer.assert_status(202);
    let status = shop.database.text("SELECT status FROM payments").await;
    assert_eq!(status.as_deref(), Some("requires_review"));
    assert_eq!(shop.sandbox.control.effects(), 1);
}

/// How often the payment was sent.
fn sends(shop: &OpenShop) -> usize {
    let lines = shop.sandbox.control.lines();
    let sends = lines
        .iter()
        .filter(|line| line.kind == Kind::Request && line.call == Call::Authorize);
    sends.count()
}

async fn status(shop: &OpenShop) -> Option<String> {
    shop.database.text("SELECT status FROM payments").await
}

/// D6.6. A 500 that the gateway has kept with the key comes back to every send, and means nothing: it
/// is neither a failure nor a reason to free the key. Once the gateway may have forgotten it, nothing
/// is sent any more, because that would be a payment, and a person looks.
#[tokio::test]
async fn a_server_error_that_is_replayed_stays_unknown_and_ends_in_review_without_an_effect() {
    let shop = OpenShop::open().await;
    let kept = fault_status("status_before", 500);
    shop.sandbox.control.fault(kept).await;

    shop.client.pay("K", &payment()).await.assert_status(202);
    shop.database.age("K", TimeDelta::minutes(1)).await;
    shop.client.pay("K", &payment()).await.assert_status(202);
    let replayed = "\"reason\":\"error-replayed\"";
    wait_until(PATIENCE, async || shop.service.log().contains(replayed)).await;
    let sent = sends(&shop);
    assert_eq!(status(&shop).await.as_deref(), Some("processing"));

    for _look in 0..2 {
        shop.database.age("K", TimeDelta::hours(23)).await;
        shop.client.pay("K", &payment()).await.assert_status(202);
    }

    assert_eq!(sent, 2, "a retry may send while the gateway remembers");
    assert_eq!(sends(&shop), sent, "and not when it may have forgotten");
    assert_eq!(status(&shop).await.as_deref(), Some("requires_review"));
    assert_eq!(shop.sandbox.control.effects(), 0);
}

/// D6.6. The effect behind such an error is found, and not sent again.
#[tokio::test]
async fn the_effect_behind_a_kept_server_error_is_found_without_another_send() {
    let shop = OpenShop::open().await;
    shop.sandbox.control.fault(fault("status_after")).await;

    shop.client.pay("K", &payment()).await.assert_status(202);
    shop.database.age("K", TimeDelta::minutes(1)).await;
    let found = shop.client.pay("K", &payment()).await;

    found.assert_status(201);
    assert_eq!(sends(&shop), 1);
    assert_eq!(shop.sandbox.control.effects(), 1);
}
