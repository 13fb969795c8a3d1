//! What happens when something goes away in the middle: the process, the client, the code.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use oncepay::{
    gateways::{Call, Finding, sandbox::journal},
    idempotency::{gateway_key::gateway_key, key::IdempotencyKey, operation::Operation},
};
use tokio::time::Instant;

use crate::support::{
    app::TestApp,
    client::{Reply, payment, payment_with, send},
    gateway::{Act, Scripted, approved},
    pair::Ground,
    postgres::execute,
    race::{PATIENCE, in_background},
    wait::wait_until,
};

/// I15, B10, B11, B76. A process is killed while its payment is at the gateway. Another one is
/// started, and a client that retries gets the payment within one lease and a second, whatever the
/// TTL of the record (24 h): the gateway is asked, and then hears the same key again.
#[tokio::test]
async fn a_payment_whose_process_is_killed_is_finished_within_one_lease_by_a_retry() {
    let ground = Ground::create().await;
    let service = || ground.service().env("IDEMPOTENCY_LEASE_TTL", "2s").start();
    let mut first = service();
    let body = payment_with("pm_slow_8s");
    let (client, first_body) = (ground.client(&first), body.clone());
    let lost = in_background(async move { client.pay_or_break("K", &first_body).await });
    ground.at_the_gateway().await;

    first.kill();
    let killed = Instant::now();
    let second = service();
    let client = ground.client(&second);
    let mut replies = vec![client.pay("K", &body).await];
    while replies.last().unwrap().status == 409 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        replies.push(client.pay("K", &body).await);
    }
    let took = killed.elapsed();

    assert!(lost.await.unwrap().is_err(), "nobody answers for the dead");
    replies.last().unwrap().assert_status(201);
    // A lease and a second, and as much for the start of a process on a busy machine.
    let limit = Duration::from_secs(4);
    assert!(took < limit, "lease 2 s, and it took {took:?}");
    assert_eq!(ground.effects(), 1);
    assert_eq!(ground.sends(), 2, "the dead one's and the retry's");
    let key = IdempotencyKey::from_path_segment(b"K").unwrap();
    let operation = Operation::PaymentsCreate;
    let expected = gateway_key(ground.merchant_id, &key, operation, Call::Authorize);
    for line in ground.journal() {
        assert_eq!(
            line.gateway_key,
            expected.as_str(),
            "one key for every call"
        );
    }
}

/// B19. The gateway charges and never answers. The retry after the rest asks by gateway key first,
/// and finds the charge: there is no second send.
#[tokio::test]
async fn a_charge_that_was_never_answered_is_found_and_not_sent_again() {
    let app = TestApp::builder()
        .settings(|settings| "300ms".clone_into(&mut settings.gateway.gateway_timeout))
        .start()
        .await;
    let body = payment_with("pm_timeout_after_charge");

    let first = app.client.pay("K", &body).await;
    let rests = app.client.pay("K", &body).await;
    app.database.age("K", chrono::TimeDelta::seconds(3)).await;
    let found = app.client.pay("K", &body).await;

    first.assert_status(202);
    assert_eq!(first.json()["status"], "processing");
    rests.assert_status(202);
    found.assert_status(201);
    assert_eq!(found.json()["status"], "succeeded");
    assert_eq!(found.json()["id"], first.json()["id"]);
    let lines = journal::read(app.sandbox.path().join(journal::FILE_NAME)).unwrap();
    let requests = lines
        .iter()
        .filter(|line| line.kind == journal::Kind::Request);
    let calls: Vec<journal::Call> = requests.map(|line| line.call).collect();
    assert_eq!(calls, [journal::Call::Authorize, journal::Call::Find]);
    assert_eq!(app.effects(), 1);
}

