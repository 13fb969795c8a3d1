//! `oncepay migrate`: the schema, on its own.

use clap::Args;
use serde::Serialize;

use super::{CliError, connect, output};
use crate::db::migrations::{self, MigrationError};

#[derive(Args, Debug)]
pub(super) struct MigrateArguments {
    /// Lists what is pending, applies nothing, and exits 1 if there is any
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    database: connect::AdminArguments,
}

/// One migration, as printed.
#[derive(Debug, Serialize)]
struct MigrationView<'a> {
    migration: &'a str,
    status: &'static str,
}

pub(super) async fn run(arguments: MigrateArguments) -> Result<(), CliError> {
    let database = arguments.database.prepare()?;
    if arguments.check {
        let mut connection = connect::connect(&database).await?;
        let files = migrations::pending(&mut connection).await?;
        print(&files, "pending")?;
        return if files.is_empty() {
            Ok(())
        } else {
            Err(MigrationError::Pending { files }.into())
        };
    }
    let options = database.connect_options().map_err(CliError::Database)?;
    print(&migrations::apply(&options).await?.files, "applied")
}

fn print(files: &[String], status: &'static str) -> Result<(), CliError> {
    files
        .iter()
        .try_for_each(|migration| output::object(&MigrationView { migration, status }))
}
