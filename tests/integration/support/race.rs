//! Things that go on at the same time.

use std::time::Duration;

use tokio::{
    runtime::Handle,
    sync::Mutex,
    task::{JoinError, JoinHandle},
};

/// For how long a test waits for what must come at once, on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Taken by tests that start many processes and hold them to times: two of them at once would be
/// each other's load.
pub static MANY_PROCESSES: Mutex<()> = Mutex::const_new(());

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

/// Starts something that goes on beside the test in a thread of its own, where it may block: on
/// the start of a process, for example.
pub fn in_a_thread<W, F>(work: W) -> JoinHandle<F::Output>
where
    W: FnOnce() -> F + Send + 'static,
    F: Future,
    F::Output: Send + 'static,
{
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(work()))
}

/// What a task that panicked said.
pub fn panicked(error: JoinError) -> String {
    let said = error.into_panic();
    let text = said.downcast_ref::<String>().cloned();
    text.or_else(|| said.downcast_ref::<&str>().map(ToString::to_string))
        .unwrap_or_else(|| "a panic without words".to_owned())
}
