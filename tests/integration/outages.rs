//! A database that is away, or goes away at the worst moment: nothing is executed twice, and no
//! answer says more than is known.

use std::time::{Duration, Instant};

use crate::support::{
    app::TestApp,
    client::{Client, Reply, payment},
    database::TestDatabase,
    postgres::execute,
    proxy::{Fault, Network, Proxy},
    wait::wait_until,
};

/// A service that reaches its database by way of a proxy.
async fn start() -> (TestApp, Proxy) {
    let database = std::sync::Arc::new(TestDatabase::create().await);
    let proxy = Proxy::start(&database).await;
    let app = TestApp::builder()
        .database(database)
        .database_url(proxy.url())
        .settings(|settings| "2s".clone_into(&mut settings.idempotency.idempotency_lease_ttl))
        .start()
        .await;
    (app, proxy)
}

async fn events(app: &TestApp) -> i64 {
    app.database.count("SELECT count(*) FROM events").await
}

/// Retries until the payment is there; gives the answer.
async fn retry_until_paid(client: &Client) -> Reply {
    let mut last = None;
    wait_until(Duration::from_secs(10), async || {
        let reply = client.pay("K", &payment()).await;
        let paid = reply.status == 201;
        last = Some(reply);
        paid
    })
    .await;
    last.unwrap()
}

/// D4, D1.6: nothing was sent, nothing was executed, and the next request needs no restart.
#[tokio::test]
async fn a_payment_during_an_outage_is_answered_503_and_not_executed() {
    let (app, proxy) = start().await;
    proxy.set(Network::Cut);

    let during = app.client.pay("K", &payment()).await;
    proxy.set(Network::Up);
    let after = app.client.pay("K", &payment()).await;

    during.assert_problem(503, "service-unavailable");
    assert_eq!(during.json()["retry_with"], "same_key");
    assert!(during.header("retry-after").is_some());
    after.assert_status(201);
    assert!(!after.replayed(), "the first one claimed nothing");
    assert_eq!(app.effects(), 1);
}

#[tokio::test]
async fn readiness_follows_the_database_and_liveness_does_not() {
    let (app, proxy) = start().await;

    let before = app.client.get("/readyz").await;
    proxy.set(Network::Cut);
    let during = app.client.get("/readyz").await;
    let alive = app.client.get("/livez").await;
    proxy.set(Network::Up);
    let after = app.client.get("/readyz").await;

    before.assert_status(200);
    during.assert_status(503);
    assert_eq!(during.json()["status"], "database-unreachable");
    alive.assert_status(200);
    after.assert_status(200);
}

/// D6.3: a network that swallows everything is noticed by the deadline, not by TCP.
#[tokio::test]
async fn a_database_that_swallows_everything_is_given_up_after_the_deadline() {
    let (app, proxy) = start().await;
    app.client.get("/readyz").await.assert_status(200);
    proxy.set(Network::BlackHole);
    let asked = Instant::now();

    let during = app.client.pay("K", &payment()).await;
    let took = asked.elapsed();
    proxy.set(Network::Cut);
    proxy.set(Network::Up);

    during.assert_problem(503, "service-unavailable");
    assert!(took < Duration::from_secs(12), "{took:?}");
    retry_until_paid(&app.client).await;
    assert_eq!(app.effects(), 1);
}

/// D6.3: the claim was committed and its answer lost. It is recognised by its owner, so the request
/// that made it goes on.
#[tokio::test]
async fn a_claim_whose_answer_is_lost_is_recognised_by_its_owner() {
    let (app, proxy) = start().await;
    proxy.arm("-- claim\n", Fault::AnswerLost);

    let first = app.client.pay("K", &payment()).await;
    let second = app.client.pay("K", &payment()).await;

    assert!(proxy.struck());
    first.assert_status(201);
    second.assert_replays(&first);
    assert_eq!(app.effects(), 1);
    assert_eq!(
        app.database
            .count("SELECT fence FROM idempotency_keys")
            .await,
        1
    );
}

/// D4: the database is lost while the claim commits. The answer does not say that nothing happened;
/// the claim is there, its owner is gone, and the retry takes over after the lease.
#[tokio::test]
async fn a_database_lost_while_the_claim_commits_is_an_unknown_outcome() {
    let (app, proxy) = start().await;
    proxy.arm("-- claim\n", Fault::AnswerLostAndCut);

    let first = app.client.pay("K", &payment()).await;
    let effects_then = app.effects();
    proxy.set(Network::Up);
    let paid = retry_until_paid(&app.client).await;
    let replay = app.client.pay("K", &payment()).await;

    first.assert_problem(503, "outcome-unknown");
    assert_eq!(first.json()["retry_with"], "same_key");
    assert!(!first.text().to_lowercase().contains("nothing was executed"));
    assert_eq!(
        effects_then, 0,
        "without a claim that is known nothing is sent"
    );
    replay.assert_replays(&paid);
    assert_eq!(app.effects(), 1);
    assert_eq!(events(&app).await, 1);
}

/// The same to the client; but the claim never arrived, so the retry executes at once.
#[tokio::test]
async fn a_claim_that_never_arrived_is_an_unknown_outcome_too() {
    let (app, proxy) = start().await;
    proxy.arm("-- claim\n", Fault::StatementLostAndCut);

    let first = app.client.pay("K", &payment()).await;
    proxy.set(Network::Up);
    let second = app.client.pay("K", &payment()).await;

    first.assert_problem(503, "outcome-unknown");
    second.assert_status(201);
    assert!(!second.replayed());
    assert_eq!(app.effects(), 1);
}

