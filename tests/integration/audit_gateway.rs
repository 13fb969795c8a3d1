//! `oncepay audit --gateway`: the database held against the gateway's own list, with real processes.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use oncepay::gateways::sandbox::journal;
use serde_json::{Value, json};

use crate::support::{
    app::TestApp,
    client::{payment, payment_with},
    command::{Said, oncepay},
    sandbox::fault,
    says::{Says, json_answer},
    shop::{Shop, audit},
};

const FOREIGN: &str = "amount=700&currency=eur&payment_method=pm_card_visa&confirm=true";

/// A payment whose money is only held.
fn held() -> Value {
    let mut held = payment();
    held["capture_method"] = "manual".into();
    held
}

/// One payment of each kind, as the service leaves them.
async fn shop_with_payments() -> Shop {
    let shop = Shop::open().await;
    shop.client.pay("visa", &payment()).await.assert_status(201);
    shop.client.pay("held", &held()).await.assert_status(201);
    shop.sandbox.control.fault(fault("drop_after_effect")).await;
    for (key, method, status) in [
        ("unknown", "pm_card_visa", 202),
        ("declined", "pm_card_declined", 402),
        ("pending", "pm_pending_then_succeeds", 201),
        ("released", "pm_error_before_charge", 503),
    ] {
        let reply = shop.client.pay(key, &payment_with(method)).await;
        reply.assert_status(status);
    }
    shop
}

fn checks(said: &Said) -> BTreeSet<String> {
    let objects = said.objects();
    let checks = objects.iter().filter_map(|line| line["check"].as_str());
    checks.map(str::to_owned).collect()
}

#[track_caller]
fn summary(said: &Said) -> Value {
    said.objects().pop().expect("there must be a summary")
}

#[track_caller]
fn assert_clean(said: &Said) -> Value {
    said.assert_code(0);
    let summary = summary(said);
    assert_eq!(summary["breaches"], 0);
    summary["gateway"].clone()
}

/// The gateway could not be compared with: an error, and no line that could be taken for a result.
#[track_caller]
fn assert_fails(said: &Said, why: &str) {
    said.assert_code(1);
    assert_eq!(said.stdout, "", "there is no result");
    assert!(said.stderr.contains(why), "{why}: {}", said.stderr);
}

#[tokio::test]
async fn a_service_and_its_gateway_that_agree_have_no_breach() {
    let shop = shop_with_payments().await;
    shop.by_hand("/v1/payment_intents", FOREIGN).await;

    let said = shop.audit();

    let compared = assert_clean(&said);
    assert_eq!(compared["objects"], 5, "{said:?}");
    assert_eq!(compared["foreign"], 1);
    assert_eq!(compared["payments"], 5, "the released one has none");
}

/// Was anyone charged without a record? A database that was restored from an hour ago has lost both
/// the payment and its key.
#[tokio::test]
async fn an_effect_whose_record_was_lost_is_found() {
    let shop = shop_with_payments().await;
    let (key, reference) = (shop.gateway_key("visa").await, shop.reference("visa").await);
    let lose = "DELETE FROM payments WHERE idempotency_key = 'visa';
        DELETE FROM idempotency_keys WHERE key = 'visa';
        DELETE FROM used_keys WHERE key = 'visa';
        DELETE FROM events WHERE position = 1;
        UPDATE events SET position = position - 1;
        UPDATE event_counters SET position = position - 1";
    shop.database.execute(lose).await;

    let said = shop.audit();

    said.assert_code(1);
    let [breach, summary] = &said.objects()[..] else {
        panic!("one breach and the summary: {}", said.stdout);
    };
    assert_eq!(breach["check"], "effect_without_payment");
    assert_eq!(breach["invariant"], "I3");
    assert_eq!(breach["gateway_key"], key);
    let detail = breach["detail"].as_str().unwrap();
    assert!(detail.contains(&reference), "{detail}");
    assert!(detail.contains("1999 EUR"), "{detail}");
    assert_eq!(summary["breaches"], 1);
}

