//! A stage for trials of the protocol: a database, `oncepay sandbox` as the gateway, services as
//! processes, and clients that persist.

use std::{process::Command, time::Duration};

use chrono::TimeDelta;
use clap::ValueEnum as _;
use oncepay::{
    audit,
    gateways::sandbox::journal::{self, Call, Kind},
    seeded::Bug,
};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::sync::watch;

use super::{
    buyer::{Asked, Buyer, Heard, Said},
    client::{Client, payment_with},
    command,
    judge::{AtDeath, Evidence},
    pair::Ground,
    process::{Process, ProcessBuilder},
    sandbox::SandboxProcess,
    wait::wait_until,
};

/// The shortest that the service allows: a trial that needs it to run out waits for all of it.
pub const LEASE: Duration = Duration::from_secs(2);

/// For what must come, on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// The key of a trial that needs only one.
pub const KEY: &str = "K";

/// What a trial stands on; gone with it.
#[derive(Debug)]
pub struct Stage {
    pub ground: Ground,
    pub sandbox: SandboxProcess,
    pub heard: Heard,
    /// Where clients find a service.
    pub services: watch::Sender<Vec<Client>>,
    bug: Option<Bug>,
    pool: PgPool,
}

impl Stage {
    /// With arguments for the sandbox, and a bug for the services.
    pub async fn set(sandbox: &[&str], bug: Option<Bug>) -> Self {
        let ground = Ground::create().await;
        let journal = ground.folder.path().join(journal::FILE_NAME);
        let pool = ground.database.pool().await;
        Self {
            sandbox: SandboxProcess::start_with(&journal, sandbox),
            ground,
            heard: Heard::default(),
            services: watch::Sender::new(Vec::new()),
            bug,
            pool,
        }
    }

    /// A service whose gateway is the sandbox. Its rescuer and its cleaner rest.
    pub fn service(&self) -> ProcessBuilder {
        let service = self
            .ground
            .service()
            .env("GATEWAY", "stripe")
            .env("GATEWAY_TIMEOUT", "5s")
            .env("STRIPE_API_BASE", &self.sandbox.control.base)
            .env("STRIPE_SECRET_KEY", "sk_test_x")
            .env("IDEMPOTENCY_LEASE_TTL", "2s")
            .env("DATABASE_MAX_CONNECTIONS", "6")
            .env("CLEANUP_INTERVAL", "1h");
        match self.bug {
            Some(bug) => service.env("SEEDED_BUG", &name(bug)),
            None => service,
        }
    }

    /// Opens the doors of these services, and of no others.
    pub fn open(&self, services: &[&Process]) {
        let clients = services.iter().map(|service| self.ground.client(service));
        self.services.send_replace(clients.collect());
    }

    pub fn buyer(&self, number: usize) -> Buyer {
        self.buyer_of(KEY, payment_with("pm_card_visa"), number)
    }

    pub fn buyer_of(&self, key: &str, body: Value, number: usize) -> Buyer {
        Buyer {
            key: key.to_owned(),
            body,
            asked: Asked::First,
            heard: self.heard.clone(),
            number,
        }
    }

    /// Sends `buyer`'s request once, to the first service, which must answer.
    pub async fn ask(&self, buyer: &Buyer) -> Said {
        let client = self.services.borrow()[0].clone();
        let said = buyer.once(&client).await;
        said.expect("a service that is not to die must answer")
    }

    /// The next calls meet this fault.
    pub async fn fault(&self, fault: &str) {
        let fault = serde_json::from_str(fault).unwrap();
        self.sandbox.control.fault(fault).await;
    }

    /// Everything about the key happened so much earlier, by the clock of the database.
    pub async fn age(&self, by: TimeDelta) {
        self.ground.database.age(KEY, by).await;
    }

    /// One number that a query gives.
    pub async fn count(&self, query: &str) -> i64 {
        sqlx::query_scalar(sqlx::AssertSqlSafe(query))
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }

    /// How often the record of `key` was acquired; 0 where there is none.
    pub async fn attempts(&self, key: &str) -> i64 {
        let query = "SELECT COALESCE(max(attempts), 0)::bigint FROM idempotency_keys WHERE key = ";
        self.count(&format!("{query}'{key}'")).await
    }

    /// How many lines of a kind the gateway has noted.
    pub fn noted(&self, kind: Kind) -> usize {
        let lines = self.ground.journal();
        let noted = lines.iter().filter(|line| line.kind == kind);
        noted.filter(|line| line.call != Call::Find).count()
    }

    /// Waits until the gateway has noted more than `before` lines of a kind.
    pub async fn noted_after(&self, kind: Kind, before: usize) {
        wait_until(PATIENCE, async || self.noted(kind) > before).await;
    }

    /// Deletes what has expired, as a scheduler would.
    pub fn clean_up(&self) {
        let mut cleanup = Command::new(env!("CARGO_BIN_EXE_oncepay"));
        cleanup
            .arg("cleanup")
            .env_clear()
            .env("DATABASE_URL", self.ground.database.url())
            .envs(self.bug.map(|bug| ("SEEDED_BUG", name(bug))));
        command::run(cleanup, self.ground.folder.path()).assert_code(0);
    }

    /// What stands where at the moment of a death.
    pub async fn at_death(&self) -> AtDeath {
        let answered = self.heard.all().into_iter().filter(Said::is_definite);
        let claims = "SELECT count(*) FROM used_keys WHERE key = 'K'";
        let finished = "SELECT count(*) FROM idempotency_keys
            WHERE key = 'K' AND status = 'completed'";
        AtDeath {
            requests: self.noted(Kind::Request),
            claims: self.count(claims).await,
            finished: self.count(finished).await,
            answered: answered.count(),
        }
    }

    /// Everything that can be known when a trial is over.
    pub async fn evidence(&self) -> Evidence {
        let path = self.ground.folder.path().join(journal::FILE_NAME);
        let lines = move || journal::read(&path);
        let mut connection = self.ground.database.connect().await;
        let breaches = audit::run(&mut connection, Some(&lines)).await.unwrap();
        Evidence {
            said: self.heard.all(),
            lines: self.ground.journal(),
            breaches,
            unresolved: self
                .count(
                    "SELECT count(*) FROM idempotency_keys AS record
                     JOIN payments AS payment
                         ON payment.merchant_id = record.merchant_id
                         AND payment.id = record.resource_id
                     WHERE record.status = 'processing'
                         AND payment.status <> 'requires_review'",
                )
                .await,
            attempts: self
                .count("SELECT COALESCE(max(attempts), 0)::bigint FROM idempotency_keys")
                .await,
            ..Evidence::default()
        }
    }
}

/// A payment of another amount under the same key.
pub fn another_payment() -> Value {
    json!({ "amount": 2999, "currency": "EUR", "payment_method": "pm_card_visa" })
}

/// The name that `SEEDED_BUG` takes.
pub fn name(bug: Bug) -> String {
    let value = bug.to_possible_value();
    value.unwrap().get_name().to_owned()
}
