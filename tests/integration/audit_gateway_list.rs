//! The list of the gateway that an audit compares with: read to its end, or an error and no result.

use oncepay::{
    clock::{Clock as _, SystemClock},
    gateways::sandbox::journal,
};
use serde_json::{Value, json};

use crate::support::{
    app::TestApp,
    audit::{assert_clean, assert_fails, audit_with, checks, summary},
    client::payment,
    command::oncepay,
    open_shop::{FOREIGN, OpenShop, shop_with_payments},
    says::{Says, json_answer},
};

/// The oldest object stands on the last page of each list.
#[tokio::test]
async fn a_list_of_many_pages_is_compared_to_its_end() {
    let shop = OpenShop::open().await;
    shop.client
        .pay("first", &payment())
        .await
        .assert_status(201);
    let reference = shop.reference("first").await;
    let refund = format!("payment_intent={reference}&amount=1&metadata[oncepay_gateway_key]=R");
    shop.by_hand("/v1/refunds", &refund).await;
    let other = shop.by_hand("/v1/payment_intents", FOREIGN).await.json();
    let other = other["id"].as_str().unwrap();
    let refund_of_other = format!("payment_intent={other}&amount=1");
    for _object in 0..230 {
        shop.by_hand("/v1/payment_intents", FOREIGN).await;
    }
    for _object in 0..130 {
        shop.by_hand("/v1/refunds", &refund_of_other).await;
    }
    let lose = "UPDATE payments SET gateway_key = 'lost', gateway_reference = 'lost'";
    shop.database.execute(lose).await;

    let said = shop.audit();

    let found = checks(&said);
    for check in [
        "effect_without_payment",
        "payment_without_effect",
        "refund_without_payment",
    ] {
        assert!(found.contains(check), "{check}: {}", said.stdout);
    }
    let compared = &summary(&said)["gateway"];
    assert_eq!(compared["objects"], 2);
    assert_eq!(compared["foreign"], 361);
}

#[tokio::test]
async fn a_gateway_that_cannot_be_reached_or_refuses_is_an_error_and_no_result() {
    let mut shop = shop_with_payments().await;
    for asked in [
        json!({"fault": "refuse", "call": "find"}),
        json!({"fault": "status_before", "call": "find", "status": 500}),
        json!({"fault": "drop_after_effect", "call": "find"}),
        json!({"fault": "hang_before", "call": "find"}),
    ] {
        shop.sandbox.control.fault(asked.clone()).await;
        assert_fails(&shop.audit(), "the gateway cannot be compared with");
    }
    assert_clean(&shop.audit());

    shop.sandbox.kill();

    assert_fails(&shop.audit(), "the gateway cannot be asked for its list");
}

fn object(id: &str, created: i64) -> Value {
    json!({
        "id": id, "object": "payment_intent", "created": created, "status": "succeeded",
        "amount": 700, "amount_received": 700, "currency": "eur", "metadata": {},
    })
}

fn page(data: &Value, has_more: bool) -> String {
    json!({"object": "list", "data": data, "has_more": has_more}).to_string()
}

/// Now, in whole seconds.
fn now() -> i64 {
    SystemClock.now().timestamp()
}

/// A page that cannot be believed. Read as if nothing were wrong, each would end the list early, or
/// never, or leave something out.
fn malformed() -> Vec<(&'static str, String)> {
    let fresh = |id: &str| object(id, now());
    let with = |name: &str, value: Value| {
        let mut changed = fresh("pi_1");
        changed[name] = value;
        page(&json!([changed]), false)
    };
    let many: Vec<Value> = (0..101).map(|n| fresh(&format!("pi_{n}"))).collect();
    let ours = json!({"oncepay_gateway_key": "K"});
    let mut unknown_state = fresh("pi_1");
    unknown_state["metadata"] = ours;
    unknown_state["status"] = "sold".into();
    vec![
        ("nothing", String::new()),
        ("no JSON", "<html>".to_owned()),
        (
            "an error",
            json!({"error": {"type": "api_error"}}).to_string(),
        ),
        ("an empty object", "{}".to_owned()),
        (
            "no list",
            json!({"object": "search_result", "data": [], "has_more": false}).to_string(),
        ),
        (
            "no data",
            json!({"object": "list", "has_more": false}).to_string(),
        ),
        ("no end", json!({"object": "list", "data": []}).to_string()),
        (
            "an end that is none",
            json!({"object": "list", "data": [], "has_more": "no"}).to_string(),
        ),
        ("more, but nothing", page(&json!([]), true)),
        ("the same for ever", page(&json!([fresh("pi_1")]), true)),
        ("twice", page(&json!([fresh("pi_1"), fresh("pi_1")]), false)),
        ("too many", page(&json!(many), false)),
        (
            "too old",
            page(&json!([object("pi_1", now() - 500_000)]), false),
        ),
        ("no object", page(&json!([null]), false)),
        ("no id", with("id", Value::Null)),
        ("an id that is none", with("id", "pi_1&x".into())),
        ("no time", with("created", Value::Null)),
        ("an amount as text", with("amount", "700".into())),
        ("another type", with("object", "refund".into())),
        (
            "a state that there is not",
            page(&json!([unknown_state]), false),
        ),
        (
            "a cut page",
            page(&json!([fresh("pi_1")]), false).replace("}]", ""),
        ),
        (
            "too long",
            page(&json!([]), false) + &" ".repeat(9 * 1024 * 1024),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_cannot_be_believed_is_an_error_and_no_result() {
    let shop = OpenShop::open().await;
    let empty = || json_answer(200, &page(&json!([]), false));
    let believed = Says::start(move |_| empty()).await;
    assert_clean(&shop.audit_at(&believed.base));

    for (name, body) in malformed() {
        let answer = json_answer(200, &body);
        let says = Says::start(move |request| {
            if request.starts_with("GET /v1/payment_intents?") {
                answer.clone()
            } else {
                empty()
            }
        })
        .await;

        let said = shop.audit_at(&says.base);

        assert_eq!(said.code, 1, "{name}: {said:?}");
        assert_fails(&said, "the gateway cannot be compared with");
        assert!(!said.stderr.contains("panicked"), "{name}: {}", said.stderr);
    }
}

/// A sandbox that is not there, or forgets, would have lost every payment; a key that is missing is a
/// setting that is.
#[tokio::test]
async fn a_gateway_that_is_not_set_up_is_an_error_and_makes_nothing() {
    let app = TestApp::start().await;
    app.client.pay("K", &payment()).await.assert_status(201);
    let missing = app.sandbox.path().join("missing");

    let forgets = audit_with(&app.database, |_| {});
    let elsewhere = audit_with(&app.database, |command| {
        command.env("SANDBOX_DIR", &missing);
    });
    let no_key = audit_with(&app.database, |command| {
        command.env("GATEWAY", "stripe");
    });
    let since_alone = oncepay(&app.database.url(), &["audit", "--since", "1h"]);

    assert_fails(&forgets, "SANDBOX_DIR");
    assert_fails(&elsewhere, "SANDBOX_DIR");
    assert!(!missing.exists());
    assert_eq!(no_key.code, 2, "{no_key:?}");
    assert!(no_key.stderr.contains("STRIPE_SECRET_KEY"), "{no_key:?}");
    assert_eq!(since_alone.code, 2, "{since_alone:?}");
    assert!(app.sandbox.path().join(journal::FILE_NAME).exists());
}
