//! The schema: which migrations this program contains, and which ones the database has.
//!
//! Migrations go forward only, and an applied one is never edited. [`apply`] may run in several
//! processes at once: sqlx takes a session-wide advisory lock, so one applies and the others find
//! nothing to do. It opens a connection of its own and closes it, for two reasons: the lock lives as
//! long as the session, so the connection must not return to a pool; and a pool's `lock_timeout`
//! would cut the wait for the other process short.
//!
//! A database can be *newer* than the program: an instance of the next release migrated it while
//! this one was running. That must not stop an instance that already serves, or every rolling
//! update would be an outage, so [`is_current`] accepts it and [`require_current`], which decides
//! whether a program may start, does not: nobody has tried this release on that schema.

use std::collections::BTreeMap;

use sha2::{Digest, Sha384};
use sqlx::{
    ConnectOptions, Connection, PgConnection,
    migrate::{Migrate, MigrateError, Migration, Migrator},
    postgres::PgConnectOptions,
};

/// Where sqlx keeps what was applied; the same table that sqlx-cli uses.
const TABLE: &str = "_sqlx_migrations";

static MIGRATOR: Migrator = sqlx::migrate!();

/// Why the schema is not what this program needs.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    #[error("the database cannot be asked for its migrations")]
    Database(#[from] sqlx::Error),
    #[error("migration {file} failed and was rolled back; the ones before it stay applied")]
    Failed { file: String, source: sqlx::Error },
    #[error(
        "this program was built with CRLF line endings in migration {file}; check migrations/ out \
         again with LF (.gitattributes asks for `eol=lf`) and rebuild"
    )]
    BuiltWithCrlf { file: String },
    #[error(
        "migration {file} was applied by a program built with CRLF line endings; nothing else \
         differs, so tell the database: UPDATE {TABLE} SET checksum = '\\x{checksum}' WHERE \
         version = {version}"
    )]
    AppliedWithCrlf {
        file: String,
        version: i64,
        checksum: String,
    },
    #[error(
        "migration {file} was edited after it had been applied; restore it from the release that \
         applied it, and put the change into a new file in migrations/"
    )]
    Edited { file: String },
    #[error("the database has migration {version}, which is newer than this program; update it")]
    Newer { version: i64 },
    #[error(
        "the database is behind: {} not applied; run `oncepay migrate`, or start with --migrate",
        files.join(", ")
    )]
    Pending { files: Vec<String> },
    #[error("the migrations cannot be applied")]
    Refused(#[source] MigrateError),
}

/// The files that a call of [`apply`] applied, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    pub files: Vec<String>,
}

/// Applies what is missing. Safe to run in several processes at once, and again after a crash:
/// every migration commits together with the row that says that it was applied.
pub async fn apply(options: &PgConnectOptions) -> Result<Applied, MigrationError> {
    let mut connection = options.connect().await?;
    let outcome = apply_locked(&mut connection).await;
    // Ends the session, and with it the lock. An error here changes nothing about what was
    // committed.
    drop(connection.close().await);
    outcome
}

/// Looks under the lock that sqlx takes again for itself (a session may hold it twice), so that the
/// answer names what this process applied and not what another one was applying meanwhile.
async fn apply_locked(connection: &mut PgConnection) -> Result<Applied, MigrationError> {
    connection.lock().await.map_err(explain)?;
    let files = pending(connection).await?;
    MIGRATOR
        .run_direct(None, connection, false)
        .await
        .map_err(explain)?;
    Ok(Applied { files })
}

/// The files that the database does not have yet, oldest first. Reads only.
pub async fn pending(connection: &mut PgConnection) -> Result<Vec<String>, MigrationError> {
    let schema = inspect(connection).await?;
    match schema.newer {
        Some(version) => Err(MigrationError::Newer { version }),
        None => Ok(schema.pending),
    }
}

/// Whether a program may start on this schema; the error says what to do when not.
pub async fn require_current(connection: &mut PgConnection) -> Result<(), MigrationError> {
    let files = pending(connection).await?;
    if files.is_empty() {
        return Ok(());
    }
    Err(MigrationError::Pending { files })
}

/// Whether a running program may go on: nothing that it needs is missing or different.
pub async fn is_current(connection: &mut PgConnection) -> Result<bool, MigrationError> {
    Ok(inspect(connection).await?.pending.is_empty())
}

/// What differs between the database and this program.
struct Schema {
    pending: Vec<String>,
    newer: Option<i64>,
}

