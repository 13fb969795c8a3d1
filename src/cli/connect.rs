//! The database, for commands that do one thing and end.

use clap::Args;
use sqlx::{ConnectOptions, PgConnection};

use super::CliError;
use crate::{
    config::{DatabaseSettings, RawDatabase, RawLog},
    db::migrations,
};

/// What every administrative command can be told.
#[derive(Args, Clone, Debug)]
pub(super) struct AdminArguments {
    #[command(flatten)]
    database: RawDatabase,
    #[command(flatten)]
    log: RawLog,
}

impl AdminArguments {
    /// Checks the settings and starts logging.
    pub(super) fn prepare(self) -> Result<DatabaseSettings, CliError> {
        super::log(&self.log.validate()?)?;
        Ok(self.database.validate()?)
    }

    /// A connection to a database whose schema this program knows.
    pub(super) async fn connect(self) -> Result<PgConnection, CliError> {
        let mut connection = connect(&self.prepare()?).await?;
        migrations::require_current(&mut connection).await?;
        Ok(connection)
    }
}

/// A single connection: a pool would only slow down a command of one statement.
pub(super) async fn connect(database: &DatabaseSettings) -> Result<PgConnection, CliError> {
    let options = database.connect_options().map_err(CliError::Database)?;
    options.connect().await.map_err(CliError::Database)
}
