//! What a person decides about a payment in review is what its key answers from then on.

use std::{sync::Arc, time::Duration};

use oncepay::{
    clock::SystemClock,
    db::Database,
    gateways::{Finding, GatewayReference, Outcome, Unknown},
    http::views::PRESENTER,
    payments::{
        review::{self, Decision, Desk, ReviewError},
        state::PaymentStatus,
    },
};
use serde_json::{Value, json};

use crate::support::{
    app::TestApp,
    client::payment,
    command::{Said, oncepay},
    gateway::{Act, Scripted},
    wait::wait_until,
};

/// A service with one payment in review under the key K; the gateway took its key for another's.
async fn in_review(body: &Value) -> TestApp {
    let differ = Act::Say(Outcome::Unknown(Unknown::ParametersDiffer));
    let gateway = Arc::new(Scripted::new([differ]));
    let app = TestApp::builder().gateway(&gateway).start().await;
    app.client.pay("K", body).await.assert_status(202);
    app
}

fn list(app: &TestApp) -> Vec<Value> {
    let said = oncepay(&app.database.url(), &["reviews", "list"]);
    said.assert_code(0).objects()
}

fn resolve(app: &TestApp, to: &str, more: &[&str]) -> Said {
    let listed = list(app);
    let payment = listed[0]["payment_id"].as_str().unwrap();
    resolve_payment(app, payment, to, more)
}

fn resolve_payment(app: &TestApp, payment: &str, to: &str, more: &[&str]) -> Said {
    let arguments = ["reviews", "resolve", payment, "--to", to];
    let who = ["--by", "Ada", "--reason", "seen in the dashboard"];
    let arguments = [&arguments[..], &who[..], more].concat();
    oncepay(&app.database.url(), &arguments)
}

#[tokio::test]
async fn the_list_holds_what_is_needed_to_find_the_payment_and_its_merchant() {
    let app = in_review(&payment()).await;

    let listed = list(&app);

    let [review] = &listed[..] else {
        panic!("one payment is in review: {listed:?}");
    };
    assert_eq!(review["merchant_id"], app.merchant_id.to_string());
    assert_eq!(review["idempotency_key"], "K");
    assert_eq!(review["amount"], 1999);
    assert_eq!(review["gateway"], "sandbox");
    assert!(
        review["gateway_key"]
            .as_str()
            .unwrap()
            .starts_with("oncepay_")
    );
    assert!(review["since"].is_string());
    assert_eq!(review["evidence"]["reason"], "parameters-differ");
    assert_eq!(review["evidence"]["attempts"], 1);
    assert!(review["evidence"]["unknown_since"].is_string());
}

/// The decision supersedes whoever holds the record: it rests, and its lease is not over (D6.9).
#[tokio::test]
async fn a_resolved_payment_is_settled_and_its_key_replays_the_answer() {
    let app = in_review(&payment()).await;

    let said = resolve(&app, "succeeded", &["--gateway-reference", "pi_1"]);

    said.assert_code(0);
    assert_eq!(said.objects()[0]["status"], "succeeded");
    let replay = app.client.pay("K", &payment()).await;
    replay.assert_status(201);
    assert!(replay.replayed());
    assert_eq!(replay.json()["amount_captured"], 1999);
    assert_eq!(replay.json()["gateway_reference"], "pi_1");
    let event = "SELECT jsonb_build_object('type', type, 'resolution', data->'resolution')::text
        FROM events WHERE sequence = 2";
    let event: Value = serde_json::from_str(&app.database.text(event).await.unwrap()).unwrap();
    let expected = json!({
        "type": "payment.succeeded",
        "resolution": {"by": "Ada", "reason": "seen in the dashboard", "gateway_reference": "pi_1"},
    });
    assert_eq!(event, expected);
    assert_eq!(
        app.database
            .count("SELECT fence FROM idempotency_keys")
            .await,
        2
    );
    assert!(list(&app).is_empty());
}

#[tokio::test]
async fn each_end_of_a_review_has_its_answer() {
    let mut manual = payment();
    manual["capture_method"] = "manual".into();
    let reference = ["--gateway-reference", "pi_1"];
    for (body, to, more, status) in [
        (payment(), "failed", &[][..], 402),
        (payment(), "canceled", &[][..], 201),
        (manual, "requires_capture", &reference[..], 201),
    ] {
        let app = in_review(&body).await;

        resolve(&app, to, more).assert_code(0);

        let replay = app.client.pay("K", &body).await;
        replay.assert_status(status);
        assert!(replay.replayed(), "{to}");
        let stored = app.database.text("SELECT status FROM payments").await;
        assert_eq!(stored.as_deref(), Some(to));
    }
}