async fn inspect(connection: &mut PgConnection) -> Result<Schema, MigrationError> {
    let applied = list_applied(connection).await?;
    let mut pending = Vec::new();
    for migration in MIGRATOR.iter() {
        match applied.get(&migration.version) {
            Some(checksum) => compare(migration, checksum)?,
            None => pending.push(file_of(migration)),
        }
    }
    let newer = applied
        .into_keys()
        .find(|version| !MIGRATOR.version_exists(*version));
    Ok(Schema { pending, newer })
}

async fn list_applied(
    connection: &mut PgConnection,
) -> Result<BTreeMap<i64, Vec<u8>>, MigrationError> {
    if !find_table(connection).await? {
        return Ok(BTreeMap::new());
    }
    let applied = connection
        .list_applied_migrations(TABLE)
        .await
        .map_err(explain)?;
    Ok(applied
        .into_iter()
        .map(|migration| (migration.version, migration.checksum.into_owned()))
        .collect())
}

/// An empty database has no table yet, and a look must not make one.
async fn find_table(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"
        -- find_table
        SELECT to_regclass($1) IS NOT NULL AS "found!"
        "#,
        TABLE
    )
    .fetch_one(connection)
    .await
}

/// Says *how* a file differs: line endings are the one difference that nobody can see.
fn compare(migration: &Migration, applied: &[u8]) -> Result<(), MigrationError> {
    if *migration.checksum == *applied {
        return Ok(());
    }
    let file = file_of(migration);
    let unix = migration.sql.as_str().replace("\r\n", "\n");
    let windows = unix.replace('\n', "\r\n");
    let is_applied = |sql: &str| Sha384::digest(sql).as_slice() == applied;
    Err(if is_applied(&unix) {
        MigrationError::BuiltWithCrlf { file }
    } else if is_applied(&windows) {
        MigrationError::AppliedWithCrlf {
            file,
            version: migration.version,
            checksum: hex::encode(&migration.checksum),
        }
    } else {
        MigrationError::Edited { file }
    })
}

/// sqlx knows versions only; people look for files.
fn explain(error: MigrateError) -> MigrationError {
    match error {
        MigrateError::Execute(source) => MigrationError::Database(source),
        MigrateError::ExecuteMigration(source, version) => MigrationError::Failed {
            file: file_of_version(version),
            source,
        },
        MigrateError::VersionMismatch(version) => MigrationError::Edited {
            file: file_of_version(version),
        },
        MigrateError::VersionMissing(version) => MigrationError::Newer { version },
        other => MigrationError::Refused(other),
    }
}

fn file_of_version(version: i64) -> String {
    MIGRATOR
        .iter()
        .find(|migration| migration.version == version)
        .map_or_else(|| version.to_string(), file_of)
}

/// sqlx reads `20261130000001_merchants.sql` as a version and the description `merchants`.
fn file_of(migration: &Migration) -> String {
    let description = migration.description.replace(' ', "_");
    format!("{}_{description}.sql", migration.version)
}

#[cfg(test)]
mod tests {
    use sqlx::SqlSafeStr;

    use super::*;

    fn migration(sql: &'static str) -> Migration {
        Migration::new(
            20_990_101_000_001,
            "a_name with spaces".into(),
            sqlx::migrate::MigrationType::Simple,
            sql.into_sql_str(),
            false,
        )
    }

    #[test]
    fn every_embedded_migration_is_named_like_its_file() {
        for migration in MIGRATOR.iter() {
            let path = format!(
                "{}/migrations/{}",
                env!("CARGO_MANIFEST_DIR"),
                file_of(migration)
            );
            assert!(
                std::path::Path::new(&path).is_file(),
                "{path} is not a file"
            );
        }
    }

    #[test]
    fn a_file_with_other_line_endings_is_told_from_an_edited_one() {
        let unix = migration("SELECT 1;\nSELECT 2;\n");
        let windows = migration("SELECT 1;\r\nSELECT 2;\r\n");
        let edited = migration("SELECT 1;\nSELECT 3;\n");

        let from_unix = compare(&windows, &unix.checksum).unwrap_err().to_string();
        let from_windows = compare(&unix, &windows.checksum).unwrap_err().to_string();
        let from_edited = compare(&edited, &unix.checksum).unwrap_err().to_string();

        assert!(compare(&unix, &unix.checksum).is_ok());
        let fix = format!("checksum = '\\x{}'", hex::encode(&unix.checksum));
        assert!(from_unix.contains("was built with CRLF"), "{from_unix}");
        assert!(from_windows.contains(&fix), "{from_windows}");
        assert!(from_edited.contains("was edited"), "{from_edited}");
        for message in [from_unix, from_windows, from_edited] {
            assert!(
                message.contains("20990101000001_a_name_with_spaces.sql"),
                "{message}"
            );
        }
    }
}
