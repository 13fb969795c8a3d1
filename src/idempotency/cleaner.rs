//! Deletes expired records, in batches with a pause between them.
//!
//! What is deleted is a record that was settled, or released, a TTL ago. Its used key stays, so a
//! key that comes back later is answered 410 and never executes again. Any number of cleaners may
//! run at once: they pass each other's rows.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::store::{DeleteExpired, Measure};
use crate::{
    app::App,
    clock::Clock,
    db::{Database, DbError},
    lifecycle::Tasks,
    telemetry::metrics,
};

/// Between two batches: a backlog is worked off without keeping live payments from the disk.
const BATCH_PAUSE: Duration = Duration::from_millis(20);

/// How often the gauges are updated: as often as Prometheus usually asks.
pub const MEASURE_INTERVAL: Duration = Duration::from_secs(15);

/// What a run has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    pub rows_deleted: u64,
    pub batches: u64,
}

/// Deletes until a batch is not full, or the process is asked to stop.
pub async fn run_until_empty(
    database: &Database,
    clock: &dyn Clock,
    batch_size: u32,
    tasks: &Tasks,
) -> Result<Report, DbError> {
    let batch_size = i32::try_from(batch_size).unwrap_or(i32::MAX);
    let started = Instant::now();
    let mut report = Report::default();
    loop {
        let rows = database.run(&DeleteExpired { batch_size }).await?;
        report.rows_deleted += rows;
        report.batches += 1;
        metrics::cleaner_batch(rows);
        let full = i32::try_from(rows).is_ok_and(|rows| rows >= batch_size);
        if !full || tasks.stopping() {
            metrics::cleaner_finished(clock.now(), started.elapsed());
            return Ok(report);
        }
        sleep(BATCH_PAUSE).await;
    }
}

/// A round of the background task.
pub async fn round(app: &App) -> Result<Report, DbError> {
    let done = run_until_empty(
        &app.database,
        &*app.clock,
        app.settings.cleaner.batch_size,
        &app.tasks,
    )
    .await;
    if done.is_err() {
        metrics::cleaner_failed();
    }
    done
}

/// Updates the gauges of what is there.
pub async fn measure(database: &Database) -> Result<(), DbError> {
    let seen = database.run(&Measure).await?;
    let count = |rows: i64| u64::try_from(rows).unwrap_or(0);
    let age = |seconds: i64| Duration::from_secs(count(seconds));
    metrics::cleaner_measured(count(seen.backlog_rows), count(seen.table_bytes));
    metrics::processing_measured(count(seen.processing), age(seen.processing_oldest_seconds));
    metrics::unknown_measured(count(seen.unknown), age(seen.unknown_oldest_seconds));
    Ok(())
}
