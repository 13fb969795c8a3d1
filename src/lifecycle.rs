//! Tasks and their end: nothing runs untracked, and shutdown waits for what must finish.

use std::{future::Future, time::Duration};

use tokio::task::JoinHandle;
use tokio_util::{
    sync::{CancellationToken, WaitForCancellationFutureOwned},
    task::TaskTracker,
};

/// Every task of the process. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stopping: CancellationToken,
}

impl Tasks {
    /// Runs `work` to its end whoever stops listening: dropping the handle does not cancel it.
    #[expect(clippy::disallowed_methods, reason = "the one place that spawns")]
    pub fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tokio::spawn(self.tracker.track_future(work))
    }

    /// Asks workers to stop after what they are doing.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    pub fn stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Resolves when [`stop`](Self::stop) was called.
    pub fn stopped(&self) -> WaitForCancellationFutureOwned {
        self.stopping.clone().cancelled_owned()
    }

    /// Whether no task runs now.
    pub fn idle(&self) -> bool {
        self.tracker.is_empty()
    }

    /// Waits until every task has ended, at most `limit`. Says whether all did.
    pub async fn drain(&self, limit: Duration) -> Drained {
        self.tracker.close();
        match tokio::time::timeout(limit, self.tracker.wait()).await {
            Ok(()) => Drained::All,
            Err(_elapsed) => Drained::Left(self.tracker.len()),
        }
    }
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    All,
    /// So many tasks were still running.
    Left(usize),
}
