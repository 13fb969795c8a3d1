//! Duplicates that race: one executes, the others are told so, and nothing of the database is held
//! or written for them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::future::join_all;
use oncepay::gateways::sandbox::journal;
use tokio::time::Instant;

use crate::support::{
    app::TestApp,
    client::{Reply, payment, payment_with, send},
    database::TestDatabase,
    faults::{self, Fault},
    gateway::{Act, Scripted, approved},
    pair::Ground,
    race::{PATIENCE, in_background},
    wait::wait_until,
};

/// 201 or 409, and a 409 says when to come again. Says whether it is a 201.
#[track_caller]
fn assert_won_or_told(reply: &Reply) -> bool {
    if reply.status == 201 {
        return true;
    }
    reply.assert_problem(409, "idempotency-key-in-progress");
    assert_eq!(reply.header("retry-after"), Some("1"));
    false
}

/// I1, B01, B02. Fifty requests with one new key meet at two processes. Without the claim before
/// the call, or with a claim that looks first and inserts later, several of them pay.
#[tokio::test]
async fn of_fifty_parallel_requests_at_two_processes_exactly_one_pays() {
    const ROUNDS: usize = 200;
    let ground = Ground::create().await;
    let services = [ground.service().start(), ground.service().start()];
    let clients = services.each_ref().map(|service| ground.client(service));
    let body = payment_with("pm_slow_30ms");

    for round in 0..ROUNDS {
        let key = format!("K{round}");
        let requests = (0..50).map(|number| clients[number % 2].pay(&key, &body));
        let replies = join_all(requests).await;

        let won = replies.iter().filter(|reply| assert_won_or_told(reply));
        assert!(won.count() >= 1, "round {round}: somebody must win");
    }

    let effects: Vec<usize> = journal::effects(&ground.journal()).into_values().collect();
    assert_eq!(effects, [1; ROUNDS], "one effect for each key");
    assert_eq!(ground.sends(), ROUNDS, "and not by the gateway's grace");
    let payments = "SELECT count(*) FROM payments WHERE status = 'succeeded'";
    assert_eq!(ground.database.count(payments).await, 200);
    assert_eq!(
        ground.database.count("SELECT count(*) FROM payments").await,
        200
    );
    for service in &services {
        for code in ["40001", "40P01"] {
            let series = format!("database_retries_total{{sqlstate=\"{code}\"}}");
            assert!(
                service.metric(&series).await < 0.5,
                "a lost claim is no failure: {code}"
            );
        }
    }
}

/// The rows of a finished key `K1` as those of a key `K2`, in a transaction that is left open.
const COPY_K1_AS_K2: &str = "
    CREATE TEMP TABLE used AS SELECT * FROM used_keys WHERE key = 'K1';
    CREATE TEMP TABLE record AS SELECT * FROM idempotency_keys WHERE key = 'K1';
    UPDATE used SET key = 'K2';
    UPDATE record SET key = 'K2';
    BEGIN;
    INSERT INTO used_keys SELECT * FROM used;
    INSERT INTO idempotency_keys SELECT * FROM record;";

async fn wait_for_a_blocked_claim(database: &TestDatabase) {
    let blocked = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'oncepay'
            AND wait_event_type = 'Lock'";
    wait_until(PATIENCE, async || database.count(blocked).await > 0).await;
}

/// B04. Session A has inserted the key and not committed; the claim waits on the index; A commits,
/// at once or after several times the lock timeout. The statement that lost cannot see A's row: the
/// answer comes from a second one.
#[tokio::test]
async fn a_claim_that_waits_for_a_rival_replays_what_the_rival_commits() {
    for held in ["SELECT 1", "SELECT pg_sleep(0.35)"] {
        let app = TestApp::start().await;
        let first = app.client.pay("K1", &payment()).await;
        let mut rival = app.database.connect().await;
        crate::support::postgres::execute(&mut rival, COPY_K1_AS_K2).await;
        let client = app.client.clone();

        let waiting = in_background(async move { client.pay("K2", &payment()).await });
        wait_for_a_blocked_claim(&app.database).await;
        crate::support::postgres::execute(&mut rival, held).await;
        crate::support::postgres::execute(&mut rival, "COMMIT").await;

        waiting.await.unwrap().assert_replays(&first);
        assert_eq!(app.effects(), 1, "held by {held}");
    }
}

