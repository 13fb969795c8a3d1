//! What the gateway accepted and decides later is followed, and its answer stays as it was.

use std::{sync::Arc, time::Duration};

use chrono::{TimeDelta, Utc};
use oncepay::{
    clock::MockClock,
    gateways::{Finding, GatewayReference, Outcome, Unknown, sandbox::journal},
};
use tempfile::TempDir;

use crate::support::{
    app::{TestApp, effects},
    client::{Client, payment, payment_with},
    database::TestDatabase,
    gateway::{Act, Scripted, approved},
    process::Process,
    wait::wait_until,
};

const PATIENCE: Duration = Duration::from_secs(20);

fn pending() -> Outcome {
    Outcome::Pending {
        reference: GatewayReference("scripted_1".to_owned()),
    }
}

/// Makes every poll due.
async fn due(database: &TestDatabase) {
    database
        .execute("UPDATE pending_payments SET next_poll_at = now()")
        .await;
}

async fn status_becomes(database: &TestDatabase, status: &str) {
    wait_until(PATIENCE, async || {
        database
            .text("SELECT status FROM payments")
            .await
            .as_deref()
            == Some(status)
    })
    .await;
}

#[expect(clippy::disallowed_methods, reason = "a test has a clock of its own")]
fn clock() -> MockClock {
    MockClock::at(Utc::now())
}

/// I7: the payment goes on, and the key keeps the answer that it gave.
#[tokio::test]
async fn a_pending_payment_is_decided_and_its_key_replays_the_answer_it_gave() {
    for (method, status, executed) in [
        ("pm_pending_then_succeeds", "succeeded", 1),
        ("pm_pending_then_fails", "failed", 0),
    ] {
        let clock = clock();
        let app = TestApp::builder().rescuing().clock(Arc::new(clock.clone()));
        let app = app.start().await;

        let first = app.client.pay("K", &payment_with(method)).await;
        first.assert_status(201);
        assert_eq!(first.json()["status"], "processing");
        clock.advance(TimeDelta::seconds(3));
        due(&app.database).await;
        status_becomes(&app.database, status).await;
        let replay = app.client.pay("K", &payment_with(method)).await;

        replay.assert_replays(&first);
        let id = first.json()["id"].as_str().unwrap().to_owned();
        let read = app.client.get(&format!("/v1/payments/{id}")).await.json();
        assert_eq!(read["status"], status);
        assert_eq!(read["gateway_reference"], first.json()["gateway_reference"]);
        assert_eq!(app.effects(), executed);
        assert_eq!(app.database.count("SELECT count(*) FROM events").await, 2);
        let left = "SELECT count(*) FROM pending_payments";
        assert_eq!(app.database.count(left).await, 0);
    }
}

/// D6.7: a minute, doubling, at most an hour; and nothing is written as long as nothing is new.
#[tokio::test]
async fn polls_of_what_stays_pending_get_rarer_and_change_nothing() {
    let findings = (0..20).map(|_| Finding::Known(pending()));
    let gateway = Arc::new(Scripted::new([Act::Say(pending())]).finding(findings));
    let app = TestApp::builder()
        .rescuing()
        .gateway(&gateway)
        .start()
        .await;
    let pause = "SELECT round(extract(epoch FROM next_poll_at - now()) / 60)::bigint
        FROM pending_payments";

    app.client.pay("K", &payment()).await.assert_status(201);
    let mut minutes = vec![app.database.count(pause).await];
    for poll in 1..=9 {
        due(&app.database).await;
        wait_until(PATIENCE, async || gateway.asked().len() == poll).await;
        minutes.push(app.database.count(pause).await);
    }

    assert_eq!(minutes, [1, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(app.database.count("SELECT version FROM payments").await, 1);
    assert_eq!(gateway.sent().len(), 1);
}

/// Two processes poll the same payments, over and over: each is decided once (I14).
#[tokio::test]
async fn two_processes_decide_each_pending_payment_once() {
    const PAYMENTS: i64 = 30;
    let database = TestDatabase::create().await;
    let folder = TempDir::new().unwrap();
    let (_merchant, secret) = database.merchant("T1").await;
    let service = || {
        Process::builder(&database, folder.path())
            .env("RESCUE_INTERVAL", "10ms")
            .start()
    };
    let processes = [service(), service()];
    let client = Client::new(processes[0].base(), &secret);
    for number in 0..PAYMENTS {
        let body = payment_with("pm_pending_then_succeeds");
        let reply = client.pay(&format!("K{number}"), &body).await;
        reply.assert_status(201);
    }

    wait_until(PATIENCE, async || {
        due(&database).await;
        let decided = "SELECT count(*) FROM payments WHERE status = 'succeeded'";
        database.count(decided).await == PAYMENTS
    })
    .await;

    let events = "SELECT count(*) FROM events";
    assert_eq!(database.count(events).await, 2 * PAYMENTS);
    let versions = "SELECT count(*) FROM payments WHERE version = 2";
    assert_eq!(database.count(versions).await, PAYMENTS);
    let journal = folder.path().join(journal::FILE_NAME);
    assert_eq!(effects(&journal), usize::try_from(PAYMENTS).unwrap());
}

/// Whoever else decides, a webhook for example, need not know of the poller.
#[tokio::test]
async fn a_payment_that_somebody_else_decided_is_forgotten_and_not_asked_about() {
    let gateway = Arc::new(Scripted::new([Act::Say(pending())]));
    let app = TestApp::builder()
        .rescuing()
        .gateway(&gateway)
        .start()
        .await;

    app.client.pay("K", &payment()).await.assert_status(201);
    app.database
        .execute("UPDATE payments SET status = 'canceled', version = 2")
        .await;
    due(&app.database).await;
    wait_until(PATIENCE, async || {
        let left = "SELECT count(*) FROM pending_payments";
        app.database.count(left).await == 0
    })
    .await;

    assert!(gateway.asked().is_empty());
}

/// What waiting cannot resolve is put in front of a person; a look-up that finds nothing is not.
#[tokio::test]
async fn a_pending_payment_whose_amount_differs_goes_to_review() {
    let differs = Finding::Known(Outcome::Unknown(Unknown::AmountDiffers));
    let findings = [Finding::Absent, differs, Finding::Known(approved())];
    let gateway = Arc::new(Scripted::new([Act::Say(pending())]).finding(findings));
    let app = TestApp::builder()
        .rescuing()
        .gateway(&gateway)
        .start()
        .await;

    let first = app.client.pay("K", &payment()).await;
    due(&app.database).await;
    wait_until(PATIENCE, async || gateway.asked().len() == 1).await;
    let status = "SELECT status FROM payments";
    assert_eq!(
        app.database.text(status).await.as_deref(),
        Some("processing")
    );
    due(&app.database).await;
    status_becomes(&app.database, "requires_review").await;

    let reason = "SELECT data->>'review_reason' FROM events WHERE sequence = 2";
    let reason = app.database.text(reason).await;
    assert_eq!(reason.as_deref(), Some("amount-differs"));
    app.client.pay("K", &payment()).await.assert_replays(&first);
}
