//! One visit to the database.

use std::future::Future;

use sqlx::PgConnection;

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
