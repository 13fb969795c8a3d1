//! What owners leave is finished without their clients: by the rescuer, once, and never by guessing.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use oncepay::gateways::{Finding, NotExecuted, Outcome, Unknown, sandbox::journal};
use tempfile::TempDir;

use crate::support::{
    app::{TestApp, TestAppBuilder, effects},
    client::{Client, payment, payment_with, try_send},
    database::TestDatabase,
    gateway::{Act, Scripted, approved},
    process::Process,
    wait::wait_until,
};

/// A rescue takes milliseconds; a loaded machine may take longer.
const PATIENCE: Duration = Duration::from_secs(20);

const STATUS: &str = "SELECT status FROM payments";

async fn status_becomes(database: &TestDatabase, status: &str) {
    wait_until(PATIENCE, async || {
        database.text(STATUS).await.as_deref() == Some(status)
    })
    .await;
}

/// Waits until so many attempts have come to their end: a rest, which is shorter than the lease of
/// somebody who is at it.
async fn rests_after_attempts(database: &TestDatabase, attempts: i64) {
    let resting = format!(
        "SELECT count(*) FROM idempotency_keys
         WHERE status = 'processing' AND attempts >= {attempts}
             AND unknown_since IS NOT NULL AND lease_expires_at - now()
                 BETWEEN interval '1 second' AND interval '20 seconds'"
    );
    wait_until(PATIENCE, async || database.count(&resting).await == 1).await;
}

fn unknown() -> Act {
    Act::Say(Outcome::Unknown(Unknown::LostReply))
}

fn scripted(gateway: &Arc<Scripted>) -> TestAppBuilder {
    TestApp::builder().rescuing().gateway(gateway)
}

/// Issue 3: 202, and then 201 under the same key, without a retry in between. The answer is the one
/// that a handler would have stored, for the request that asked first.
#[tokio::test]
async fn a_gateway_that_hangs_after_charging_is_asked_and_the_key_answers_201() {
    let app = TestApp::builder()
        .rescuing()
        .settings(|raw| "200ms".clone_into(&mut raw.gateway.gateway_timeout))
        .start()
        .await;

    let first = app
        .client
        .pay("K", &payment_with("pm_timeout_after_charge"))
        .await;
    first.assert_status(202);
    app.database.age("K", TimeDelta::seconds(2)).await;
    status_becomes(&app.database, "succeeded").await;
    let replay = app
        .client
        .pay("K", &payment_with("pm_timeout_after_charge"))
        .await;

    replay.assert_status(201);
    assert!(replay.replayed());
    let id = replay.json()["id"].as_str().unwrap().to_owned();
    let read = app.client.get(&format!("/v1/payments/{id}")).await;
    assert_eq!(replay.json(), read.json());
    assert_eq!(
        replay.header("idempotency-original-request-id"),
        first.header("request-id")
    );
    assert_eq!(app.effects(), 1);
}

/// A decline is stored with the request id in its body: the rescuer must not invent one.
#[tokio::test]
async fn a_decline_that_the_rescuer_finds_names_the_first_request() {
    let declined = Outcome::Declined(oncepay::gateways::Decline {
        code: "card-declined".to_owned(),
        message: "The card was declined.".to_owned(),
        reference: None,
    });
    let gateway = Arc::new(Scripted::new([unknown()]).finding([Finding::Known(declined)]));
    let app = scripted(&gateway).start().await;

    let first = app.client.pay("K", &payment()).await;
    app.database.age("K", TimeDelta::seconds(2)).await;
    status_becomes(&app.database, "failed").await;
    let replay = app.client.pay("K", &payment()).await;

    replay.assert_problem(402, "payment-declined");
    let request_id = first.header("request-id").unwrap();
    assert!(replay.text().contains(request_id), "{}", replay.text());
}

