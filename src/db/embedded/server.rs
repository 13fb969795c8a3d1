//! A running private server.

use std::{io, net::Ipv4Addr, path::Path, process::Child};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::{
    AssertSqlSafe, Connection as _, PgConnection,
    postgres::{PgConnectOptions, PgSslMode},
};
use tokio::{task::spawn_blocking, time::timeout};

use super::{error::EmbeddedError, folder::Folder, guardian::Orders, place::Placement, postmaster};

/// The role that owns everything; `postgres` is the name of an account of the machine as well.
pub(super) const SUPERUSER: &str = "oncepay";

/// A server that answers. Dropping it, or dying with it, closes the guardian's pipe, and the
/// guardian stops PostgreSQL soon after; [`stop`](Self::stop) waits for that.
#[derive(Debug)]
pub struct Server {
    guardian: Child,
    port: u16,
    password: SecretString,
    folder: Folder,
    placement: Placement,
    postmaster_pid: u32,
}

impl Server {
    pub(super) fn new(
        guardian: Child,
        orders: &Orders,
        placement: Placement,
        postmaster_pid: u32,
    ) -> Result<Self, EmbeddedError> {
        Ok(Self {
            guardian,
            port: orders.port,
            password: orders.folder.password()?,
            folder: orders.folder.clone(),
            placement,
            postmaster_pid,
        })
    }

    pub fn host(&self) -> Ipv4Addr {
        Ipv4Addr::LOCALHOST
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn user(&self) -> &'static str {
        SUPERUSER
    }

    pub fn password(&self) -> &SecretString {
        &self.password
    }

    /// Where the data are. Worth telling where [`placement`](Self::placement) says that it is not
    /// the folder that was asked for.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// The process to kill for a test that wants to see the database crash.
    pub fn postmaster_pid(&self) -> u32 {
        self.postmaster_pid
    }

    /// A `DATABASE_URL`. It carries the password, hence a secret.
    pub fn url(&self, database: &str) -> SecretString {
        format!(
            "postgres://{SUPERUSER}:{}@{}:{}/{}?sslmode=disable",
            self.password.expose_secret(),
            self.host(),
            self.port,
            utf8_percent_encode(database, NON_ALPHANUMERIC),
        )
        .into()
    }

    pub fn connect_options(&self, database: &str) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .host(&self.host().to_string())
            .port(self.port)
            .username(SUPERUSER)
            .password(self.password.expose_secret())
            .database(database)
            .ssl_mode(PgSslMode::Disable)
    }

    /// Makes a database unless it is there. Two cannot come here at once: the server belongs to
    /// one process.
    pub async fn create_database(&self, name: &str) -> sqlx::Result<()> {
        let mut connection = PgConnection::connect_with(&self.connect_options("postgres")).await?;
        let found = sqlx::query_scalar!(
            r#"-- find_database
            SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1) AS "found!""#,
            name
        )
        .fetch_one(&mut connection)
        .await?;
        if !found {
            let statement = format!("CREATE DATABASE \"{}\"", name.replace('"', "\"\""));
            sqlx::raw_sql(AssertSqlSafe(statement))
                .execute(&mut connection)
                .await?;
        }
        connection.close().await
    }

    /// Stops in order: sessions end, a checkpoint is written, the folder is free when this
    /// returns.
    pub async fn stop(self) -> Result<(), EmbeddedError> {
        let Self {
            mut guardian,
            folder,
            ..
        } = self;
        drop(guardian.stdin.take());
        // A little more than the guardian allows itself, so that its own word comes first.
        let within = postmaster::STOP_WITHIN * 2;
        // A thread waits, not the runtime: the server may be stopped from another runtime than
        // the one that started it, as tests do.
        let waited = timeout(within, spawn_blocking(move || guardian.wait())).await;
        match waited {
            Ok(Ok(Ok(status))) if status.success() => Ok(()),
            _ => Err(EmbeddedError::NotStopped {
                within,
                log_tail: folder.log_tail(),
            }),
        }
    }

    /// The guardian outlives PostgreSQL, so its end tells of both.
    pub(super) fn has_ended(&mut self) -> Result<bool, EmbeddedError> {
        self.guardian
            .try_wait()
            .map(|status| status.is_some())
            .map_err(|error: io::Error| EmbeddedError::Guardian {
                message: error.to_string(),
            })
    }

    pub(super) fn log_tail(&self) -> String {
        self.folder.log_tail()
    }
}
