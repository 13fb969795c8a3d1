//! `oncepay audit`: was anyone charged without a record, and is all else as promised?

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::{CliError, connect, output};
use crate::audit::{self, journal};

#[derive(Args, Debug)]
pub(super) struct AuditArguments {
    /// A sandbox's journal, to be compared with the payments
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    #[command(flatten)]
    database: connect::AdminArguments,
}

/// The last line.
#[derive(Debug, Serialize)]
struct Summary {
    /// Over the database; a journal adds its own.
    checks: usize,
    journal: bool,
    breaches: usize,
}

/// Prints one line per breach and a summary, and fails if there is any. It changes nothing and may
/// run at any time, beside any number of instances.
pub(super) async fn run(arguments: AuditArguments) -> Result<(), CliError> {
    let mut connection = arguments.database.connect().await?;
    let path = arguments.journal;
    let lines = path.as_ref().map(|path| move || journal::read(path));
    let lines = lines
        .as_ref()
        .map(|lines| -> &(dyn Fn() -> std::io::Result<Vec<journal::Line>> + Send + Sync) { lines });
    let breaches = audit::run(&mut connection, lines)
        .await
        .map_err(|error| CliError::step("the audit has not ended", error))?;
    breaches.iter().try_for_each(output::object)?;
    output::object(&Summary {
        checks: audit::checks(),
        journal: path.is_some(),
        breaches: breaches.len(),
    })?;
    if breaches.is_empty() {
        Ok(())
    } else {
        Err(CliError::Breaches(breaches.len()))
    }
}