#[tokio::test]
async fn a_payment_whose_effect_is_gone_from_the_gateway_is_found() {
    let mut shop = shop_with_payments().await;
    let key = shop.gateway_key("visa").await;
    shop.lose(&key);

    let said = shop.audit();

    said.assert_code(1);
    let [breach, _summary] = &said.objects()[..] else {
        panic!("one breach and the summary: {}", said.stdout);
    };
    assert_eq!(breach["check"], "payment_without_effect");
    assert_eq!(breach["gateway_key"], key);
    assert!(breach["payment_id"].is_string());
}

#[tokio::test]
async fn an_amount_that_the_gateway_got_wrong_is_found_while_a_person_looks() {
    let shop = Shop::open().await;
    shop.sandbox.control.fault(fault("wrong_amount")).await;
    shop.client.pay("K", &payment()).await.assert_status(202);

    let said = shop.audit();

    assert_eq!(checks(&said), ["amount_differs".to_owned()].into());
    let detail = said.objects()[0]["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("1999 EUR"), "{detail}");
    assert!(detail.contains("1998 EUR"), "{detail}");
}

/// What the database says is changed by the statement that only a bug or a stranger would execute.
#[tokio::test]
async fn every_change_of_the_database_that_the_gateway_denies_is_found() {
    for (check, seed) in [
        (
            "amount_differs",
            "UPDATE payments SET amount = 2000 WHERE idempotency_key = 'visa'",
        ),
        (
            "amount_differs",
            "UPDATE payments SET currency = 'USD' WHERE idempotency_key = 'visa'",
        ),
        (
            "amount_differs",
            "UPDATE payments SET amount_captured = 1 WHERE idempotency_key = 'visa'",
        ),
        (
            "effect_of_undone_payment",
            "UPDATE payments SET status = 'failed', failure_code = 'x', failure_message = 'x'
             WHERE idempotency_key = 'unknown'",
        ),
        (
            "effect_of_undone_payment",
            "UPDATE payments SET status = 'canceled' WHERE idempotency_key = 'held'",
        ),
        (
            "payment_contradicts_gateway",
            "ALTER TABLE payments DISABLE TRIGGER payments_edge;
             UPDATE payments SET status = 'succeeded', amount_captured = amount,
                 failure_code = NULL, failure_message = NULL
             WHERE idempotency_key = 'declined'",
        ),
    ] {
        let shop = shop_with_payments().await;

        shop.database.execute(seed).await;

        let said = shop.audit();
        said.assert_code(1);
        assert!(checks(&said).contains(check), "{seed}: {}", said.stdout);
    }
}

/// What somebody else does with the account, in its own web page for example.
#[tokio::test]
async fn what_was_done_at_the_gateway_by_hand_is_found() {
    let shop = shop_with_payments().await;
    let (visa, held) = (shop.reference("visa").await, shop.reference("held").await);
    let key = shop.gateway_key("visa").await;
    let foreign = shop.by_hand("/v1/payment_intents", FOREIGN).await.json();
    let foreign = foreign["id"].as_str().unwrap();
    let refunds = "/v1/refunds";
    let ours = |payment: &str, key: &str| {
        format!("payment_intent={payment}&amount=500&metadata[oncepay_gateway_key]={key}")
    };
    assert_clean(&shop.audit());

    let unmarked = format!("payment_intent={visa}&amount=100");
    shop.by_hand(refunds, &unmarked).await;
    let compared = assert_clean(&shop.audit());
    assert_eq!(compared["foreign"], 2, "a refund by support staff");
    let capture = format!("/v1/payment_intents/{held}/capture");
    shop.by_hand(&capture, "").await;
    shop.by_hand(refunds, &ours(&visa, "R1")).await;
    shop.by_hand(refunds, &ours(foreign, "R2")).await;
    let twin = format!("{FOREIGN}&metadata[oncepay_gateway_key]={key}");
    shop.by_hand("/v1/payment_intents", &twin).await;

    let said = shop.audit();

    let expected = [
        "payment_contradicts_gateway",
        "refund_not_recorded",
        "refund_without_payment",
        "more_than_one_effect",
    ];
    let found = checks(&said);
    for check in expected {
        assert!(found.contains(check), "{check}: {}", said.stdout);
    }
}

/// The oldest object stands on the last page of each list.
#[tokio::test]
async fn a_list_of_many_pages_is_compared_to_its_end() {
    let shop = Shop::open().await;
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

/// Payments that go on meanwhile are in none of the positions in which something is missing.
#[tokio::test]
async fn audits_beside_payments_find_nothing() {
    let shop = Shop::open().await;
    let paying = async {
        for round in 0..30 {
            let keys: Vec<String> = (0..4).map(|lane| format!("K{round}-{lane}")).collect();
            let bodies = [
                payment(),
                held(),
                payment_with("pm_card_declined"),
                payment_with("pm_slow_20ms"),
            ];
            let pays = keys.iter().zip(&bodies);
            join_all(pays.map(|(key, body)| shop.client.pay(key, body))).await;
        }
    };
    let database = std::sync::Arc::clone(&shop.database);
    let base = shop.sandbox.control.base.clone();
    let audits = tokio::task::spawn_blocking(move || {
        let set = |command: &mut std::process::Command| {
            command
                .env("GATEWAY", "stripe")
                .env("STRIPE_API_BASE", &base)
                .env("STRIPE_SECRET_KEY", "sk_test_x");
        };
        (0..6).map(|_| audit(&database, set)).collect::<Vec<_>>()
    });

    let (audits, ()) = tokio::join!(audits, paying);

    for said in audits.unwrap() {
        assert_clean(&said);
    }
    let compared = assert_clean(&shop.audit());
    assert_eq!(compared["objects"], 120);
}

#[tokio::test]
async fn only_the_time_that_was_asked_for_is_compared() {
    let shop = Shop::open().await;
    shop.client.pay("K", &payment()).await.assert_status(201);
    let key = shop.gateway_key("K").await;
    let mut shop = shop;
    shop.lose(&key);
    let old = "UPDATE payments SET created_at = created_at - interval '3 hours'";
    shop.database.execute(old).await;
    let since = |since: &str| {
        audit(&shop.database, |command| {
            command
                .args(["--since", since])
                .env("GATEWAY", "stripe")
                .env("STRIPE_API_BASE", &shop.sandbox.control.base)
                .env("STRIPE_SECRET_KEY", "sk_test_x");
        })
    };

    let shorter = since("2h");
    let longer = since("4h");

    assert_clean(&shorter);
    let found = checks(&longer);
    assert!(found.contains("payment_without_effect"), "{longer:?}");
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
    oncepay::clock::Clock::now(&oncepay::clock::SystemClock).timestamp()
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
    let shop = Shop::open().await;
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

#[tokio::test]
async fn the_sandbox_in_the_process_is_compared_by_its_folder() {
    let app = TestApp::start().await;
    app.client.pay("K", &payment()).await.assert_status(201);
    app.client.pay("H", &held()).await.assert_status(201);
    let with_folder = |command: &mut std::process::Command| {
        command.env("SANDBOX_DIR", app.sandbox.path());
    };
    let clean = audit(&app.database, with_folder);
    let lose = "UPDATE payments SET gateway_key = 'lost' WHERE idempotency_key = 'K'";
    app.database.execute(lose).await;
    let after = audit(&app.database, with_folder);

    assert_eq!(assert_clean(&clean)["objects"], 2);
    let found = checks(&after);
    assert!(found.contains("effect_without_payment"), "{after:?}");
    assert!(found.contains("payment_without_effect"), "{after:?}");
}

/// A sandbox that is not there, or forgets, would have lost every payment; a key that is missing is a
/// setting that is.
#[tokio::test]
async fn a_gateway_that_is_not_set_up_is_an_error_and_makes_nothing() {
    let app = TestApp::start().await;
    app.client.pay("K", &payment()).await.assert_status(201);
    let missing = app.sandbox.path().join("missing");

    let forgets = audit(&app.database, |_| {});
    let elsewhere = audit(&app.database, |command| {
        command.env("SANDBOX_DIR", &missing);
    });
    let no_key = audit(&app.database, |command| {
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
