//! One service over the stripe gateway, with a sandbox process and a database of their own.

use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;

use super::{
    audit::audit_with,
    client::{Client, Reply, payment, payment_with},
    command::Said,
    database::TestDatabase,
    process::Process,
    sandbox::{SandboxProcess, fault},
    shop::over_stripe,
};

/// A payment of somebody else with the same account.
pub const FOREIGN: &str = "amount=700&currency=eur&payment_method=pm_card_visa&confirm=true";

#[derive(Debug)]
pub struct OpenShop {
    pub client: Client,
    pub database: Arc<TestDatabase>,
    pub sandbox: SandboxProcess,
    pub service: Process,
    folder: TempDir,
}

impl OpenShop {
    pub async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = Arc::new(TestDatabase::create().await);
        let (_merchant, secret) = database.merchant("T1").await;
        let sandbox = SandboxProcess::start(&folder.path().join("journal.ndjson"));
        let service = Process::builder(&database, folder.path()).env("GATEWAY_TIMEOUT", "1s");
        let service = over_stripe(service, &sandbox.control).start();
        Self {
            client: Client::new(service.base(), &secret),
            database,
            sandbox,
            service,
            folder,
        }
    }

    /// The gateway key of the payment of an idempotency key.
    pub async fn gateway_key(&self, key: &str) -> String {
        let query = format!("SELECT gateway_key FROM payments WHERE idempotency_key = '{key}'");
        self.database.text(&query).await.unwrap()
    }

    /// What the gateway calls the payment of an idempotency key.
    pub async fn reference(&self, key: &str) -> String {
        let query =
            format!("SELECT gateway_reference FROM payments WHERE idempotency_key = '{key}'");
        self.database.text(&query).await.unwrap()
    }

    /// A POST at the gateway by whoever else has the account.
    pub async fn by_hand(&self, path: &str, form: &str) -> Reply {
        let key = uuid::Uuid::new_v4().to_string();
        let reply = self.sandbox.control.post(path, &key, form).await;
        reply.assert_status(200);
        reply
    }

    /// `oncepay audit --gateway` with the service's own settings.
    pub fn audit(&self) -> Said {
        self.audit_at(&self.sandbox.control.base)
    }

    /// The same at another address of the gateway.
    pub fn audit_at(&self, base: &str) -> Said {
        audit_with(&self.database, |command| {
            command
                .env("GATEWAY", "stripe")
                .env("GATEWAY_TIMEOUT", "1s")
                .env("STRIPE_API_BASE", base)
                .env("STRIPE_SECRET_KEY", "sk_test_x");
        })
    }

    /// The gateway loses everything about a gateway key, as no gateway should.
    pub fn lose(&mut self, gateway_key: &str) {
        self.sandbox.kill();
        for name in ["journal.ndjson", "journal.ndjson.memory"] {
            let path = self.folder.path().join(name);
            let text = std::fs::read_to_string(&path).unwrap();
            let kept = text
                .split_inclusive('\n')
                .filter(|line| !line.contains(gateway_key));
            std::fs::write(&path, kept.collect::<String>()).unwrap();
        }
        self.sandbox.restart();
    }
}

/// A payment whose money is only held.
pub fn held() -> Value {
    let mut held = payment();
    held["capture_method"] = "manual".into();
    held
}

/// One payment of each kind, as the service leaves them.
pub async fn shop_with_payments() -> OpenShop {
    let shop = OpenShop::open().await;
    shop.client.pay("visa", &payment()).await.assert_status(201);
    shop.client.pay("held", &held()).await.assert_status(201);
    shop.sandbox.control.fault(fault("drop_after_effect")).await;
    for (key, method, status) in [
        ("unknown", "pm_card_visa", 202),
        ("declined", "pm_card_declined", 402),
        ("pending", "pm_pending_then_succeeds", 201),
        ("released", "pm_error_before_charge", 503),
    ] {
        let reply = shop.client.pay(key, &payment_with(method)).await;
        reply.assert_status(status);
    }
    shop
}