/// I1, I3, B10: the owner is killed while the gateway works on its call, before the effect and
/// after it. Another process finishes within the lease.
#[tokio::test]
async fn a_killed_owner_s_payment_is_finished_by_another_process_once() {
    for method in ["pm_slow_60s", "pm_slow_after_charge_60s"] {
        let database = TestDatabase::create().await;
        let folder = TempDir::new().unwrap();
        let (_merchant, secret) = database.merchant("T1").await;
        let service = |interval| {
            Process::builder(&database, folder.path())
                .env("IDEMPOTENCY_LEASE_TTL", "2s")
                .env("GATEWAY_TIMEOUT", "80s")
                .env("REQUEST_TIMEOUT", "90s")
                .env("RESCUE_INTERVAL", interval)
                .start()
        };
        let mut owner = service("1h");
        let rescuer = service("100ms");
        let client = Client::new(owner.base(), &secret);

        let request = client
            .payment_request(payment_with(method).to_string())
            .header("idempotency-key", "K");
        let (_lost, ()) = tokio::join!(try_send(request), async {
            arrived(&folder).await;
            owner.kill();
        });
        status_becomes(&database, "succeeded").await;

        let reply = client
            .at(rescuer.base())
            .pay("K", &payment_with(method))
            .await;
        reply.assert_status(201);
        assert!(reply.replayed(), "{method}");
        assert_eq!(
            effects(&folder.path().join(journal::FILE_NAME)),
            1,
            "{method}"
        );
        let metrics = rescuer.metrics().await;
        assert!(
            metrics.contains("\nidempotency_takeovers_total 1\n"),
            "{metrics}"
        );
        let expired = "\nidempotency_leases_expired_total 1\n";
        assert!(metrics.contains(expired), "{metrics}");
    }
}

/// Waits until the gateway has counted a send: from then on the next one is the second.
async fn arrived(folder: &TempDir) {
    let keys = folder.path().join("keys");
    wait_until(PATIENCE, async || {
        let mut files = std::fs::read_dir(&keys).unwrap();
        files.any(|file| file.unwrap().path().extension() == Some("json".as_ref()))
    })
    .await;
}

/// I8: two processes look for the same work at the same time. Each record is taken over once.
#[tokio::test]
async fn two_processes_rescue_each_record_once() {
    const RECORDS: i64 = 60;
    let database = TestDatabase::create().await;
    let folder = TempDir::new().unwrap();
    let (_merchant, secret) = database.merchant("T1").await;
    let service =
        |interval| Process::builder(&database, folder.path()).env("RESCUE_INTERVAL", interval);
    let parking = service("1h").start();
    let client = Client::new(parking.base(), &secret);
    for number in 0..RECORDS {
        let body = payment_with("pm_error_after_charge");
        let reply = client.pay(&format!("K{number}"), &body).await;
        reply.assert_status(202);
    }
    let rest =
        |left: &str| format!("UPDATE idempotency_keys SET lease_expires_at = now() + '{left}'");
    database.execute(&rest("1h")).await;
    let _rescuers = [service("10ms").start(), service("10ms").start()];

    database.execute(&rest("0")).await;
    wait_until(PATIENCE, async || {
        let settled = "SELECT count(*) FROM payments WHERE status = 'succeeded'";
        database.count(settled).await == RECORDS
    })
    .await;

    assert_eq!(database.count("SELECT count(*) FROM events").await, RECORDS);
    let taken_over = "SELECT count(*) FROM idempotency_keys WHERE fence = 2 AND attempts = 2";
    assert_eq!(database.count(taken_over).await, RECORDS);
    let journal = folder.path().join(journal::FILE_NAME);
    assert_eq!(effects(&journal), usize::try_from(RECORDS).unwrap());
}

/// D6.6: not found proves nothing, so young work is sent again, under the same key and with the
/// same parameters (B76).
#[tokio::test]
async fn young_work_is_sent_again_as_it_was() {
    let gateway = Arc::new(Scripted::new([unknown()]));
    let app = scripted(&gateway).start().await;

    app.client.pay("K", &payment()).await.assert_status(202);
    app.database.age("K", TimeDelta::seconds(2)).await;
    status_becomes(&app.database, "succeeded").await;

    let sent = gateway.sent();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0], sent[1]);
    assert_eq!(gateway.asked().len(), 1, "it asks before it sends");
}

