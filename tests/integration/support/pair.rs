//! What several services of one test share, when they are processes: a database, a sandbox folder,
//! and a merchant.

use oncepay::{gateways::sandbox::journal, ids::MerchantId};
use tempfile::TempDir;

use super::{
    app::effects,
    client::Client,
    database::TestDatabase,
    process::{Process, ProcessBuilder},
    race::PATIENCE,
    wait::wait_until,
};

/// The ground that processes stand on.
#[derive(Debug)]
pub struct Ground {
    pub database: TestDatabase,
    pub folder: TempDir,
    pub merchant_id: MerchantId,
    secret: String,
}

impl Ground {
    pub async fn create() -> Self {
        let database = TestDatabase::create().await;
        let (merchant_id, secret) = database.merchant("T1").await;
        Self {
            database,
            folder: tempfile::tempdir().unwrap(),
            merchant_id,
            secret,
        }
    }

    /// A service on this ground.
    pub fn service(&self) -> ProcessBuilder {
        Process::builder(&self.database, self.folder.path())
    }

    /// The merchant's client at a service.
    pub fn client(&self, process: &Process) -> Client {
        Client::new(process.base(), &self.secret)
    }

    /// Effects in the journal of the sandbox, over all keys.
    pub fn effects(&self) -> usize {
        effects(&self.folder.path().join(journal::FILE_NAME))
    }

    /// What the sandbox has noted so far.
    pub fn journal(&self) -> Vec<journal::Line> {
        let path = self.folder.path().join(journal::FILE_NAME);
        if path.exists() {
            journal::read(path).unwrap()
        } else {
            Vec::new()
        }
    }

    /// How many sends the sandbox has got.
    pub fn sends(&self) -> usize {
        sends(&self.journal())
    }

    /// Waits until the only payment is at the gateway, and then for a heartbeat: by that time the
    /// sandbox has let go of its folder and remembers the send, and its caller only waits.
    pub async fn at_the_gateway(&self) {
        wait_until(PATIENCE, async || self.sends() == 1).await;
        let lease = "SELECT lease_expires_at::text FROM idempotency_keys";
        let before = self.database.text(lease).await;
        wait_until(PATIENCE, async || self.database.text(lease).await != before).await;
    }

    /// Records that are not finished.
    pub async fn processing(&self) -> i64 {
        let query = "SELECT count(*) FROM idempotency_keys WHERE status = 'processing'";
        self.database.count(query).await
    }
}

/// Requests to authorise, in a journal.
pub fn sends(lines: &[journal::Line]) -> usize {
    lines
        .iter()
        .filter(|line| line.kind == journal::Kind::Request && line.call == journal::Call::Authorize)
        .count()
}
