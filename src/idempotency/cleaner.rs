//! Deletes expired records, in batches with a pause between them.
//!
//! What is deleted is a record that was settled, or released, a TTL ago. Its used key stays, so a
//! key that comes back later is answered 410 and never executes again. Any number of cleaners may
//! run at once: they pass each other's rows.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::store::{DeleteExpired, Measure};
use crate::{
    db::{Database, DbError},
    lifecycle::Tasks,
    telemetry::metrics,
};

/// Between two batches: a backlog is worked off without keeping live payments from the disk.
const BATCH_PAUSE: Duration = Duration::from_millis(20);

/// What a run has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    pub rows_deleted: u64,
    pub batches: u64,
}

/// Deletes until a batch is not full, or the process is asked to stop.
pub async fn run_until_empty(
    database: &Database,
    batch_size: i32,
    tasks: &Tasks,
) -> Result<Report, DbError> {
    let started = Instant::now();
    let mut report = Report::default();
    loop {
        let rows = database.run(&DeleteExpired { batch_size }).await?;
        report.rows_deleted += rows;
        report.batches += 1;
        metrics::cleaner_batch(rows);
        let full = i32::try_from(rows).is_ok_and(|rows| rows >= batch_size);
        if !full || tasks.stopping() {
            metrics::cleaner_succeeded(started.elapsed());
            return Ok(report);
        }
        sleep(BATCH_PAUSE).await;
    }
}

/// Updates the gauges of what is there.
pub async fn measure(database: &Database) -> Result<(), DbError> {
    metrics::measured(&database.run(&Measure).await?);
    Ok(())
}
