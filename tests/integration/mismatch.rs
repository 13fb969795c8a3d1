//! The same key with another request: always 422, never executed (I6).

use std::sync::Arc;

use serde_json::{Value, json};

use crate::support::{
    app::TestApp,
    client::{payment, send},
    gateway::{Act, Scripted, approved},
};

fn other_amount() -> Value {
    let mut other = payment();
    other["amount"] = 2999.into();
    other
}

fn pairs(pointers: &[&str]) -> Vec<(String, String)> {
    pointers
        .iter()
        .map(|pointer| ((*pointer).to_owned(), "differs".to_owned()))
        .collect()
}

/// B64, I6. Interleaving: the first request waits at the gateway, another request with its key
/// comes, the first one ends, the other one comes again.
#[tokio::test]
async fn another_request_is_refused_while_the_first_is_in_flight_and_after_it() {
    let gateway = Arc::new(Scripted::new([Act::WaitThenSay(approved())]));
    let app = TestApp::builder().gateway(&gateway).start().await;
    let (client, body) = (app.client.clone(), payment());
    let first = async { client.pay("K", &body).await };
    let others = async {
        gateway.called(1).await;
        let during = app.client.pay("K", &other_amount()).await;
        gateway.open();
        during
    };

    let (first, during) = tokio::join!(first, others);
    let after = app.client.pay("K", &other_amount()).await;

    first.assert_status(201);
    for refused in [during, after] {
        refused.assert_problem(422, "idempotency-key-reused");
        assert_eq!(refused.errors(), pairs(&["/amount"]));
        assert!(!refused.text().contains("1999"), "values are never named");
        assert_eq!(refused.header("x-should-retry"), Some("false"));
        assert!(!refused.replayed());
    }
    assert_eq!(gateway.sent().len(), 1);
    app.client.pay("K", &payment()).await.assert_replays(&first);
}

/// D4: every member counts, also one that is added, left out, or spelled out with its default.
#[tokio::test]
async fn the_members_that_differ_are_named() {
    let app = TestApp::start().await;
    let mut first = payment();
    first["metadata"] = json!({"a": "1", "b": "2"});
    app.client.pay("K", &first).await.assert_status(201);
    for (change, pointers) in [
        (
            json!({"amount": 2999, "reference": "r2"}),
            &["/amount", "/reference"][..],
        ),
        (json!({"reference": null}), &["/reference"]),
        (json!({"capture_method": "automatic"}), &["/capture_method"]),
        (
            json!({"metadata": {"a": "1", "b": "3", "c/d": "4"}}),
            &["/metadata/b", "/metadata/c~1d"],
        ),
        (json!({"metadata": null}), &["/metadata"]),
    ] {
        let mut other = first.clone();
        let members = change.as_object().unwrap().clone();
        other.as_object_mut().unwrap().extend(members);

        let reply = app.client.pay("K", &other).await;

        reply.assert_problem(422, "idempotency-key-reused");
        assert_eq!(reply.errors(), pairs(pointers), "{change}");
    }
    assert_eq!(app.effects(), 1);
}

/// B59, B68: path and query are part of the request, and nothing moves between them and the body.
#[tokio::test]
async fn the_same_body_with_another_query_is_another_request() {
    let app = TestApp::start().await;
    let pay = async |query: &str| {
        let path = format!("/v1/payments{query}");
        let request = app.client.request(reqwest::Method::POST, &path);
        let request = request
            .header("content-type", "application/json")
            .header("idempotency-key", "K")
            .body(payment().to_string());
        send(request).await
    };
    let first = pay("?a=1").await;
    for query in ["", "?", "?a=2", "?a=1&", "?A=1", "?a=%31"] {
        let other = pay(query).await;

        other.assert_problem(422, "idempotency-key-reused");
        assert_eq!(other.errors(), [], "no member differs: {query}");
        assert!(other.text().contains("query"), "{}", other.text());
    }
    pay("?a=1").await.assert_replays(&first);
    assert_eq!(app.effects(), 1);
}

/// I6: a decline is an answer too; the key stays with its request.
#[tokio::test]
async fn after_a_decline_another_request_needs_another_key() {
    let app = TestApp::start().await;
    let mut declined = payment();
    declined["payment_method"] = "pm_card_declined".into();
    app.client.pay("K", &declined).await.assert_status(402);

    let other = app.client.pay("K", &payment()).await;
    let new_key = app.client.pay("L", &payment()).await;

    other.assert_problem(422, "idempotency-key-reused");
    assert_eq!(other.json()["retry_with"], "new_key");
    new_key.assert_status(201);
    assert_eq!(app.effects(), 1);
}
