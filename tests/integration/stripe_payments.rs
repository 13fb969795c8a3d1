//! `POST /v1/payments` of a service process with `GATEWAY=stripe`, against a sandbox process.

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::json;
use tempfile::TempDir;

use crate::support::{
    client::{Client, payment, payment_with},
    database::TestDatabase,
    process::Process,
    sandbox::{SandboxProcess, fault},
    shop::over_stripe,
};

struct Shop {
    client: Client,
    database: Arc<TestDatabase>,
    sandbox: SandboxProcess,
    _service: Process,
    _folder: TempDir,
}

impl Shop {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = Arc::new(TestDatabase::create().await);
        let (_merchant, secret) = database.merchant("T1").await;
        let sandbox = SandboxProcess::start(&folder.path().join("journal.ndjson"));
        let service = Process::builder(&database, folder.path()).env("GATEWAY_TIMEOUT", "1s");
        let service = over_stripe(service, &sandbox.control).start();
        Self {
            client: Client::new(service.base(), &secret),
            database,
            sandbox,
            _service: service,
            _folder: folder,
        }
    }
}

#[tokio::test]
async fn a_payment_is_made_once_and_replayed() {
    let shop = Shop::open().await;

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
    let shop = Shop::open().await;
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
        let shop = Shop::open().await;
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
    let shop = Shop::open().await;
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
    let mut shop = Shop::open().await;
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
    let shop = Shop::open().await;
    shop.sandbox.control.fault(fault("wrong_amount")).await;

    let answer = shop.client.pay("K", &payment()).await;

    answer.assert_status(202);
    let status = shop.database.text("SELECT status FROM payments").await;
    assert_eq!(status.as_deref(), Some("requires_review"));
    assert_eq!(shop.sandbox.control.effects(), 1);
}
