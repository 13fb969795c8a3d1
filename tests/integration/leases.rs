//! Leases: kept by heartbeat as long as the owner works, and worth nothing once somebody else has
//! the record.

use std::{sync::Arc, time::Duration};

use nix::sys::signal::Signal;
use oncepay::{
    db::Database,
    gateways::{Finding, Outcome, Unknown},
    idempotency::{
        key::IdempotencyKey,
        record::Acquired,
        store::{LetGo, Renew},
    },
};

use crate::support::{
    app::TestApp,
    client::{payment, payment_with},
    gateway::{Act, Scripted, approved},
    pair::Ground,
    race::{PATIENCE, in_background},
    wait::wait_until,
};

/// How long the lease of `K` still lasts, in milliseconds.
const LEFT_MS: &str =
    "SELECT (EXTRACT(epoch FROM lease_expires_at - clock_timestamp()) * 1000)::bigint
    FROM idempotency_keys WHERE key = 'K'";

/// B12. The gateway takes twice as long as the lease. The heartbeat keeps the lease, so that every
/// retry meanwhile is told to wait; without it a retry would take over and send a second time.
#[tokio::test]
async fn a_lease_is_renewed_while_the_gateway_is_slower_than_it() {
    let app = TestApp::builder()
        .settings(|settings| "2s".clone_into(&mut settings.idempotency.idempotency_lease_ttl))
        .start()
        .await;
    let body = payment_with("pm_slow_4s");
    let (client, first_body) = (app.client.clone(), body.clone());
    let first = in_background(async move { client.pay("K", &first_body).await });
    let records = "SELECT count(*) FROM idempotency_keys";
    wait_until(PATIENCE, async || app.database.count(records).await == 1).await;

    for _half_second in 0..7 {
        let retry = app.client.pay("K", &body).await;
        retry.assert_problem(409, "idempotency-key-in-progress");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    first.await.unwrap().assert_status(201);
    assert_eq!(
        app.database
            .count("SELECT fence FROM idempotency_keys")
            .await,
        1
    );
    assert_eq!(app.effects(), 1);
}

/// B13, I8, I9. The first owner is stopped in the middle of its call until its lease is over; a
/// second one takes over and finishes; the first wakes up with an approval in its hands. It writes
/// nothing, and answers what the second has stored.
#[tokio::test]
async fn an_owner_that_wakes_up_after_a_take_over_writes_nothing_and_answers_what_is_stored() {
    let ground = Ground::create().await;
    let service = || ground.service().env("IDEMPOTENCY_LEASE_TTL", "2s").start();
    let (first, second) = (service(), service());
    let body = payment_with("pm_slow_5s");
    let (client, first_body) = (ground.client(&first), body.clone());
    let slow = in_background(async move { client.pay("K", &first_body).await });
    ground.at_the_gateway().await;

    first.signal(Signal::SIGSTOP);
    wait_until(PATIENCE, async || ground.database.count(LEFT_MS).await < 0).await;
    let finished = ground.client(&second).pay("K", &body).await;
    first.signal(Signal::SIGCONT);
    let late = slow.await.unwrap();

    finished.assert_status(201);
    late.assert_replays(&finished);
    assert!(first.metric("idempotency_leases_lost_total").await > 0.5);
    assert_eq!(
        ground
            .database
            .count("SELECT fence FROM idempotency_keys")
            .await,
        2
    );
    assert_eq!(
        ground.database.count("SELECT count(*) FROM events").await,
        1
    );
    assert_eq!(
        ground.database.count("SELECT version FROM payments").await,
        1
    );
    assert_eq!(ground.effects(), 1);
}

/// The hold that is on `K` now.
async fn held(app: &TestApp) -> Acquired {
    let text = async |column: &str| {
        let query = format!("SELECT {column}::text FROM idempotency_keys WHERE key = 'K'");
        app.database.text(&query).await.unwrap()
    };
    Acquired {
        merchant_id: app.merchant_id,
        key: IdempotencyKey::from_path_segment(b"K").unwrap(),
        fence: text("fence").await.parse().unwrap(),
        owner: text("owner").await.parse().unwrap(),
        attempts: 1,
    }
}

/// D6.4, D6.7. A heartbeat is sent; before it arrives, its owner parks the record. A renewal that
/// met the row would turn a rest of two seconds into a whole lease.
#[tokio::test]
async fn a_renewal_that_arrives_after_its_owner_parked_the_record_renews_nothing() {
    let unknown = Outcome::Unknown(Unknown::LostReply);
    let gateway = Arc::new(Scripted::new([Act::WaitThenSay(unknown)]));
    let app = TestApp::builder().gateway(&gateway).start().await;
    let client = app.client.clone();
    let paying = in_background(async move { client.pay("K", &payment()).await });
    gateway.called(1).await;
    let held = [held(&app).await];
    gateway.open();
    paying.await.unwrap().assert_status(202);

    let renewal = Renew {
        held: &held,
        lease_ttl: Duration::from_secs(30),
    };
    let database = Database::new(app.database.options(), 1);
    let renewed = database.run(&renewal).await.unwrap();

    assert!(
        renewed.is_empty(),
        "the record is parked, and nobody holds it"
    );
    assert!(
        app.database.count(LEFT_MS).await <= 2000,
        "it rests no longer"
    );
}

/// D6.12. The same for a record that its owner let go: another instance must get it at once. The
/// owner that goes on all the same writes nothing, and whoever comes next finds out what happened.
#[tokio::test]
async fn a_renewal_that_arrives_after_its_owner_let_go_renews_nothing() {
    let found = Finding::Known(approved());
    let gateway = Scripted::new([Act::WaitThenSay(approved())]).finding([found]);
    let gateway = Arc::new(gateway);
    let app = TestApp::builder().gateway(&gateway).start().await;
    let client = app.client.clone();
    let paying = in_background(async move { client.pay("K", &payment()).await });
    gateway.called(1).await;
    let held = [held(&app).await];
    let database = Database::new(app.database.options(), 1);

    let let_go = database.run(&LetGo(&held)).await.unwrap();
    let renewal = Renew {
        held: &held,
        lease_ttl: Duration::from_secs(30),
    };
    let renewed = database.run(&renewal).await.unwrap();
    gateway.open();

    assert_eq!(let_go, 1);
    assert!(renewed.is_empty(), "nobody holds it any more");
    paying.await.unwrap().assert_status(202);
    app.client.pay("K", &payment()).await.assert_status(201);
    assert_eq!(gateway.sent().len(), 1, "the next one asks first");
    assert_eq!(app.database.count("SELECT count(*) FROM events").await, 1);
}
