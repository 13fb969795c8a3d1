//! `GET /v1/idempotency-keys/{key}` and the published policy.

use std::sync::Arc;

use chrono::TimeDelta;
use oncepay::gateways::{NotExecuted, Outcome, Unknown};
use serde_json::{Value, json};

use crate::support::{
    app::TestApp,
    client::{payment, payment_with},
    gateway::{Act, Scripted, approved},
};

/// `status`, `outcome_unknown`, `response_status`, and whether a resource is named.
fn shown(view: &Value) -> (Value, Value, Value, bool) {
    (
        view["status"].clone(),
        view["outcome_unknown"].clone(),
        view["response_status"].clone(),
        view["resource_id"].is_string(),
    )
}

/// Did my request go through? In every state that a record can be in.
#[tokio::test]
async fn a_key_tells_its_state_and_never_the_body() {
    let refused = || Act::Say(Outcome::NotExecuted(NotExecuted::Refused));
    let gateway = Arc::new(Scripted::new([
        Act::WaitThenSay(approved()),
        Act::Say(Outcome::Unknown(Unknown::Timeout)),
        refused(),
        refused(),
        refused(),
    ]));
    let app = TestApp::builder().gateway(&gateway).start().await;
    let (client, body) = (&app.client, payment());
    let see = async |key: &str| {
        let reply = client.get(&format!("/v1/idempotency-keys/{key}")).await;
        assert!(!reply.text().contains("pm_card_visa"));
        reply.assert_status(200).json()
    };

    let (_, processing) = tokio::join!(client.pay("done", &body), async {
        gateway.called(1).await;
        let processing = see("done").await;
        gateway.open();
        processing
    });
    client.pay("unknown", &body).await.assert_status(202);
    client.pay("released", &body).await.assert_status(503);

    let none = Value::Null;
    assert_eq!(
        shown(&processing),
        ("processing".into(), false.into(), none.clone(), true)
    );
    assert_eq!(
        shown(&see("done").await),
        ("completed".into(), false.into(), 201.into(), true)
    );
    assert_eq!(
        shown(&see("unknown").await),
        ("processing".into(), true.into(), none.clone(), true)
    );
    assert_eq!(
        shown(&see("released").await),
        ("released".into(), false.into(), none, false)
    );
}

/// D4: expired is told apart from never used, also when the record is gone.
#[tokio::test]
async fn a_declined_an_expired_and_a_deleted_key_are_told_apart() {
    let app = TestApp::start().await;
    let path = "/v1/idempotency-keys/K";
    let declined = app.client.pay("K", &payment_with("pm_card_declined")).await;

    let failed = app.client.get(path).await;
    app.database.age("K", TimeDelta::hours(25)).await;
    let expired = app.client.get(path).await;
    app.database.execute("DELETE FROM idempotency_keys").await;
    let deleted = app.client.get(path).await;
    let never = app.client.get("/v1/idempotency-keys/L").await;

    assert_eq!(failed.json()["status"], "failed");
    assert_eq!(failed.json()["response_status"], 402);
    for gone in [&expired, &deleted] {
        assert_eq!(gone.json()["status"], "expired");
        assert_eq!(gone.json()["resource_id"], declined.json()["payment_id"]);
        assert_eq!(gone.json()["operation"], "payments.create");
    }
    never.assert_problem(404, "idempotency-key-not-found");
}

/// D4: percent-encoded in paths, so that every key has one.
#[tokio::test]
async fn any_key_is_found_under_its_percent_encoded_path() {
    let app = TestApp::start().await;
    let punctuation = "!#$%&'()*+-./:;<=>?@[]^_`{|}~";
    let longest = "/".repeat(255);
    for key in [
        punctuation,
        &longest,
        "...",
        "a/../b",
        "%2F",
        "K;p=1",
        "a?b=c",
        "#",
    ] {
        let path = percent_encoding::utf8_percent_encode(key, percent_encoding::NON_ALPHANUMERIC);
        app.client.pay(key, &payment()).await.assert_status(201);

        let reply = app
            .client
            .get(&format!("/v1/idempotency-keys/{path}"))
            .await;

        assert_eq!(reply.assert_status(200).json()["idempotency_key"], key);
    }
}

#[tokio::test]
async fn what_is_no_key_is_refused_in_a_path_too() {
    let app = TestApp::start().await;
    for (segment, code) in [
        ("%22K%22", "forbidden-character"),
        ("a%20b", "inner-space"),
        ("%00", "forbidden-character"),
        ("a%2Cb", "forbidden-character"),
        (&"k".repeat(256), "too-long"),
    ] {
        let reply = app
            .client
            .get(&format!("/v1/idempotency-keys/{segment}"))
            .await;

        reply.assert_problem(400, "idempotency-key-invalid");
        assert_eq!(reply.errors()[0].1, code, "{segment}");
    }
    let reply = app.client.get("/v1/idempotency-keys/%FF").await;
    reply.assert_problem(404, "not-found");
}

#[tokio::test]
async fn what_is_no_payment_id_names_no_payment() {
    let app = TestApp::start().await;
    for id in [
        "x",
        "pay_",
        "pay_x",
        "%00",
        "pay_0198F3A1C0DE7ABC8DEF0123456789AB",
        "%E9",
    ] {
        let reply = app.client.get(&format!("/v1/payments/{id}")).await;

        reply.assert_status(404);
    }
}

/// The IETF draft (section 2.3): the policy is published, and it is the one that is enforced.
#[tokio::test]
async fn meta_publishes_the_policy_that_is_enforced() {
    let app = TestApp::builder()
        .settings(|settings| {
            settings.idempotency.idempotency_ttl_completed = Some("48h".to_owned());
            settings.idempotency.idempotency_ttl_failed = Some("2h".to_owned());
            "optional".clone_into(&mut settings.idempotency.idempotency_key_policy);
            "2KiB".clone_into(&mut settings.http.body_limit);
        })
        .start()
        .await;

    let meta = app.client.get("/v1/meta").await.json();
    app.client.pay("ok", &payment()).await.assert_status(201);
    let declined = app
        .client
        .pay("no", &payment_with("pm_card_declined"))
        .await;

    declined.assert_status(402);
    insta::assert_json_snapshot!(meta, { ".service_version" => "…" }, @r#"
    {
      "api_version": "v1",
      "body_limit_bytes": 2048,
      "idempotency_key": {
        "alphabet": "visible ASCII without \" , and \\",
        "length_max": 255,
        "length_min": 1,
        "policy": "optional",
        "ttl_seconds": {
          "completed": 172800,
          "failed": 7200
        },
        "wait_max_seconds": 25
      },
      "service_version": "…"
    }
    "#);
    let lives = "SELECT string_agg(
            round(extract(epoch FROM expires_at - completed_at))::text, ' ' ORDER BY key DESC)
        FROM idempotency_keys";
    assert_eq!(
        app.database.text(lives).await,
        Some("172800 7200".to_owned())
    );
    let large = json!({"reference": "x".repeat(2048)});
    app.client.pay("K", &large).await.assert_status(413);
}
