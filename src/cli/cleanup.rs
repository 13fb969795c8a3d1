//! `oncepay cleanup`: the cleaner once, for schedulers outside of the service.

use clap::Args;

use super::{CliError, output};
use crate::{
    clock::SystemClock,
    config::{RawCleaner, RawDatabase, RawLog},
    db::{Database, migrations},
    idempotency::cleaner,
    lifecycle::Tasks,
};

#[derive(Args, Debug)]
pub(super) struct CleanupArguments {
    #[command(flatten)]
    database: RawDatabase,
    #[command(flatten)]
    cleaner: RawCleaner,
    #[command(flatten)]
    log: RawLog,
}

/// Deletes until nothing is expired, and prints what it did. Any number may run at once, beside the
/// background task of every instance; one that is killed has lost nothing.
pub(super) async fn run(arguments: CleanupArguments) -> Result<(), CliError> {
    super::log(&arguments.log.validate()?)?;
    let settings = arguments.database.validate()?;
    let cleaner = arguments.cleaner.validate()?;
    let options = settings.connect_options().map_err(CliError::Database)?;
    let database = Database::new(options, settings.max_connections);
    let mut connection = database
        .pool()
        .acquire()
        .await
        .map_err(CliError::Database)?;
    migrations::require_current(&mut connection).await?;
    drop(connection);
    let report = cleaner::run_until_empty(
        &database,
        &SystemClock,
        cleaner.batch_size,
        &Tasks::default(),
    )
    .await
    .map_err(|error| CliError::step("the expired records cannot be deleted", error))?;
    output::object(&report)
}
