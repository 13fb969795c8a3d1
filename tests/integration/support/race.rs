//! Things that go on at the same time, and waiting for one of them.

use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

/// For how long a test waits for what must come at once, on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Waits until `condition` holds. Level-triggered: a condition that held before counts.
#[track_caller]
pub fn wait_until(
    limit: Duration,
    mut condition: impl AsyncFnMut() -> bool,
) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let deadline = Instant::now() + limit;
        while !condition().await {
            assert!(
                Instant::now() < deadline,
                "what is waited for at {caller} did not come within {limit:?}"
            );
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Starts something that goes on beside the test.
#[expect(
    clippy::disallowed_methods,
    reason = "a test has no tasks of its own to track it with"
)]
pub fn in_background<F>(work: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(work)
}
