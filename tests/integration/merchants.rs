//! Merchants never see, block or infer each other's keys (I16), and nobody gets in without a key.

use reqwest::{Method, header::HeaderMap};
use serde_json::json;

use crate::support::{
    app::TestApp,
    client::{Client, Reply, payment, send},
};

/// B57, I16.
#[tokio::test]
async fn two_merchants_with_the_same_key_are_independent() {
    let app = TestApp::start().await;
    let (_id, other) = app.other_merchant().await;
    let mut larger = payment();
    larger["amount"] = 2999.into();

    let one = app.client.pay("K", &payment()).await;
    let two = other.pay("K", &payment()).await;
    let mismatch = other.pay("K", &larger).await;

    one.assert_status(201);
    two.assert_status(201);
    assert!(!two.replayed());
    assert_ne!(one.json()["id"], two.json()["id"]);
    mismatch.assert_problem(422, "idempotency-key-reused");
    let own = one.json()["id"].as_str().unwrap().to_owned();
    for reply in [&two, &mismatch] {
        assert!(
            !reply.text().contains(&own),
            "nothing of the other's is told"
        );
    }
    assert_eq!(app.effects(), 2);
    other.pay("K", &payment()).await.assert_replays(&two);
}

/// I16: what another merchant has looks exactly like what nobody has.
#[tokio::test]
async fn what_belongs_to_another_merchant_does_not_exist() {
    let app = TestApp::start().await;
    let (_id, other) = app.other_merchant().await;
    let paid = app.client.pay("K", &payment()).await;
    let location = paid.header("location").unwrap();
    let nowhere = "/v1/payments/pay_0198f3a1c0de7abc8def0123456789ab";

    let theirs = other.get(location).await;
    let nobodys = other.get(nowhere).await;
    let their_key = other.get("/v1/idempotency-keys/K").await;
    let listed = other.get("/v1/payments?idempotency_key=K").await;

    theirs.assert_problem(404, "payment-not-found");
    assert_eq!(without_instance(&theirs), without_instance(&nobodys));
    their_key.assert_problem(404, "idempotency-key-not-found");
    assert_eq!(listed.json()["data"], json!([]));
    assert_eq!(app.client.get(location).await.status, 200);
}

/// B58: 401 before any look at the key: the same answer whether the key exists or not, and
/// whatever is wrong with the credential.
#[tokio::test]
async fn without_a_valid_api_key_every_refusal_is_the_same() {
    let app = TestApp::start().await;
    let (merchant, revoked) = app.other_merchant().await;
    revoked.pay("K", &payment()).await.assert_status(201);
    app.database
        .execute(
            "UPDATE api_keys SET revoked_at = now() WHERE merchant_id <> (
            SELECT merchant_id FROM api_keys ORDER BY created_at LIMIT 1)",
        )
        .await;
    let mut wrong_secret = app.client.secret().to_owned();
    wrong_secret.pop();
    wrong_secret.push('x');
    let mut refusals = Vec::new();
    for key in ["K", "never-used"] {
        for client in [
            revoked.clone(),
            app.client.with_secret(&wrong_secret),
            app.client.with_secret("sk_unknown"),
            app.client.with_secret(""),
        ] {
            refusals.push(client.pay(key, &payment()).await);
        }
        refusals.push(pay_anonymously(&app.client, key, None).await);
        refusals.push(pay_anonymously(&app.client, key, Some("Basic Zm9vOmJhcg==")).await);
    }

    for refusal in &refusals {
        refusal.assert_problem(401, "unauthenticated");
        assert_eq!(refusal.header("www-authenticate"), Some("Bearer"));
        assert_eq!(without_instance(refusal), without_instance(&refusals[0]));
        assert_eq!(stable_headers(refusal), stable_headers(&refusals[0]));
    }
    assert_eq!(app.effects(), 1, "{merchant}");
}

async fn pay_anonymously(client: &Client, key: &str, authorization: Option<&str>) -> Reply {
    let mut request = client
        .anonymous(Method::POST, "/v1/payments")
        .header("idempotency-key", key)
        .header("content-type", "application/json")
        .body(payment().to_string());
    if let Some(authorization) = authorization {
        request = request.header("authorization", authorization);
    }
    send(request).await
}

fn without_instance(reply: &Reply) -> serde_json::Value {
    let mut document = reply.json();
    document["instance"].take();
    document
}

fn stable_headers(reply: &Reply) -> HeaderMap {
    let mut headers = reply.headers.clone();
    for of_this_request in ["request-id", "date"] {
        headers.remove(of_this_request);
    }
    headers
}
