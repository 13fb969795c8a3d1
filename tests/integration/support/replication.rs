//! A primary and a standby that PostgreSQL's own replication keeps alike, both on this machine.
//!
//! Two links can be cut: the one that the standby streams over, and the address that services
//! connect to, which leads to whichever server is the primary. sqlx knows one host only, so this is
//! what a deployment has too: a virtual address, or a proxy in front.
//!
//! The links run on the test's runtime; a test that blocks on a process needs a thread beside it.

use std::io::{self, Write as _};

use oncepay::{
    db::{embedded::Server, migrations},
    ids::MerchantId,
};
use sqlx::{ConnectOptions as _, PgConnection};
use tempfile::TempDir;

use super::{
    crash::{kill_with_children, open},
    database::merchant_in,
    network::{Link, Network},
    postgres::execute,
    race::PATIENCE,
    standby::{self, STANDBY},
    wait::wait_until,
};

/// The database of the service.
const DATABASE: &str = "postgres";

/// When a commit is confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// Once the standby has it on disk too.
    Synchronous,
    /// Once the primary has it.
    Asynchronous,
}

/// Two servers, and what connects them.
#[derive(Debug)]
pub struct Replicated {
    pub primary: Server,
    pub standby: Server,
    pub merchant_id: MerchantId,
    /// Of the merchant.
    pub secret: String,
    front: Link,
    stream: Link,
    _folders: [TempDir; 2],
}

impl Replicated {
    /// Starts both, with a merchant that both know. `None`, and a word about it, on a machine
    /// without PostgreSQL's programs: a container has no second server.
    pub async fn start(replication: Replication) -> Option<Self> {
        let Some(backup) = standby::backup_program() else {
            let why = "no PostgreSQL programs on this machine: a test of replication is left out";
            drop(writeln!(io::stderr(), "{why}"));
            return None;
        };
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let primary = open(folders[0].path()).await;
        let stream = Link::start(primary.port()).await;
        standby::make(&backup, &primary, folders[1].path(), port_of(&stream));
        let standby = open(folders[1].path()).await;
        migrations::apply(&primary.connect_options(DATABASE))
            .await
            .unwrap();
        let mut session = connect(&primary).await;
        let (merchant_id, secret) = merchant_in(&mut session, "T1").await;
        let replicated = Self {
            front: Link::start(primary.port()).await,
            primary,
            standby,
            merchant_id,
            secret,
            stream,
            _folders: folders,
        };
        replicated.begin(replication).await;
        Some(replicated)
    }

    async fn begin(&self, replication: Replication) {
        if replication == Replication::Synchronous {
            // After the copy was made: a promoted standby that waits for itself waits for ever.
            let mut session = connect(&self.primary).await;
            let wait_for = format!("ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'");
            execute(&mut session, &wait_for).await;
            execute(&mut session, "SELECT pg_reload_conf()").await;
            let waited_for = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
            wait_until(PATIENCE, async || {
                count(&self.primary, waited_for).await == 1
            })
            .await;
        }
        self.caught_up().await;
    }

    /// Where services find the primary. Both servers have the same password: one is a copy.
    pub fn url(&self) -> String {
        self.primary
            .connect_options(DATABASE)
            .port(port_of(&self.front))
            .to_url_lossy()
            .to_string()
    }

    /// The standby itself, of use once it is promoted.
    pub fn standby_url(&self) -> String {
        let options = self.standby.connect_options(DATABASE);
        options.to_url_lossy().to_string()
    }

    /// Waits until the standby has all that the primary has.
    pub async fn caught_up(&self) {
        let all = "SELECT count(*) FROM pg_stat_replication
            WHERE replay_lsn >= pg_current_wal_lsn()";
        wait_until(PATIENCE, async || count(&self.primary, all).await == 1).await;
    }

    /// Cuts the standby off: what is committed from now on stays on the primary.
    pub async fn sever(&self) {
        self.stream.wire.set(Network::Cut);
        let streaming = "SELECT count(*) FROM pg_stat_replication";
        wait_until(PATIENCE, async || {
            count(&self.primary, streaming).await == 0
        })
        .await;
    }

    pub fn mend(&self) {
        self.stream.wire.set(Network::Up);
    }

    /// `kill -9` of the primary.
    pub fn kill_primary(&self) {
        kill_with_children(self.primary.postmaster_pid());
    }

    /// The address leads to the standby, promoted or not.
    pub fn lead_to_standby(&self) {
        self.front.wire.lead_to(self.standby.port());
    }

    /// Makes the standby a primary; it is one when this returns.
    pub async fn promote(&self) {
        let promoted: bool = sqlx::query_scalar("SELECT pg_promote()")
            .fetch_one(&mut connect(&self.standby).await)
            .await
            .unwrap();
        assert!(promoted, "the standby must become a primary");
    }

    /// What an operator, or a program in his place, does.
    pub async fn fail_over(&self) {
        self.kill_primary();
        self.promote().await;
        self.lead_to_standby();
    }

    /// One number that a query gives on the promoted standby.
    pub async fn count(&self, query: &str) -> i64 {
        count(&self.standby, query).await
    }
}

async fn connect(server: &Server) -> PgConnection {
    server.connect_options(DATABASE).connect().await.unwrap()
}

async fn count(server: &Server, query: &str) -> i64 {
    sqlx::query_scalar(sqlx::AssertSqlSafe(query))
        .fetch_one(&mut connect(server).await)
        .await
        .unwrap()
}

fn port_of(link: &Link) -> u16 {
    let base = link.base();
    base.rsplit(':').next().unwrap().parse().unwrap()
}
