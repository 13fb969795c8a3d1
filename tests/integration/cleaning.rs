//! The cleaner deletes what is finished and expired, and nothing else, whoever else is at it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use oncepay::{
    clock::{Clock, SystemClock},
    db::Database,
    gateways::{NotExecuted, Outcome},
    idempotency::{
        cleaner::{self, Report, run_until_empty},
        store::Measure,
    },
    lifecycle::Tasks,
};
use sqlx::Connection as _;

use crate::support::{
    app::TestApp,
    client::{Client, payment, payment_with},
    database::TestDatabase,
    gateway::{Act, Scripted, approved},
    metrics,
    process::Process,
    wait::wait_until,
};

const RECORDS: &str = "SELECT count(*) FROM idempotency_keys";
const USED_KEYS: &str = "SELECT count(*) FROM used_keys";

/// Longer than the default TTL.
const A_WEEK: TimeDelta = TimeDelta::days(7);

/// One call of the cleaner, as `oncepay cleanup` and the background task make it.
async fn clean(database: &TestDatabase, batch_size: u32) -> Report {
    let pool = Database::new(database.options(), 4);
    run_until_empty(&pool, &SystemClock, batch_size, &Tasks::default())
        .await
        .unwrap()
}

/// D7: oldest first, and never more than was asked for in one statement (B85).
#[tokio::test]
async fn a_batch_deletes_at_most_its_size_and_the_oldest_first() {
    let app = TestApp::start().await;
    app.database.add_expired_records(app.merchant_id, 25).await;

    let deleted = app
        .database
        .count("SELECT delete_expired_idempotency_keys(10)")
        .await;
    let left = app
        .database
        .count("SELECT max(substr(key, 9)::bigint) FROM idempotency_keys")
        .await;
    let report = clean(&app.database, 10).await;

    assert_eq!(deleted, 10);
    assert_eq!(left, 15, "the higher the number, the earlier it expired");
    let expected = Report {
        rows_deleted: 15,
        batches: 2,
    };
    assert_eq!(report, expected);
    assert_eq!(app.database.count(USED_KEYS).await, 25, "used keys stay");
}

/// I12: of one record in every state, all older than any TTL, only those that finished go.
#[tokio::test]
async fn only_finished_expired_records_are_deleted() {
    let gateway = Arc::new(Scripted::new([
        Act::Say(approved()),
        Act::Say(approved()),
        Act::Say(Outcome::Unknown(oncepay::gateways::Unknown::Timeout)),
        Act::Hang,
    ]));
    let app = TestApp::builder().gateway(&gateway).start().await;
    app.client
        .pay("expired", &payment())
        .await
        .assert_status(201);
    app.client.pay("live", &payment()).await.assert_status(201);
    app.client
        .pay("unknown", &payment())
        .await
        .assert_status(202);
    let body = payment();
    let hanging = app.client.pay("processing", &body);
    tokio::select! {
        reply = hanging => panic!("{reply:?}"),
        () = gateway.called(4) => {}
    }
    for key in ["expired", "unknown", "processing"] {
        app.database.age(key, A_WEEK).await;
    }

    let report = clean(&app.database, 1000).await;

    assert_eq!(report.rows_deleted, 1);
    let left = app
        .database
        .texts("SELECT key FROM idempotency_keys ORDER BY key")
        .await;
    assert_eq!(left, ["live", "processing", "unknown"]);
}

/// B87: a record that is worked on has no expiry that a cleaner could read.
#[tokio::test]
async fn a_processing_record_cannot_have_an_expiry() {
    let gateway = Arc::new(Scripted::new([Act::Say(Outcome::Unknown(
        oncepay::gateways::Unknown::Timeout,
    ))]));
    let app = TestApp::builder().gateway(&gateway).start().await;
    app.client.pay("K", &payment()).await.assert_status(202);

    let error = app
        .database
        .try_execute("UPDATE idempotency_keys SET expires_at = now() - interval '1 day'")
        .await;

    assert_eq!(error.as_deref(), Some("23514"), "check_violation");
    assert_eq!(clean(&app.database, 1000).await.rows_deleted, 0);
}