/// B20, E12. The code fails (`action`) right after the gateway approved. The lease is let go, not the
/// key: the first retry finishes what was begun, the others replay it.
async fn fail_after_the_charge(action: &str) -> (Reply, Ground) {
    let ground = Ground::create().await;
    let service = ground
        .service()
        .env("FAILPOINTS", &format!("performed=1*{action}"));
    let service = service.start();
    let client = ground.client(&service);

    let failed = client.pay("K", &payment()).await;
    let first = client.pay("K", &payment()).await;
    let second = client.pay("K", &payment()).await;
    let third = client.pay("K", &payment()).await;

    first.assert_status(201);
    assert!(!first.replayed(), "it finished what was begun");
    assert_eq!(first.json()["status"], "succeeded");
    second.assert_replays(&first);
    third.assert_replays(&first);
    assert_eq!(ground.effects(), 1);
    assert_eq!(ground.sends(), 1, "the first retry asks before it sends");
    assert_eq!(
        ground.database.count("SELECT count(*) FROM events").await,
        1
    );
    (failed, ground)
}

#[tokio::test]
async fn an_error_after_the_charge_is_outcome_unknown_and_the_retry_finds_the_payment() {
    let (failed, _ground) = fail_after_the_charge("return").await;

    failed.assert_problem(503, "outcome-unknown");
    assert_eq!(failed.json()["retry_with"], "same_key");
    assert!(failed.header("retry-after").is_some());
}

#[tokio::test]
async fn a_panic_after_the_charge_is_an_internal_error_and_the_retry_finds_the_payment() {
    let (failed, _ground) = fail_after_the_charge("panic").await;

    failed.assert_problem(500, "internal-error");
    assert_eq!(failed.json()["retry_with"], "same_key");
}

/// E12. The gateway's own code panics, so that nobody knows whether it sent: the retry asks first.
#[tokio::test]
async fn a_panic_inside_the_gateway_leaves_the_key_for_the_next_retry() {
    let gateway = Scripted::new([Act::Panic]).finding([Finding::Known(approved())]);
    let gateway = Arc::new(gateway);
    let app = TestApp::builder().gateway(&gateway).start().await;

    let failed = app.client.pay("K", &payment()).await;
    let retried = app.client.pay("K", &payment()).await;

    failed.assert_problem(500, "internal-error");
    retried.assert_status(201);
    assert_eq!((gateway.sent().len(), gateway.asked().len()), (1, 1));
}

/// B25. A hundred clients go away while their payments are at the gateway. The work goes on without
/// them: every retry gets the payment, which was made once, and nothing is left behind.
#[tokio::test]
async fn payments_whose_clients_hang_up_are_finished_all_the_same() {
    let app = TestApp::start().await;
    let body = payment_with("pm_slow_2s");
    let keys: Vec<String> = (0..100).map(|number| format!("K{number}")).collect();
    let pays = keys.iter().cloned().map(|key| {
        let (client, body) = (app.client.clone(), body.clone());
        async move { client.pay(&key, &body).await }
    });
    let gone = in_background(join_all(pays));
    wait_until(PATIENCE, async || app.sends() == 100).await;

    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    let retries = keys.iter().map(|key| {
        let request = app.client.payment_request(body.to_string());
        send(
            request
                .header("idempotency-key", key)
                .header("prefer", "wait=20"),
        )
    });
    let replies = join_all(retries).await;

    for reply in &replies {
        reply.assert_status(201);
    }
    assert_eq!((app.sends(), app.effects()), (100, 100));
    let succeeded = "SELECT count(*) FROM payments WHERE status = 'succeeded'";
    assert_eq!(app.database.count(succeeded).await, 100);
    let open = "SELECT count(*) FROM idempotency_keys WHERE status <> 'completed'";
    assert_eq!(app.database.count(open).await, 0);
}

