//! One key is executed once, and every retry gets the same bytes.

use std::sync::Arc;

use oncepay::gateways::{GatewayReference, Outcome};
use sha2::Digest as _;

use crate::support::{
    app::TestApp,
    client::{Reply, payment, payment_with},
    gateway::{Act, Scripted},
};

#[tokio::test]
async fn a_payment_succeeds_and_is_replayed_byte_for_byte() {
    let app = TestApp::start().await;

    let first = app.client.pay("K", &payment()).await;
    let second = app.client.pay("K", &payment()).await;

    first.assert_status(201);
    assert_eq!(first.header("idempotent-replayed"), Some("false"));
    assert_eq!(first.json()["status"], "succeeded");
    second.assert_replays(&first);
    assert_eq!(app.effects(), 1);
    assert_eq!(app.database.count("SELECT count(*) FROM payments").await, 1);
    assert_eq!(app.database.count("SELECT count(*) FROM events").await, 1);
}

#[tokio::test]
async fn a_decline_is_final_and_is_replayed_byte_for_byte() {
    let app = TestApp::start().await;

    let first = app.client.pay("K", &payment_with("pm_card_declined")).await;
    let second = app.client.pay("K", &payment_with("pm_card_declined")).await;

    first.assert_problem(402, "payment-declined");
    second.assert_replays(&first);
    assert_eq!(app.effects(), 0);
}

/// I5, B41: whatever status is stored. The second service shares nothing with the first but the
/// database.
#[tokio::test]
async fn every_stored_answer_is_replayed_byte_for_byte_by_every_service() {
    let app = TestApp::start().await;
    let other = TestApp::builder().beside(&app).start().await;
    let stored = [
        ("pm_card_visa", "automatic", 201),
        ("pm_card_visa", "manual", 201),
        ("pm_pending_then_succeeds", "automatic", 201),
        ("pm_card_declined", "automatic", 402),
        ("pm_card_insufficient_funds", "manual", 402),
        ("pm_nobody_knows_this", "automatic", 402),
    ];
    for (number, (method, capture_method, status)) in stored.into_iter().enumerate() {
        let mut body = payment_with(method);
        body["capture_method"] = capture_method.into();
        let key = format!("K{number}");

        let first = app.client.pay(&key, &body).await;
        let second = app.client.at(other.client.base()).pay(&key, &body).await;
        let third = app.client.pay(&key, &body).await;

        first.assert_status(status);
        second.assert_replays(&first);
        third.assert_replays(&first);
    }
}

/// B42: what belongs to the answer is replayed, what belongs to the request is fresh, and what
/// says "this is a snapshot" is on replays only.
#[tokio::test]
async fn a_replay_has_the_headers_of_the_first_answer_and_says_where_it_comes_from() {
    const OF_REPLAYS: [&str; 3] = [
        "link",
        "idempotency-original-date",
        "idempotency-original-request-id",
    ];
    let app = TestApp::start().await;
    for (method, media_type) in [
        ("pm_card_visa", "application/json"),
        ("pm_card_declined", "application/problem+json"),
    ] {
        let first = app.client.pay(method, &payment_with(method)).await;
        let second = app.client.pay(method, &payment_with(method)).await;

        let location = first.header("location").unwrap();
        let latest = format!("<{location}>; rel=\"latest-version\"");
        assert_eq!(first.header("content-type"), Some(media_type));
        assert_eq!(second.header("link"), Some(latest.as_str()));
        let first_id = first.header("request-id").unwrap();
        assert_eq!(
            second.header("idempotency-original-request-id"),
            Some(first_id)
        );
        assert_ne!(second.header("request-id"), Some(first_id));
        let original_date = second.header("idempotency-original-date").unwrap();
        assert!(chrono::DateTime::parse_from_rfc3339(original_date).is_ok());
        let names = |reply: &Reply| {
            let mut names: Vec<_> = reply.headers.keys().map(ToString::to_string).collect();
            names.retain(|name| !OF_REPLAYS.contains(&name.as_str()));
            names.sort();
            names
        };
        assert_eq!(names(&first), names(&second));
        assert!(OF_REPLAYS.iter().all(|name| first.header(name).is_none()));
        assert_eq!(app.client.get(location).await.status, 200);
    }
}

/// B48: `response` is jsonb, which has another order; replays come from `response_body`.
#[tokio::test]
async fn what_postgres_makes_of_the_document_does_not_change_the_replayed_bytes() {
    let app = TestApp::start().await;
    let odd = r#"{ "reference" : "z",  "metadata":{"b":"2","aa":"1"},
        "payment_method":"pm_card_visa","currency":"EUR", "amount":1999 }"#;

    let first = app.client.pay_bytes("K", odd).await;
    app.database
        .execute("UPDATE idempotency_keys SET response = '{\"id\": 1}'")
        .await;
    let second = app.client.pay_bytes("K", odd).await;

    second.assert_replays(&first);
    let stored = "SELECT encode(sha256(response_body), 'hex') FROM idempotency_keys";
    let hash = hex::encode(sha2::Sha256::digest(&second.body));
    assert_eq!(app.database.text(stored).await, Some(hash));
}

/// B61, B48: how a request is written is no part of what it asks for; a null is not sent.
#[tokio::test]
async fn member_order_white_space_escapes_and_nulls_make_no_other_request() {
    let app = TestApp::start().await;
    let plain =
        r#"{"amount":1999,"currency":"EUR","payment_method":"pm_card_visa","reference":"é/"}"#;
    let first = app.client.pay_bytes("K", plain).await;
    for same in [
        r#"{"reference":"é/","payment_method":"pm_card_visa","currency":"EUR","amount":1999}"#,
        "\r\n{ \"amount\" :\t1999 , \"currency\":\"EUR\",\"payment_method\":\"pm_card_visa\",\"reference\":\"é/\" }\n",
        r#"{"\u0061mount":1999,"currency":"\u0045UR","payment_method":"pm_card_visa","reference":"\u00e9\/"}"#,
        r#"{"amount":1999,"currency":"EUR","payment_method":"pm_card_visa","reference":"é/","customer":null,"metadata":null,"nonsense":null}"#,
    ] {
        let again = app.client.pay_bytes("K", same).await;

        again.assert_replays(&first);
    }
    assert_eq!(app.effects(), 1);
}

/// B49: a text that PostgreSQL cannot store must not fail the settle after the gateway answered.
#[tokio::test]
async fn odd_text_of_a_gateway_is_made_safe_and_stored() {
    let reference = GatewayReference("ref\0\u{7}1".to_owned());
    let gateway = Scripted::new([Act::Say(Outcome::Approved { reference })]);
    let scripted = TestApp::builder().gateway(&Arc::new(gateway)).start().await;
    let app = TestApp::start().await;
    let odd = payment_with("pm_card_declined_odd_text");

    let declined = app.client.pay("K", &odd).await;
    let approved = scripted.client.pay("K", &payment()).await;

    declined.assert_problem(402, "payment-declined");
    app.client.pay("K", &odd).await.assert_replays(&declined);
    let shown = app.client.get(declined.header("location").unwrap()).await;
    let message = shown.json()["failure"]["message"].clone();
    assert_eq!(message, "Do not honour\u{fffd}[31m\u{202e}");
    approved.assert_status(201);
    assert_eq!(approved.json()["gateway_reference"], "ref1");
    let again = scripted.client.pay("K", &payment()).await;
    again.assert_replays(&approved);
}