/// Replays end with the TTL, and the key stays used: 410 before the cleaner came and after.
#[tokio::test]
async fn a_finished_key_answers_410_before_and_after_its_record_is_deleted() {
    let app = TestApp::start().await;
    let paid = app.client.pay("K", &payment()).await;
    app.database.age("K", A_WEEK).await;

    let before = app.client.pay("K", &payment()).await;
    let report = clean(&app.database, 1000).await;
    let after = app.client.pay("K", &payment()).await;

    assert_eq!(report.rows_deleted, 1);
    for reply in [before, after] {
        reply.assert_problem(410, "idempotency-key-expired");
        assert_eq!(reply.json()["payment_id"], paid.json()["id"]);
    }
    assert_eq!(app.database.count(USED_KEYS).await, 1);
    assert_eq!(app.effects(), 1);
}

/// Nothing was executed under a released key, so its deletion forgets it whole: any request may
/// use it then, for the first time.
#[tokio::test]
async fn a_released_key_goes_with_its_record_and_may_be_used_again() {
    let refused = || Act::Say(Outcome::NotExecuted(NotExecuted::Refused));
    let gateway = Arc::new(Scripted::new([refused(), refused(), refused()]));
    let app = TestApp::builder().gateway(&gateway).start().await;
    let released = app.client.pay("K", &payment()).await;
    app.client.pay("other", &payment()).await.assert_status(201);
    for key in ["K", "other"] {
        app.database.age(key, A_WEEK).await;
    }

    let report = clean(&app.database, 1000).await;
    let used = app.database.texts("SELECT key FROM used_keys").await;
    let again = app
        .client
        .pay("K", &payment_with("pm_card_mastercard"))
        .await;

    released.assert_problem(503, "gateway-unavailable");
    assert_eq!(report.rows_deleted, 2);
    assert_eq!(used, ["other"]);
    again.assert_status(201);
    let keys: Vec<_> = gateway
        .sent()
        .into_iter()
        .map(|sent| sent.gateway_key)
        .collect();
    assert_eq!(keys.first(), keys.last(), "one key, one gateway key");
}

/// B87. Interleaving: the row's condition holds when the cleaner looks; another session has the row
/// and is claiming it again; the cleaner comes by; the other commits; the cleaner comes again.
#[tokio::test]
async fn a_record_that_is_claimed_again_while_the_cleaner_runs_is_not_deleted() {
    let refused = || Act::Say(Outcome::NotExecuted(NotExecuted::Refused));
    let gateway = Arc::new(Scripted::new([refused(), refused(), refused()]));
    let app = TestApp::builder().gateway(&gateway).start().await;
    app.client.pay("K", &payment()).await.assert_status(503);
    app.database.age("K", A_WEEK).await;
    let mut session = app.database.connect().await;
    let mut claiming = session.begin().await.unwrap();
    sqlx::raw_sql(
        "UPDATE idempotency_keys SET status = 'processing', retryable = false, fence = fence + 1,
            first_sent_at = now(), lease_expires_at = now() + interval '1 min',
            completed_at = NULL, expires_at = NULL",
    )
    .execute(&mut *claiming)
    .await
    .unwrap();

    let during = clean(&app.database, 1000).await;
    claiming.commit().await.unwrap();
    let after = clean(&app.database, 1000).await;

    assert_eq!((during.rows_deleted, after.rows_deleted), (0, 0));
    assert_eq!(app.database.count(RECORDS).await, 1);
    assert_eq!(app.database.count(USED_KEYS).await, 1);
}

/// B87: the condition is judged on the row as it is when it is deleted. The cleaner neither waits
/// for a session that prolongs a record nor deletes what it made of it.
#[tokio::test]
async fn a_record_whose_expiry_is_moved_while_the_cleaner_runs_is_not_deleted() {
    let app = TestApp::start().await;
    app.client.pay("K", &payment()).await.assert_status(201);
    app.database.age("K", A_WEEK).await;
    let mut session = app.database.connect().await;
    let mut moving = session.begin().await.unwrap();
    sqlx::raw_sql("UPDATE idempotency_keys SET expires_at = now() + interval '1 hour'")
        .execute(&mut *moving)
        .await
        .unwrap();

    let during = clean(&app.database, 1000).await;
    moving.commit().await.unwrap();
    let after = clean(&app.database, 1000).await;

    assert_eq!((during.rows_deleted, after.rows_deleted), (0, 0));
    let replay = app.client.pay("K", &payment()).await;
    assert!(replay.replayed(), "it is live again");
}

