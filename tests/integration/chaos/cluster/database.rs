//! PostgreSQL, durable as in production, and three ways to end it.

use std::path::{Path, PathBuf};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use oncepay::db::{embedded::Server, migrations};
use secrecy::ExposeSecret as _;
use sqlx::{ConnectOptions as _, PgConnection, postgres::PgConnectOptions};

use crate::support::crash::{kill_with_children, open};

const DATABASE: &str = "postgres";

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Sessions are ended and a checkpoint is written.
    Fast,
    /// Nothing is written: the next start recovers.
    Immediate,
    /// `kill -9` of all its processes.
    Crash,
}

/// A server and its folder.
#[derive(Debug)]
pub struct Postgres {
    folder: PathBuf,
    server: Option<Server>,
}

impl Postgres {
    /// A migrated one.
    pub async fn create(folder: &Path) -> Self {
        let server = open(folder).await;
        migrations::apply(&server.connect_options(DATABASE))
            .await
            .unwrap();
        Self {
            folder: folder.to_owned(),
            server: Some(server),
        }
    }

    pub async fn restart(&mut self, stop: Stop) {
        let server = self.server.take().unwrap();
        match stop {
            Stop::Fast => server.stop().await.unwrap(),
            Stop::Immediate => {
                let postmaster = Pid::from_raw(server.postmaster_pid().try_into().unwrap());
                kill(postmaster, Signal::SIGQUIT).unwrap();
            }
            Stop::Crash => kill_with_children(server.postmaster_pid()),
        }
        // Waits for what is left of the one before.
        self.server = Some(open(&self.folder).await);
    }

    /// For good.
    pub async fn stop(&mut self) {
        self.server.take().unwrap().stop().await.unwrap();
    }

    pub fn options(&self) -> PgConnectOptions {
        self.server().connect_options(DATABASE)
    }

    pub async fn connect(&self) -> sqlx::Result<PgConnection> {
        self.options().connect().await
    }

    pub fn port(&self) -> u16 {
        self.server().port()
    }

    pub fn password(&self) -> String {
        self.server().password().expose_secret().to_owned()
    }

    fn server(&self) -> &Server {
        self.server
            .as_ref()
            .expect("it is only away in a restart, and at the end")
    }
}
