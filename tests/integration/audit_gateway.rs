//! `oncepay audit --gateway`: what the database and the gateway disagree about is found, and nothing where
//! they agree; with real processes.

use std::process::Command;

use crate::support::{
    app::TestApp,
    audit::{assert_clean, audit_with, checks},
    client::payment,
    open_shop::{FOREIGN, OpenShop, held, shop_with_payments},
    sandbox::fault,
};

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
    let shop = OpenShop::open().await;
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

#[tokio::test]
async fn only_the_time_that_was_asked_for_is_compared() {
    let shop = OpenShop::open().await;
    shop.client.pay("K", &payment()).await.assert_status(201);
    let key = shop.gateway_key("K").await;
    let mut shop = shop;
    shop.lose(&key);
    let old = "UPDATE payments SET created_at = created_at - interval '3 hours'";
    shop.database.execute(old).await;
    let since = |since: &str| {
        audit_with(&shop.database, |command| {
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
async fn the_sandbox_in_the_process_is_compared_by_its_folder() {
    let app = TestApp::start().await;
    app.client.pay("K", &payment()).await.assert_status(201);
    app.client.pay("H", &held()).await.assert_status(201);
    let with_folder = |command: &mut Command| {
        command.env("SANDBOX_DIR", app.sandbox.path());
    };
    let clean = audit_with(&app.database, with_folder);
    let lose = "UPDATE payments SET gateway_key = 'lost' WHERE idempotency_key = 'K'";
    app.database.execute(lose).await;
    let after = audit_with(&app.database, with_folder);

    assert_eq!(assert_clean(&clean)["objects"], 2);
    let found = checks(&after);
    assert!(found.contains("effect_without_payment"), "{after:?}");
    assert!(found.contains("payment_without_effect"), "{after:?}");
}
