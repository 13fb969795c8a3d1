//! Background work in rounds: jittered, supervised, stopped at shutdown.
//!
//! A round that fails or panics is logged and counted, and the next one comes all the same: a
//! cleaner that died silently is found months later by a full disk.

use std::{future::Future, time::Duration};

use rand::RngExt as _;
use tokio::time::sleep;

use crate::{lifecycle::Tasks, telemetry::metrics};

/// Runs `round` every `interval` until shutdown. The first comes after a random part of it, so
/// that instances which start together do not work together.
pub fn start<R, F, T, E>(tasks: &Tasks, name: &'static str, interval: Duration, round: R)
where
    R: Fn() -> F + Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: std::error::Error + Send + 'static,
{
    metrics::worker_registered(name);
    let supervisor = tasks.clone();
    tasks.spawn(async move {
        let mut pause = rand::rng().random_range(Duration::ZERO..=interval);
        loop {
            tokio::select! {
                () = supervisor.stopped() => return,
                () = sleep(pause) => {}
            }
            pause = interval;
            // In a task of its own: a panic ends the round, not the worker.
            match supervisor.spawn(round()).await {
                Ok(Ok(_done)) => {}
                Ok(Err(error)) => {
                    tracing::warn!(worker = name, error = %error, "a round failed");
                }
                Err(panic) => {
                    metrics::worker_restarted(name);
                    tracing::error!(worker = name, error = %panic, "a round panicked");
                }
            }
        }
    });
}