/// B27. The client hangs up while the gateway has the payment, and only then the gateway answers:
/// the outcome is written although nobody is there to hear it.
#[tokio::test]
async fn an_outcome_is_written_when_its_client_hung_up_before_it_came() {
    let gateway = Arc::new(Scripted::new([Act::WaitThenSay(approved())]));
    let app = TestApp::builder().gateway(&gateway).start().await;
    let client = app.client.clone();
    let asking = in_background(async move { client.pay("K", &payment()).await });
    gateway.called(1).await;

    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    // Once the closed connection has reached the server, a handler that it could cancel is gone.
    app.client.get("/livez").await.assert_status(200);
    gateway.open();
    let finished = "SELECT count(*) FROM idempotency_keys WHERE status = 'completed'";
    wait_until(PATIENCE, async || app.database.count(finished).await == 1).await;
    let retried = app.client.pay("K", &payment()).await;

    retried.assert_status(201);
    assert!(retried.replayed());
    assert_eq!(gateway.sent().len(), 1);
}

/// D4. The work outlasts `REQUEST_TIMEOUT` (here its settle waits for a lock that a stranger holds):
/// the client is told that it is not known yet, the work goes on, and the same key then gets the
/// final answer.
#[tokio::test]
async fn a_request_that_outlasts_its_timeout_is_202_and_its_retry_gets_the_final_answer() {
    let app = TestApp::builder()
        .settings(|settings| {
            "500ms".clone_into(&mut settings.gateway.gateway_timeout);
            "1s".clone_into(&mut settings.http.request_timeout);
        })
        .start()
        .await;
    let mut stranger = app.database.connect().await;
    execute(
        &mut stranger,
        "BEGIN; SELECT FROM event_counters FOR UPDATE",
    )
    .await;

    let early = app.client.pay("K", &payment()).await;
    execute(&mut stranger, "COMMIT").await;
    let request = app.client.payment_request(payment().to_string());
    let last = send(
        request
            .header("idempotency-key", "K")
            .header("prefer", "wait=1"),
    )
    .await;

    early.assert_status(202);
    assert_eq!(early.json()["status"], "processing");
    assert!(early.header("retry-after").is_some());
    assert_eq!(early.header("idempotent-replayed"), Some("false"));
    last.assert_status(201);
    assert_eq!(last.json()["id"], early.json()["id"]);
    assert_eq!(app.effects(), 1);
}

/// I6. The same when the record is not this request's, or has an answer: the claim waits (a stranger
/// has locked the table), and the record alone decides what is said.
#[tokio::test]
async fn a_request_that_outlasts_its_timeout_says_what_the_record_says() {
    let app = TestApp::builder()
        .settings(|settings| {
            "500ms".clone_into(&mut settings.gateway.gateway_timeout);
            "1s".clone_into(&mut settings.http.request_timeout);
        })
        .start()
        .await;
    let first = app.client.pay("K", &payment()).await;
    let mut stranger = app.database.connect().await;
    execute(&mut stranger, "BEGIN; LOCK TABLE used_keys IN SHARE MODE").await;

    let (body, other) = (payment(), payment_with("pm_card_mastercard"));
    let (same, other, new) = tokio::join!(
        app.client.pay("K", &body),
        app.client.pay("K", &other),
        app.client.pay("N", &body),
    );
    execute(&mut stranger, "COMMIT").await;

    same.assert_replays(&first);
    other.assert_problem(422, "idempotency-key-reused");
    new.assert_problem(503, "outcome-unknown");
    assert_eq!(new.json()["retry_with"], "same_key");
}

/// I4. The claim meets the key, and then the record cannot be read: an answer that nothing was
/// executed would be a guess, and a wrong one.
#[tokio::test]
async fn a_record_that_cannot_be_read_is_outcome_unknown() {
    let app = TestApp::start().await;
    let first = app.client.pay("K", &payment()).await;
    let rename = "ALTER TABLE idempotency_keys RENAME COLUMN";

    app.database
        .execute(&format!("{rename} completed_at TO gone"))
        .await;
    let unread = app.client.pay("K", &payment()).await;
    app.database
        .execute(&format!("{rename} gone TO completed_at"))
        .await;
    let replay = app.client.pay("K", &payment()).await;

    unread.assert_problem(503, "outcome-unknown");
    replay.assert_replays(&first);
    assert_eq!(app.effects(), 1);
}
