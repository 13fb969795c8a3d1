//! Outcomes that are not plain: unknown, pending, for a person, or known and hard to write down.

use std::sync::Arc;

use chrono::TimeDelta;
use oncepay::gateways::{Finding, NotExecuted, Outcome, Unknown};

use crate::support::{
    app::TestApp,
    client::{payment, payment_with},
    faults::{self, Fault},
    gateway::{Act, Scripted, approved},
};

async fn with_gateway(gateway: Scripted) -> (TestApp, Arc<Scripted>) {
    let gateway = Arc::new(gateway);
    let app = TestApp::builder().gateway(&gateway).start().await;
    (app, gateway)
}

fn unknown(reason: Unknown) -> Outcome {
    Outcome::Unknown(reason)
}

/// The seconds for which `K` still rests.
async fn rests(app: &TestApp) -> i64 {
    let query = "SELECT ceil(EXTRACT(epoch FROM lease_expires_at - clock_timestamp()))::bigint
        FROM idempotency_keys WHERE key = 'K'";
    app.database.count(query).await
}

/// B74, I4, D6.7. A charge whose reply was lost is no failure: 202, `processing`, and the same for
/// every retry, which leaves the gateway alone until the rest is over. Then the charge is found.
#[tokio::test]
async fn an_unknown_outcome_is_202_until_it_rested_and_then_the_final_answer() {
    let gateway = Scripted::new([Act::Say(unknown(Unknown::LostReply))]);
    let (app, gateway) = with_gateway(gateway.finding([Finding::Known(approved())])).await;

    let first = app.client.pay("K", &payment()).await;
    let resting = app.client.pay("K", &payment()).await;
    let calls = (gateway.sent().len(), gateway.asked().len());
    app.database.age("K", TimeDelta::seconds(3)).await;
    let last = app.client.pay("K", &payment()).await;

    for reply in [&first, &resting] {
        reply.assert_status(202);
        assert_eq!(reply.json()["status"], "processing");
        assert!(reply.json()["failure"].is_null());
        assert_eq!(reply.header("idempotent-replayed"), Some("false"));
        assert_eq!(reply.header("retry-after"), Some("2"));
        assert!(reply.header("location").is_some());
    }
    assert_eq!(calls, (1, 0), "a parked key's retry calls no gateway");
    last.assert_status(201);
    assert_eq!(last.json()["id"], first.json()["id"]);
    assert_eq!((gateway.sent().len(), gateway.asked().len()), (1, 1));
    app.client.pay("K", &payment()).await.assert_replays(&last);
}

/// D6.7. A look that finds nothing out makes the next rest twice as long, and only its end lets
/// somebody ask again.
#[tokio::test]
async fn every_look_that_finds_nothing_out_doubles_the_rest() {
    let busy = || Finding::Known(unknown(Unknown::InUse));
    let gateway = Scripted::new([Act::Say(unknown(Unknown::Timeout))]);
    let (app, gateway) = with_gateway(gateway.finding([busy(), busy()])).await;

    let mut seconds = Vec::new();
    for _look in 0..3 {
        app.client.pay("K", &payment()).await.assert_status(202);
        seconds.push(rests(&app).await);
        let rest = TimeDelta::seconds(*seconds.last().unwrap());
        app.database.age("K", rest).await;
    }

    assert_eq!(seconds, [2, 4, 8]);
    assert_eq!((gateway.sent().len(), gateway.asked().len()), (1, 2));
}

/// D6.7. Pending is an answer: the payment is `processing` at the gateway, 201, stored, replayed.
#[tokio::test]
async fn a_pending_payment_is_an_answer_and_is_replayed() {
    let app = TestApp::start().await;
    let body = payment_with("pm_pending_then_succeeds");

    let first = app.client.pay("K", &body).await;
    let second = app.client.pay("K", &body).await;

    first.assert_status(201);
    assert_eq!(first.json()["status"], "processing");
    assert!(first.json()["gateway_reference"].is_string());
    second.assert_replays(&first);
    let event = app.database.text("SELECT type FROM events").await;
    assert_eq!(event.as_deref(), Some("payment.accepted"));
}

/// The payment is in review, once told, and its key still open.
async fn assert_in_review(app: &TestApp) {
    let events = "SELECT string_agg(type, ' ' ORDER BY position) FROM events";
    let events = app.database.text(events).await;
    assert_eq!(events.as_deref(), Some("payment.review_required"));
    let status = app.database.text("SELECT status FROM payments").await;
    assert_eq!(status.as_deref(), Some("requires_review"));
    let record = app
        .database
        .text("SELECT status FROM idempotency_keys")
        .await;
    assert_eq!(record.as_deref(), Some("processing"));
}

/// D6.6. The gateway knows the key with other parameters: no retry can make that right.
#[tokio::test]
async fn parameters_that_differ_at_the_gateway_are_put_in_front_of_a_person() {
    let gateway = Scripted::new([Act::Say(unknown(Unknown::ParametersDiffer))]);
    let (app, _gateway) = with_gateway(gateway).await;

    let reply = app.client.pay("K", &payment()).await;

    reply.assert_status(202);
    assert_eq!(reply.json()["status"], "requires_review");
    assert_in_review(&app).await;
}