/// B04, the other end: the rival gives up, and the claim that waited for it wins.
#[tokio::test]
async fn a_claim_that_waits_for_a_rival_wins_when_the_rival_rolls_back() {
    let app = TestApp::start().await;
    app.client.pay("K1", &payment()).await.assert_status(201);
    let mut rival = app.database.connect().await;
    crate::support::postgres::execute(&mut rival, COPY_K1_AS_K2).await;
    let client = app.client.clone();

    let waiting = in_background(async move { client.pay("K2", &payment()).await });
    wait_for_a_blocked_claim(&app.database).await;
    crate::support::postgres::execute(&mut rival, "ROLLBACK").await;

    let reply = waiting.await.unwrap();
    reply.assert_status(201);
    assert!(!reply.replayed(), "it executed itself");
    assert_eq!(app.effects(), 2);
}

/// B05. The claim loses, and when the record is read there is none: twice. The third claim wins.
#[tokio::test]
async fn a_key_that_vanishes_between_claim_and_read_is_claimed_again() {
    let app = TestApp::start().await;
    faults::meet(&app.database, "INSERT ON used_keys", Fault::Swallow, 2).await;

    let reply = app.client.pay("K", &payment()).await;

    reply.assert_status(201);
    assert_eq!(faults::met(&app.database).await, 3, "claims");
    assert_eq!(app.effects(), 1);
}

/// B05. The same each time, for twenty requests: each claims three times and then gives up. None
/// goes on without a claim.
#[tokio::test]
async fn a_key_that_vanishes_each_time_is_given_up_after_three_claims_and_never_executed() {
    let app = TestApp::start().await;
    faults::meet(&app.database, "INSERT ON used_keys", Fault::Swallow, 60).await;

    let replies = join_all((0..20).map(async |_| app.client.pay("K", &payment()).await)).await;

    for reply in replies {
        reply.assert_problem(503, "service-unavailable");
        assert_eq!(reply.json()["retry_with"], "same_key");
        assert_eq!(reply.header("x-should-retry"), Some("true"));
    }
    assert_eq!(faults::met(&app.database).await, 60, "claims");
    assert_eq!(app.effects(), 0, "without a claim nothing is executed");
    let after = app.client.pay("K", &payment()).await;
    after.assert_status(201);
}

/// B09, I10. The claim is committed before the gateway hears anything, so that a duplicate meets
/// the record and does not wait on the index for the first one's transaction.
#[tokio::test]
async fn a_duplicate_is_answered_at_once_while_the_first_is_at_the_gateway() {
    let gateway = Arc::new(Scripted::new([Act::WaitThenSay(approved())]));
    let app = TestApp::builder().gateway(&gateway).start().await;
    let client = app.client.clone();
    let first = in_background(async move { client.pay("K", &payment()).await });
    gateway.called(1).await;

    let started = Instant::now();
    let second = app.client.pay("K", &payment()).await;
    let took = started.elapsed();
    gateway.open();

    assert!(!assert_won_or_told(&second));
    assert!(took < Duration::from_millis(200), "it took {took:?}");
    first.await.unwrap().assert_status(201);
    assert_eq!(gateway.sent().len(), 1);
}

/// B21. Fifty requests wait for the first, which finishes under their eyes. A waiter that took a
/// record which is not in progress any more for a free one would pay again.
#[tokio::test]
async fn fifty_waiters_get_the_answer_of_the_first_when_it_finishes() {
    let app = TestApp::start().await;
    let body = payment_with("pm_slow_30ms").to_string();
    let wait = async |key: &str| {
        let request = app.client.payment_request(body.clone());
        send(
            request
                .header("idempotency-key", key)
                .header("prefer", "wait=20"),
        )
        .await
    };

    for round in 0..40 {
        let key = format!("K{round}");
        let replies = join_all((0..51).map(|_| wait(&key))).await;

        let first = replies.iter().find(|reply| !reply.replayed()).unwrap();
        first.assert_status(201);
        for replay in replies.iter().filter(|reply| *reply != first) {
            replay.assert_replays(first);
        }
    }

    assert_eq!((app.sends(), app.effects()), (40, 40), "one for each key");
}

