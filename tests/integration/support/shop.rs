//! A shop of the stripe gateway: services as processes on one database, and `oncepay sandbox` as
//! the gateway that they share.

use std::collections::BTreeSet;

use oncepay::{gateways::sandbox::journal, ids::MerchantId};
use tempfile::TempDir;

use super::{
    client::{Client, Reply, payment},
    database::TestDatabase,
    pair::sends,
    process::{Process, ProcessBuilder},
    race::PATIENCE,
    sandbox::{Control, SandboxProcess},
    wait::wait_until,
};

/// The ground that services over the stripe gateway stand on.
#[derive(Debug)]
pub struct Shop {
    pub database: TestDatabase,
    pub sandbox: SandboxProcess,
    pub folder: TempDir,
    pub merchant_id: MerchantId,
    secret: String,
}

impl Shop {
    pub async fn open() -> Self {
        let database = TestDatabase::create().await;
        let folder = tempfile::tempdir().unwrap();
        let (merchant_id, secret) = database.merchant("T1").await;
        Self {
            database,
            sandbox: SandboxProcess::start(&folder.path().join(journal::FILE_NAME)),
            folder,
            merchant_id,
            secret,
        }
    }

    /// A service of this shop.
    pub fn service(&self) -> ProcessBuilder {
        self.service_at(&self.database.url())
    }

    /// The same, with another way to the database.
    pub fn service_at(&self, database_url: &str) -> ProcessBuilder {
        let service = Process::at_url(database_url, self.folder.path());
        over_stripe(service, &self.sandbox.control)
    }

    /// The merchant's client at a service.
    pub fn client(&self, service: &Process) -> Client {
        Client::new(service.base(), &self.secret)
    }

    pub fn effects(&self) -> usize {
        self.sandbox.control.effects()
    }

    /// Requests to authorise that the gateway has got.
    pub fn sends(&self) -> usize {
        sends(&self.sandbox.control.lines())
    }

    /// Waits until the only payment is at the gateway.
    pub async fn at_the_gateway(&self) {
        wait_until(PATIENCE, async || self.sends() == 1).await;
    }
}

/// A service whose gateway is a sandbox server.
pub fn over_stripe(service: ProcessBuilder, sandbox: &Control) -> ProcessBuilder {
    service
        .env("GATEWAY", "stripe")
        .env("STRIPE_API_BASE", &sandbox.base)
        .env("STRIPE_SECRET_KEY", "sk_test_x")
}

/// The gateway keys that a journal knows.
pub fn gateway_keys(lines: &[journal::Line]) -> BTreeSet<&str> {
    lines.iter().map(|line| line.gateway_key.as_str()).collect()
}

/// Retries a payment as a patient client does, until it is made.
pub async fn pay_until_made(client: &Client, key: &str) -> Reply {
    let mut made = None;
    wait_until(PATIENCE, async || {
        let reply = client.pay(key, &payment()).await;
        made = (reply.status == 201).then_some(reply);
        made.is_some()
    })
    .await;
    made.unwrap()
}
