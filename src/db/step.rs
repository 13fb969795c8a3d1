//! One visit to the database.

use std::future::Future;

use sqlx::PgConnection;

use super::migrations::{self, MigrationError};

/// One statement, or one transaction, with what it needs.
///
/// A step may be run several times: [`Database::run`](super::Database::run) repeats one that the
/// server rolled back. So it has no effect but on the database, and it ends its transaction.
pub trait Step: Sync {
    /// The name of the statement, as in its `-- name` comment; a metric label.
    const NAME: &'static str;
    type Output: Send;

    fn run(
        &self,
        connection: &mut PgConnection,
    ) -> impl Future<Output = sqlx::Result<Self::Output>> + Send;
}

/// Whether the database answers, and has the schema that this program needs.
#[derive(Clone, Copy, Debug)]
pub struct Ping;

impl Step for Ping {
    const NAME: &'static str = "ping";
    type Output = bool;

    async fn run(&self, connection: &mut PgConnection) -> sqlx::Result<bool> {
        match migrations::is_current(connection).await {
            Ok(current) => Ok(current),
            Err(MigrationError::Database(error)) => Err(error),
            Err(_mismatch) => Ok(false),
        }
    }
}