/// D6.6: nobody wants a charge at night for a cart that was left in the evening.
#[tokio::test]
async fn old_work_is_only_asked_about_and_sent_by_the_client_s_retry() {
    let gateway = Arc::new(Scripted::new([unknown()]));
    let rescuing = scripted(&gateway).start().await;
    let retrying = TestApp::builder().beside(&rescuing).gateway(&gateway);
    let retrying = retrying.start().await;
    let client = rescuing.client.at(retrying.client.base());

    rescuing
        .client
        .pay("K", &payment())
        .await
        .assert_status(202);
    rescuing.database.age("K", TimeDelta::minutes(16)).await;
    rests_after_attempts(&rescuing.database, 2).await;
    assert_eq!(gateway.asked().len(), 1);
    assert_eq!(gateway.sent().len(), 1, "the rescuer must not send it");
    let database = Arc::clone(&rescuing.database);
    rescuing.stop().await;
    database.age("K", TimeDelta::minutes(1)).await;
    let retry = client.pay("K", &payment()).await;

    retry.assert_status(201);
    assert_eq!(gateway.sent().len(), 2);
}

/// D6.8, I20: `NotExecuted` of a second send says nothing about the first, which here still hangs
/// in the hands of an owner that was superseded.
#[tokio::test]
async fn the_rescuer_never_releases() {
    let refused = Act::Say(Outcome::NotExecuted(NotExecuted::Refused));
    let gateway = Arc::new(Scripted::new([Act::Hang, refused]));
    let app = scripted(&gateway)
        .settings(|raw| "2s".clone_into(&mut raw.gateway.gateway_timeout))
        .start()
        .await;
    let body = payment();

    let (reply, ()) = tokio::join!(app.client.pay("K", &body), async {
        gateway.called(1).await;
        app.database.age("K", TimeDelta::minutes(1)).await;
        rests_after_attempts(&app.database, 2).await;
    });

    assert_eq!(gateway.sent().len(), 2);
    reply.assert_status(202);
    assert_eq!(
        app.database.text(STATUS).await.as_deref(),
        Some("processing")
    );
}

/// D6.6: what is unknown when the gateway may have forgotten the key is for a person, who is told
/// why; it is asked about ever more rarely and never sent. Late evidence settles it.
#[tokio::test]
async fn at_the_end_of_the_key_window_a_payment_goes_to_review_and_late_evidence_settles_it() {
    let findings = [Finding::Absent, Finding::Absent, Finding::Known(approved())];
    let gateway = Arc::new(Scripted::new([unknown()]).finding(findings));
    let app = scripted(&gateway).start().await;

    app.client.pay("K", &payment()).await.assert_status(202);
    app.database.age("K", TimeDelta::hours(23)).await;
    status_becomes(&app.database, "requires_review").await;
    let reason = "SELECT data->>'review_reason' FROM events";
    assert_eq!(
        app.database.text(reason).await.as_deref(),
        Some("key-window-over")
    );
    app.client.pay("K", &payment()).await.assert_status(202);
    app.database.age("K", TimeDelta::hours(1)).await;
    rests_after_attempts(&app.database, 3).await;
    app.database.age("K", TimeDelta::hours(1)).await;
    status_becomes(&app.database, "succeeded").await;

    assert_eq!(gateway.sent().len(), 1, "it must not be sent blindly");
    app.client.pay("K", &payment()).await.assert_status(201);
}

/// The same for a gateway that knows the key and will not say what became of it.
#[tokio::test]
async fn an_outcome_that_the_gateway_never_tells_goes_to_review_too() {
    let in_use = (0..20).map(|_| Finding::Known(Outcome::Unknown(Unknown::InUse)));
    let gateway = Arc::new(Scripted::new([unknown()]).finding(in_use));
    let app = scripted(&gateway).start().await;

    app.client.pay("K", &payment()).await.assert_status(202);
    app.database.age("K", TimeDelta::hours(23)).await;

    status_becomes(&app.database, "requires_review").await;
}

/// What a person looks at is asked about, and sent by nobody: neither by the rescuer, however young
/// it is, nor by the client's retry.
#[tokio::test]
async fn a_payment_in_review_is_asked_about_and_never_sent() {
    let differ = Act::Say(Outcome::Unknown(Unknown::ParametersDiffer));
    let gateway = Arc::new(Scripted::new([differ]));
    let rescuing = scripted(&gateway).start().await;
    let retrying = TestApp::builder().beside(&rescuing).gateway(&gateway);
    let retrying = retrying.start().await;
    let client = rescuing.client.at(retrying.client.base());

    client.pay("K", &payment()).await.assert_status(202);
    rescuing.database.age("K", TimeDelta::seconds(2)).await;
    rests_after_attempts(&rescuing.database, 2).await;
    let database = Arc::clone(&rescuing.database);
    rescuing.stop().await;
    database.age("K", TimeDelta::seconds(4)).await;
    client.pay("K", &payment()).await.assert_status(202);

    assert_eq!(gateway.asked().len(), 2);
    assert_eq!(gateway.sent().len(), 1);
}