/// D6.6, D8. The gateway may have forgotten the key (its window is 24 h, less one for safety): it is
/// asked, and never sent to again. What turns up later still settles the payment.
#[tokio::test]
async fn after_the_gateways_window_nothing_is_sent_and_late_evidence_settles() {
    let gateway = Scripted::new([Act::Say(unknown(Unknown::Timeout))]);
    let late = [Finding::Absent, Finding::Absent, Finding::Known(approved())];
    let (app, gateway) = with_gateway(gateway.finding(late)).await;
    app.client.pay("K", &payment()).await.assert_status(202);
    app.database.age("K", TimeDelta::hours(23)).await;

    for _look in 0..2 {
        let reply = app.client.pay("K", &payment()).await;
        reply.assert_status(202);
        assert_eq!(reply.json()["status"], "requires_review");
        assert_in_review(&app).await;
        app.database.age("K", TimeDelta::hours(2)).await;
    }
    let settled = app.client.pay("K", &payment()).await;

    settled.assert_status(201);
    assert_eq!(settled.json()["status"], "succeeded");
    assert_eq!((gateway.sent().len(), gateway.asked().len()), (1, 3));
}

/// D6.5. Another gateway is configured than the one that may have the money: it is told nothing.
#[tokio::test]
async fn a_record_of_another_gateway_is_put_in_front_of_a_person_and_sent_to_nobody() {
    let (before, _) = with_gateway(Scripted::new([Act::Say(unknown(Unknown::Timeout))])).await;
    before.client.pay("K", &payment()).await.assert_status(202);
    before.database.age("K", TimeDelta::seconds(3)).await;
    let other = Arc::new(Scripted::default().named("other"));
    let after = TestApp::builder().beside(&before).gateway(&other);
    let after = after.start().await;

    let reply = before
        .client
        .at(after.client.base())
        .pay("K", &payment())
        .await;

    reply.assert_status(202);
    assert_eq!(reply.json()["status"], "requires_review");
    assert_in_review(&before).await;
    assert_eq!((other.sent().len(), other.asked().len()), (0, 0));
}

/// B08, B75, D6.10. The settle is rolled back for others, once and three times: it is repeated, and
/// the gateway is not.
#[tokio::test]
async fn a_settle_that_the_database_rolls_back_is_repeated_without_the_gateway() {
    for (code, times) in [("40001", 1), ("40001", 3), ("40P01", 3)] {
        let (app, gateway) = with_gateway(Scripted::default()).await;
        faults::meet(
            &app.database,
            "UPDATE ON payments",
            Fault::Refuse(code),
            times,
        )
        .await;

        let reply = app.client.pay("K", &payment()).await;

        reply.assert_status(201);
        assert_eq!(reply.json()["status"], "succeeded");
        assert_eq!(
            faults::met(&app.database).await,
            i64::from(times) + 1,
            "{code}"
        );
        assert_eq!((gateway.sent().len(), gateway.asked().len()), (1, 0));
        assert_eq!(app.database.count("SELECT count(*) FROM payments").await, 1);
        assert_eq!(app.database.count("SELECT count(*) FROM events").await, 1);
    }
}

/// I4. The settle is refused for good after the money moved: the client is told that it is not known,
/// and the retry, without waiting for a lease, finds the charge.
#[tokio::test]
async fn a_settle_that_is_refused_is_outcome_unknown_and_the_retry_finds_the_payment() {
    let gateway = Scripted::default().finding([Finding::Known(approved())]);
    let (app, gateway) = with_gateway(gateway).await;
    faults::meet(
        &app.database,
        "UPDATE ON payments",
        Fault::Refuse("XX000"),
        1,
    )
    .await;

    let failed = app.client.pay("K", &payment()).await;
    let retried = app.client.pay("K", &payment()).await;

    failed.assert_problem(503, "outcome-unknown");
    retried.assert_status(201);
    assert_eq!((gateway.sent().len(), gateway.asked().len()), (1, 1));
}

/// D6.8, I20. The first send is lost, the second certainly did nothing: that speaks of the second.
#[tokio::test]
async fn a_send_that_did_nothing_after_an_unknown_one_releases_nothing() {
    let nothing = Outcome::NotExecuted(NotExecuted::Refused);
    let acts = [unknown(Unknown::LostReply), nothing.clone(), nothing].map(Act::Say);
    let (app, gateway) = with_gateway(Scripted::new(acts)).await;

    app.client.pay("K", &payment()).await.assert_status(202);
    app.database.age("K", TimeDelta::seconds(3)).await;
    let second = app.client.pay("K", &payment()).await;

    second.assert_status(202);
    assert_eq!(gateway.sent().len(), 2);
    assert_not_released(&app).await;
}

/// D6.8. The same within one request: one send did nothing, the next is lost.
#[tokio::test]
async fn an_unknown_send_after_one_that_did_nothing_releases_nothing() {
    let nothing = Outcome::NotExecuted(NotExecuted::Unreachable);
    let acts = [nothing, unknown(Unknown::LostReply)].map(Act::Say);
    let (app, gateway) = with_gateway(Scripted::new(acts)).await;

    let reply = app.client.pay("K", &payment()).await;

    reply.assert_status(202);
    assert_eq!(gateway.sent().len(), 2);
    assert_not_released(&app).await;
}

/// D6.8. A successor's send did nothing; its predecessor's may have.
#[tokio::test]
async fn a_successors_send_that_did_nothing_releases_nothing() {
    let nothing = Outcome::NotExecuted(NotExecuted::Refused);
    let (app, gateway) = with_gateway(Scripted::new([Act::Panic, Act::Say(nothing)])).await;

    app.client.pay("K", &payment()).await.assert_status(500);
    let reply = app.client.pay("K", &payment()).await;

    reply.assert_status(202);
    assert_eq!((gateway.sent().len(), gateway.asked().len()), (2, 1));
    assert_not_released(&app).await;
}

async fn assert_not_released(app: &TestApp) {
    let record = "SELECT count(*) FROM idempotency_keys
        WHERE status = 'processing' AND unknown_since IS NOT NULL";
    assert_eq!(app.database.count(record).await, 1, "it is parked");
    assert_eq!(app.database.count("SELECT count(*) FROM payments").await, 1);
}
