//! Waiting for a condition: bounded, and asked about until it holds.

use std::{
    panic::Location,
    time::{Duration, Instant},
};

/// Between two looks.
const POLL: Duration = Duration::from_millis(10);

/// Waits until `condition` holds, and fails the test when it does not within `limit`.
#[track_caller]
pub fn wait_until<C: AsyncFnMut() -> bool>(
    limit: Duration,
    mut condition: C,
) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let deadline = Instant::now() + limit;
        while !condition().await {
            assert!(Instant::now() < deadline, "not within {limit:?}: {caller}");
            tokio::time::sleep(POLL).await;
        }
    }
}
