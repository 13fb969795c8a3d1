//! Connections that were left inside a transaction never reach a request.

use std::time::Duration;

use oncepay::db::Database;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use sqlx::{PgPool, Row as _};

use crate::support::database::TestDatabase;

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