/// T6: what the table of states, the gateway's captures or a second decision do not allow.
#[tokio::test]
async fn a_decision_that_cannot_be_is_refused_and_changes_nothing() {
    let app = in_review(&payment()).await;
    let payment_id = list(&app)[0]["payment_id"].as_str().unwrap().to_owned();
    let reference = ["--gateway-reference", "pi_1"];
    let stranger = "pay_0192f0c1a2b37c4d8e5f60718293a4b5";

    let refused = [
        (resolve(&app, "processing", &[]), 2, "invalid value"),
        (resolve(&app, "succeeded", &[]), 1, "reference"),
        (
            resolve(&app, "requires_capture", &reference),
            1,
            "manual capture",
        ),
        (
            resolve_payment(&app, stranger, "failed", &[]),
            1,
            "no such payment in review",
        ),
        (
            oncepay(
                &app.database.url(),
                &[
                    "reviews",
                    "resolve",
                    &payment_id,
                    "--to",
                    "failed",
                    "--by",
                    "",
                    "--reason",
                    "x",
                ],
            ),
            2,
            "must not be empty",
        ),
    ];
    for (said, code, message) in refused {
        said.assert_code(code);
        assert!(said.stderr.contains(message), "{message}: {}", said.stderr);
    }
    assert_eq!(app.database.count("SELECT version FROM payments").await, 1);
    assert_eq!(
        app.database
            .count("SELECT fence FROM idempotency_keys")
            .await,
        1
    );

    resolve(&app, "failed", &[]).assert_code(0);

    let again = resolve_payment(&app, &payment_id, "canceled", &[]);
    again.assert_code(1);
    assert!(
        again.stderr.contains("no such payment in review"),
        "{}",
        again.stderr
    );
}

/// Two operators decide at the same time: both see the payment in review, one of them is told that
/// the other was faster.
#[tokio::test]
async fn of_two_decisions_one_is_written() {
    let app = in_review(&payment()).await;
    let payment_id = list(&app)[0]["payment_id"].as_str().unwrap().to_owned();
    let payment_id = payment_id.parse().unwrap();
    let desk = Desk {
        database: Database::new(app.database.options(), 2),
        clock: Arc::new(SystemClock),
        presenter: PRESENTER,
        ttl_completed: Duration::from_hours(24),
        ttl_failed: Duration::from_hours(24),
        lease_ttl: Duration::from_secs(30),
    };
    let decision = |to| Decision {
        to,
        by: "Ada".to_owned(),
        reason: "seen".to_owned(),
        gateway_reference: None,
    };

    let (failed, canceled) = (
        decision(PaymentStatus::Failed),
        decision(PaymentStatus::Canceled),
    );
    let (first, second) = tokio::join!(
        review::resolve(&desk, payment_id, &failed),
        review::resolve(&desk, payment_id, &canceled),
    );

    let lost = match (first, second) {
        (Ok(_), Err(error)) | (Err(error), Ok(_)) => error,
        both => panic!("one must win: {both:?}"),
    };
    // The one that came too late saw the payment change under it, or not in review any more.
    let too_late = matches!(lost, ReviewError::Changed | ReviewError::NotInReview);
    assert!(too_late, "{lost}");
    assert_eq!(app.database.count("SELECT count(*) FROM events").await, 2);
}

/// I7: a key that was answered *processing* keeps that answer, whatever is decided later.
#[tokio::test]
async fn a_review_of_a_pending_payment_leaves_its_answer_as_it_was() {
    let pending = Act::Say(Outcome::Pending {
        reference: GatewayReference("pi_1".to_owned()),
    });
    let differs = Finding::Known(Outcome::Unknown(Unknown::AmountDiffers));
    let gateway = Arc::new(Scripted::new([pending]).finding([differs]));
    let app = TestApp::builder()
        .rescuing()
        .gateway(&gateway)
        .start()
        .await;
    let first = app.client.pay("K", &payment()).await;
    app.database
        .execute("UPDATE pending_payments SET next_poll_at = now()")
        .await;
    let limit = Duration::from_secs(20);
    wait_until(limit, async || !list(&app).is_empty()).await;

    let said = resolve(&app, "succeeded", &[]);

    said.assert_code(0);
    assert_eq!(said.objects()[0]["gateway_reference"], "pi_1");
    app.client.pay("K", &payment()).await.assert_replays(&first);
    assert_eq!(app.database.count("SELECT count(*) FROM events").await, 3);
}
