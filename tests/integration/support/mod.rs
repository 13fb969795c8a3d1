//! What tests stand on: a PostgreSQL server per run, a database per test, services in this process
//! or as processes of their own, a client, a scripted gateway, and a probe that only reads.

pub mod app;
pub mod client;
pub mod database;
pub mod gateway;
pub mod postgres;
pub mod process;
pub mod raw;

use std::time::{Duration, Instant};

/// Waits until `condition` holds, looking often; fails the test where it does not within `limit`.
pub async fn wait_until(limit: Duration, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition().await {
        assert!(
            Instant::now() < deadline,
            "the condition must hold within {limit:?}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