/// B31, I19. Twenty duplicates and twenty new keys on four connections, the fewest that the service
/// starts with: who holds one connection and asks for a second would wait for ever.
#[tokio::test]
async fn duplicates_and_new_keys_share_the_smallest_pool() {
    let app = TestApp::builder()
        .settings(|settings| "4".clone_into(&mut settings.database.database_max_connections))
        .start()
        .await;
    let body = payment_with("pm_slow_30ms");

    let duplicates = join_all((0..20).map(async |_| app.client.pay("K", &body).await));
    let others = (0..20).map(|number| format!("N{number}"));
    let others = join_all(others.map(async |key| app.client.pay(&key, &body).await));
    let (duplicates, others) = tokio::join!(duplicates, others);

    for reply in &duplicates {
        assert_won_or_told(reply);
    }
    for reply in others {
        reply.assert_status(201);
    }
    assert_eq!((app.sends(), app.effects()), (21, 21));
}

/// B32, S6. Thirty payments at a gateway that takes two seconds, on five connections: nobody holds
/// a transaction, or a connection, across the call.
#[tokio::test]
async fn a_slow_gateway_holds_no_connection_and_no_transaction() {
    let app = TestApp::builder()
        .settings(|settings| "5".clone_into(&mut settings.database.database_max_connections))
        .start()
        .await;
    let client = app.client.clone();
    let resting = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND state LIKE 'idle in transaction%'
            AND state_change < now() - interval '200 ms'";
    let started = Instant::now();

    let body = payment_with("pm_slow_2s");
    let keys = (0..30).map(|number| format!("K{number}"));
    let work = join_all(keys.map(move |key| {
        let (client, body) = (client.clone(), body.clone());
        async move { client.pay(&key, &body).await }
    }));
    let work = in_background(work);
    wait_until(PATIENCE, async || {
        assert_eq!(app.database.count(resting).await, 0, "idle in transaction");
        work.is_finished()
    })
    .await;

    for reply in work.await.unwrap() {
        reply.assert_status(201);
    }
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(app.effects(), 30);
}

/// Rows written and rows dead, of a table, once the sessions that did it have told.
async fn writes(database: &TestDatabase, table: &str) -> BTreeMap<&'static str, i64> {
    let mut writes = BTreeMap::new();
    for column in ["n_tup_ins", "n_tup_upd", "n_tup_del"] {
        let query = format!("SELECT {column} FROM pg_stat_user_tables WHERE relname = '{table}'");
        writes.insert(column, database.count(&query).await);
    }
    writes
}

/// B113. Three hundred clients hammer one key that is in progress: each is told so by reads alone,
/// and payments under other keys go on beside them.
#[tokio::test]
async fn a_herd_on_one_key_writes_nothing_and_stops_nobody() {
    let gateway = Arc::new(Scripted::new([Act::WaitThenSay(approved())]));
    let app = TestApp::builder().gateway(&gateway).start().await;
    let client = app.client.clone();
    let first = in_background(async move { client.pay("K", &payment()).await });
    gateway.called(1).await;

    let until = Instant::now() + Duration::from_secs(3);
    let herd = join_all((0..300).map(async |_| {
        while Instant::now() < until {
            let reply = app.client.pay("K", &payment()).await;
            reply.assert_problem(409, "idempotency-key-in-progress");
        }
    }));
    let others = async {
        for number in 0..5 {
            let reply = app.client.pay(&format!("N{number}"), &payment()).await;
            reply.assert_status(201);
        }
    };
    tokio::join!(herd, others);
    gateway.open();

    first.await.unwrap().assert_status(201);
    let database = Arc::clone(&app.database);
    app.stop().await;
    let inserted = async || writes(&database, "used_keys").await["n_tup_ins"];
    wait_until(PATIENCE, async || inserted().await >= 6).await;
    assert_eq!(inserted().await, 6);
    let records = writes(&database, "idempotency_keys").await;
    assert_eq!(records["n_tup_ins"], 6);
    // Six settles, and what the heartbeat of a lease of 30 s may renew in this time.
    assert!(records["n_tup_upd"] <= 6 + 2, "{records:?}");
    assert_eq!(gateway.sent().len(), 6);
}
