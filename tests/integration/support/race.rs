//! Things that go on at the same time.

use std::time::Duration;

use tokio::task::JoinHandle;

/// For how long a test waits for what must come at once, on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(20);

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