/// D6.9: the settle was committed and its answer lost. The repeated settle meets no row, and the
/// record answers.
#[tokio::test]
async fn a_settle_whose_answer_is_lost_is_answered_with_what_is_stored() {
    let (app, proxy) = start().await;
    proxy.arm("-- settle\n", Fault::AnswerLost);

    let first = app.client.pay("K", &payment()).await;
    let second = app.client.pay("K", &payment()).await;

    assert!(proxy.struck());
    first.assert_status(201);
    assert!(!first.replayed(), "it was executed for this request");
    second.assert_replays(&first);
    assert_eq!((app.effects(), events(&app).await), (1, 1));
}

/// D6.10: only the database step is done again, never the gateway call (B75).
#[tokio::test]
async fn a_settle_that_never_arrived_is_sent_again_and_the_gateway_is_not_called_again() {
    let (app, proxy) = start().await;
    proxy.arm("-- settle\n", Fault::StatementLost);

    let first = app.client.pay("K", &payment()).await;

    assert!(proxy.struck());
    first.assert_status(201);
    assert_eq!((app.effects(), events(&app).await), (1, 1));
    assert_eq!(app.sends(), 1);
}

/// D4: the database is lost before settle and comes back within the lease: the owner still settles.
#[tokio::test]
async fn an_owner_waits_for_a_database_that_comes_back_within_its_lease() {
    let (app, proxy) = start().await;
    proxy.arm("-- settle\n", Fault::StatementLostAndCut);

    let body = payment();
    let (first, ()) = tokio::join!(app.client.pay("K", &body), async {
        let patience = Duration::from_secs(5);
        wait_until(patience, async || proxy.struck()).await;
        proxy.set(Network::Up);
    });

    first.assert_status(201);
    assert_eq!((app.effects(), events(&app).await), (1, 1));
    assert_eq!(
        app.database
            .count("SELECT fence FROM idempotency_keys")
            .await,
        1
    );
}

/// I4, D4: the money has moved and nothing could be written. The answer says that it is not known;
/// the retry finds out, with the same gateway key.
#[tokio::test]
async fn a_database_lost_before_settle_for_longer_than_the_lease_is_an_unknown_outcome() {
    let (app, proxy) = start().await;
    proxy.arm("-- settle\n", Fault::StatementLostAndCut);

    let first = app.client.pay("K", &payment()).await;
    let effects_then = app.effects();
    proxy.set(Network::Up);
    let paid = retry_until_paid(&app.client).await;

    first.assert_problem(503, "outcome-unknown");
    assert_eq!(effects_then, 1);
    assert_eq!(paid.json()["status"], "succeeded");
    assert_eq!((app.effects(), events(&app).await), (1, 1));
}

/// I15: a settle that was committed before the outage is replayed after it.
#[tokio::test]
async fn a_settle_committed_just_before_an_outage_is_replayed_after_it() {
    let (app, proxy) = start().await;
    proxy.arm("-- settle\n", Fault::AnswerLostAndCut);

    let first = app.client.pay("K", &payment()).await;
    proxy.set(Network::Up);
    let second = app.client.pay("K", &payment()).await;

    first.assert_problem(503, "outcome-unknown");
    second.assert_status(201);
    assert!(second.replayed());
    assert_eq!((app.effects(), events(&app).await), (1, 1));
}

/// I4, D1.6: the retry of a request that was executed meets its record and cannot read it. That
/// nothing was executed is more than is known.
#[tokio::test]
async fn a_retry_that_cannot_read_the_record_it_met_does_not_say_that_nothing_happened() {
    let (app, proxy) = start().await;
    let first = app.client.pay("K", &payment()).await;
    proxy.arm("-- read\n", Fault::StatementLostAndCut);

    let retry = app.client.pay("K", &payment()).await;
    proxy.set(Network::Up);
    let again = app.client.pay("K", &payment()).await;

    assert!(proxy.struck());
    retry.assert_problem(503, "outcome-unknown");
    again.assert_replays(&first);
    assert_eq!(app.effects(), 1);
}

/// A restart of PostgreSQL ends every session of the pool; the next request does not notice.
#[tokio::test]
async fn sessions_that_the_server_ended_cost_no_request() {
    let (app, _proxy) = start().await;
    app.client.pay("K0", &payment()).await.assert_status(201);

    for number in 1..=5 {
        app.database
            .execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = 'oncepay'",
            )
            .await;
        let paid = app.client.pay(&format!("K{number}"), &payment()).await;
        paid.assert_status(201);
    }

    assert_eq!(app.effects(), 6);
}

/// I4, D1.6. A claim waits behind another one of its key that does not commit, until its time is
/// over. It did nothing itself; what it waited for may be executed yet.
#[tokio::test]
async fn a_claim_that_waits_behind_another_of_its_key_is_an_unknown_outcome() {
    let (app, _proxy) = start().await;
    let mut stranger = app.database.connect().await;
    let claim = format!(
        "BEGIN; INSERT INTO used_keys (merchant_id, key, operation, resource_id)
         VALUES ('{}', 'K', 'payments.create', gen_random_uuid())",
        app.merchant_id.uuid()
    );
    execute(&mut stranger, &claim).await;

    let waited = app.client.pay("K", &payment()).await;
    execute(&mut stranger, "ROLLBACK").await;
    let made = app.client.pay("K", &payment()).await;

    waited.assert_problem(503, "outcome-unknown");
    assert_eq!(waited.json()["retry_with"], "same_key");
    made.assert_status(201);
    assert_eq!(app.effects(), 1);
}
