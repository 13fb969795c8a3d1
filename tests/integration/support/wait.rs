//! Waiting for a condition: bounded, and asked about until it holds.

use std::time::{Duration, Instant};

/// Between two looks.
const POLL: Duration = Duration::from_millis(20);

/// Waits until `condition` holds; fails the test with `what` when it does not within `limit`.
#[track_caller]
pub fn wait_until<C: AsyncFnMut() -> bool>(
    what: &str,
    limit: Duration,
    mut condition: C,
) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    let what = what.to_owned();
    async move {
        let deadline = Instant::now() + limit;
        while !condition().await {
            assert!(
                Instant::now() < deadline,
                "{what}: not within {limit:?} at {caller}"
            );
            tokio::time::sleep(POLL).await;
        }
    }
}