/// D6.5: a record is asked about and sent only where it was claimed for.
#[tokio::test]
async fn a_payment_of_another_gateway_goes_to_review() {
    let gateway = Arc::new(Scripted::new([unknown()]));
    let app = scripted(&gateway).start().await;

    app.client.pay("K", &payment()).await.assert_status(202);
    app.database
        .execute("UPDATE payments SET gateway = 'stripe'")
        .await;
    app.database.age("K", TimeDelta::seconds(2)).await;
    status_becomes(&app.database, "requires_review").await;

    assert!(gateway.asked().is_empty());
    assert_eq!(gateway.sent().len(), 1);
}

/// I9, B15: an owner whose lease could not be renewed drops what the gateway says.
///
/// The row is locked, so that each renewal passes it by; the database's clock then says that the
/// lease is over, and the owner stopped trusting itself before that.
#[tokio::test]
async fn an_owner_whose_lease_ran_out_writes_nothing() {
    let gateway = Arc::new(Scripted::new([Act::WaitThenSay(approved())]));
    let app = TestApp::builder()
        .gateway(&gateway)
        .settings(|raw| "2s".clone_into(&mut raw.idempotency.idempotency_lease_ttl))
        .start()
        .await;

    let body = payment();
    let (reply, ()) = tokio::join!(app.client.pay("K", &body), async {
        gateway.called(1).await;
        let mut stranger = app.database.connect().await;
        sqlx::raw_sql("BEGIN; SELECT FROM idempotency_keys FOR UPDATE")
            .execute(&mut stranger)
            .await
            .unwrap();
        let over = "SELECT count(*) FROM idempotency_keys WHERE lease_expires_at <= now()";
        wait_until(PATIENCE, async || app.database.count(over).await == 1).await;
        sqlx::raw_sql("ROLLBACK")
            .execute(&mut stranger)
            .await
            .unwrap();
        gateway.open();
    });

    reply.assert_status(202);
    assert_eq!(
        app.database.text(STATUS).await.as_deref(),
        Some("processing")
    );
    assert_eq!(app.database.count("SELECT count(*) FROM events").await, 0);
}

/// D6.11: renewals have a connection of their own, and payments that wait for the pool do not cost
/// other payments their lease.
#[tokio::test]
async fn leases_are_renewed_while_the_pool_is_exhausted() {
    let gateway = Arc::new(Scripted::new([Act::WaitThenSay(approved())]));
    let app = TestApp::builder()
        .gateway(&gateway)
        .settings(|raw| {
            "2s".clone_into(&mut raw.idempotency.idempotency_lease_ttl);
            "4".clone_into(&mut raw.database.database_max_connections);
        })
        .start()
        .await;
    let body = payment();

    let (reply, ()) = tokio::join!(app.client.pay("K", &body), async {
        gateway.called(1).await;
        let mut stranger = app.database.connect().await;
        // Every read of a payment waits for it, on a connection of the pool.
        sqlx::raw_sql("BEGIN; LOCK TABLE payments IN ACCESS EXCLUSIVE MODE")
            .execute(&mut stranger)
            .await
            .unwrap();
        let exhausting = async {
            loop {
                let lists = (0..200).map(|_| app.client.get("/v1/payments"));
                futures_util::future::join_all(lists).await;
            }
        };
        let renewed = "SELECT count(*) FROM idempotency_keys
            WHERE lease_expires_at > first_sent_at + interval '6 seconds'";
        tokio::select! {
            () = exhausting => {}
            () = wait_until(PATIENCE, async || {
                app.database.count(renewed).await == 1
            }) => {}
        }
        sqlx::raw_sql("ROLLBACK")
            .execute(&mut stranger)
            .await
            .unwrap();
        gateway.open();
    });

    reply.assert_status(201);
}