/// B85: two cleaners share the work while payments are made, and wait for nobody.
#[tokio::test]
async fn two_cleaners_delete_fifty_thousand_records_between_live_payments() {
    const EXPIRED: u32 = 50_000;
    let app = TestApp::start().await;
    app.database
        .add_expired_records(app.merchant_id, EXPIRED)
        .await;
    app.client.pay("kept", &payment()).await.assert_status(201);
    let pay = async {
        for number in 0..100 {
            let paid = app.client.pay(&format!("live-{number}"), &payment()).await;
            paid.assert_status(201);
        }
    };

    let (one, other, ()) =
        tokio::join!(clean(&app.database, 1000), clean(&app.database, 1000), pay);

    assert_eq!(one.rows_deleted + other.rows_deleted, u64::from(EXPIRED));
    for report in [one, other] {
        assert!(report.rows_deleted > 0, "both work: {one:?} {other:?}");
        assert!(report.rows_deleted <= report.batches * 1000, "{report:?}");
    }
    assert_eq!(app.database.count(RECORDS).await, 101);
    assert_eq!(app.effects(), 101);
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(app.database.count(deadlocks).await, 0);
}

/// B88: what is not deleted is seen. The gauge takes its value from here.
#[tokio::test]
async fn the_backlog_is_what_is_expired_and_not_deleted() {
    let app = TestApp::start().await;
    app.client.pay("live", &payment()).await.assert_status(201);
    app.database.add_expired_records(app.merchant_id, 30).await;
    let pool = Database::new(app.database.options(), 1);

    let before = pool.run(&Measure).await.unwrap();
    clean(&app.database, 1000).await;
    let after = pool.run(&Measure).await.unwrap();

    assert_eq!((before.backlog_rows, after.backlog_rows), (30, 0));
    assert!(before.table_bytes > 0);
    cleaner::measure(&pool).await.unwrap();
    assert!(metrics::shared("cleaner_table_bytes") > 0.0);
}

/// B88: a round that fails is counted, and the next one comes.
#[tokio::test]
async fn a_cleaner_whose_round_fails_tries_again_and_reports_both() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let (merchant_id, secret) = database.merchant("T1").await;
    let rename = |from: &str, to: &str| format!("ALTER FUNCTION {from}(integer) RENAME TO {to}");
    let name = "delete_expired_idempotency_keys";
    database.execute(&rename(name, "gone")).await;
    database.add_expired_records(merchant_id, 30).await;
    let service = Process::builder(&database, folder.path())
        .env("CLEANUP_INTERVAL", "100ms")
        .start();
    let patience = Duration::from_secs(10);
    let last_success = "cleaner_last_success_timestamp_seconds";

    wait_until(patience, async || {
        service.metric("cleaner_failures_total").await >= 2.0
    })
    .await;
    let while_failing = service.metric(last_success).await;
    database.execute(&rename("gone", name)).await;
    wait_until(patience, async || {
        service.metric("cleaner_rows_deleted_total").await >= 30.0
    })
    .await;

    assert!(while_failing.abs() < f64::EPSILON, "{while_failing}");
    wait_until(patience, async || {
        service.metric(last_success).await > 1_700_000_000.0
    })
    .await;
    assert_eq!(database.count(RECORDS).await, 0);
    let client = Client::new(service.base(), &secret);
    client.pay("K", &payment()).await.assert_status(201);
}

/// B88: a panic ends the round and not the worker.
#[tokio::test]
async fn a_cleaner_whose_round_panics_goes_on_with_the_next() {
    let clock = Arc::new(PanickingClock::default());
    let app = TestApp::builder()
        .clock(Arc::<PanickingClock>::clone(&clock))
        .settings(|settings| "50ms".clone_into(&mut settings.cleaner.cleanup_interval))
        .start()
        .await;
    let restarts = || metrics::shared("worker_restarts_total{worker=\"cleaner\"}");
    let before = restarts();
    let patience = Duration::from_secs(10);

    // No request is under way, so it is the cleaner that reads the clock.
    clock.armed.store(true, Ordering::SeqCst);
    wait_until(patience, async || restarts() > before).await;
    app.database.add_expired_records(app.merchant_id, 30).await;

    wait_until(patience, async || app.database.count(RECORDS).await == 0).await;
    app.client.pay("K", &payment()).await.assert_status(201);
}

/// Panics once when it is armed.
#[derive(Debug, Default)]
struct PanickingClock {
    armed: AtomicBool,
}

impl Clock for PanickingClock {
    fn now(&self) -> DateTime<Utc> {
        assert!(
            !self.armed.swap(false, Ordering::SeqCst),
            "the test says so"
        );
        SystemClock.now()
    }
}
