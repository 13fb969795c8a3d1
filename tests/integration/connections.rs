//! Connections that were left inside a transaction never reach a request.

use std::time::Duration;

use oncepay::db::{Database, DbError, Step};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use sqlx::{PgConnection, PgPool, Row as _};

use crate::support::{database::TestDatabase, metrics};

/// Cancels `BEGIN` at a random moment, and says how often the next user of the pool's only
/// connection then found itself inside somebody else's transaction.
async fn poisoned_after_cancelled_begins(pool: &PgPool, rounds: u32) -> u32 {
    let mut random = StdRng::seed_from_u64(1);
    let mut poisoned = 0;
    for _round in 0..rounds {
        let limit = Duration::from_micros(random.random_range(0..2000));
        drop(tokio::time::timeout(limit, pool.begin()).await);
        let mut connection = pool.acquire().await.unwrap();
        let at_rest = sqlx::raw_sql("SELECT now() = statement_timestamp()");
        let row = sqlx::Executor::fetch_one(&mut *connection, at_rest)
            .await
            .unwrap();
        if !row.get::<bool, _>(0) {
            poisoned += 1;
            // Put right, so that each round counts its own cancellation only.
            sqlx::raw_sql("ROLLBACK")
                .execute(&mut *connection)
                .await
                .unwrap();
        }
    }
    poisoned
}

/// The thousand cancellations of D6.3. The first half is the proof that the second can fail: on a
/// plain pool of sqlx 0.9.0 cancelled transactions do leak.
#[tokio::test]
async fn a_cancelled_begin_leaves_no_transaction_in_the_pool() {
    let database = TestDatabase::create().await;
    let plain = sqlx::postgres::PgPoolOptions::new().max_connections(1);
    let plain = plain.connect_with(database.options()).await.unwrap();
    let guarded = Database::new(database.options(), 1);

    let without_guard = poisoned_after_cancelled_begins(&plain, 1000).await;
    let with_guard = poisoned_after_cancelled_begins(guarded.pool(), 1000).await;

    assert!(
        without_guard > 0,
        "the fault must occur, or this test proves nothing"
    );
    assert_eq!(with_guard, 0, "of 1,000; without the guard {without_guard}");
    let idle = "SELECT count(*) FROM pg_stat_activity
        WHERE state = 'idle in transaction' AND datname = current_database()
            AND application_name = 'oncepay'";
    assert_eq!(database.count(idle).await, 0);
}

/// Says which session it runs on, and then does not end.
struct Endless(tokio::sync::mpsc::UnboundedSender<i32>);

impl Step for Endless {
    const NAME: &'static str = "endless";
    type Output = ();

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<()> {
        let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
            .fetch_one(&mut *connection)
            .await?;
        self.0.send(pid).unwrap();
        sqlx::raw_sql("SELECT pg_sleep(5)")
            .execute(connection)
            .await?;
        Ok(())
    }
}

/// Says which session it runs on.
struct Who;

impl Step for Who {
    const NAME: &'static str = "who";
    type Output = i32;

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<i32> {
        sqlx::query_scalar("SELECT pg_backend_pid()")
            .fetch_one(connection)
            .await
    }
}

/// D6.3: whoever drops a step in the middle leaves a connection on which an answer is still to come.
/// It is closed, and the pool's place for it is free at once.
#[tokio::test]
async fn a_step_that_is_dropped_in_the_middle_takes_its_connection_with_it() {
    let database = TestDatabase::create().await;
    let service = Database::new(database.options(), 1);
    let (sender, mut sessions) = tokio::sync::mpsc::unbounded_channel();
    let endless = Endless(sender);

    let dropped = tokio::select! {
        ended = service.run(&endless) => panic!("{ended:?}"),
        session = sessions.recv() => session.unwrap(),
    };
    let next = service.run(&Who).await.unwrap();

    assert_ne!(
        next, dropped,
        "a connection with an answer to come was used again"
    );
    assert_eq!(service.pool().size(), 1);
}

/// D6.3: a step without an answer by its deadline is not known to have failed, and its connection
/// is closed.
#[tokio::test]
async fn a_step_that_outlasts_its_deadline_is_unanswered_and_its_connection_closed() {
    let database = TestDatabase::create().await;
    let service = Database::new(database.options(), 1);
    let (sender, mut sessions) = tokio::sync::mpsc::unbounded_channel();
    let limit = tokio::time::Instant::now() + Duration::from_millis(500);

    let ended = service.run_until(&Endless(sender), limit).await;
    let next = service.run(&Who).await.unwrap();

    assert!(matches!(ended, Err(DbError::Unanswered(None))), "{ended:?}");
    assert_ne!(Some(next), sessions.recv().await);
}

/// B28: a connection that came back inside a transaction is discarded and counted, and what was
/// written in that transaction is not there.
#[tokio::test]
async fn a_connection_found_in_a_transaction_is_discarded_and_counted() {
    let database = TestDatabase::create().await;
    let service = Database::new(database.options(), 1);
    let discarded = || metrics::shared("database_connections_discarded_total");
    oncepay::telemetry::metrics::install().unwrap();
    let before = discarded();
    let poisoned = {
        let mut connection = service.pool().acquire().await.unwrap();
        sqlx::raw_sql("BEGIN; CREATE TABLE lost ()")
            .execute(&mut *connection)
            .await
            .unwrap();
        let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        pid
    };

    let next = service.run(&Who).await.unwrap();

    assert_ne!(next, poisoned);
    assert!(discarded() >= before + 1.0);
    let lost = "SELECT count(*) FROM pg_class WHERE relname = 'lost'";
    assert_eq!(database.count(lost).await, 0);
}
