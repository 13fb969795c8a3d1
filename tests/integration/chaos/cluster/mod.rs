//! The processes of a run, and a network that can fail between each two of them.
//!
//! ```text
//! clients ──link──▶ service 0 ──proxy──▶ PostgreSQL
//!         ──link──▶ service 1 ──proxy──▶
//!                   service n ──link───▶ sandbox
//! ```
//!
//! Whatever restarts may come back on another port: the links follow it.

mod database;
mod service;

use std::path::PathBuf;

use oncepay::ids::MerchantId;
use sqlx::PgConnection;
use tempfile::TempDir;
use tokio::{runtime::Handle, sync::Mutex};

pub use self::{
    database::{Postgres, Stop},
    service::{CONNECTIONS, End, LEASE, Service},
};
use super::{fault::Between, workload::MERCHANTS};
use crate::support::{
    database::merchant_in,
    network::{Link, Wire},
    proxy::Proxy,
    sandbox::{Control, SandboxProcess},
};

/// Two services, as a rolling deployment has at least.
pub const SERVICES: usize = 2;

/// Stripe's search lags, and what it does not find proves nothing.
const SEARCH_LAG: std::time::Duration = std::time::Duration::from_millis(600);

/// The account that services pay with; it must not be seen anywhere.
pub const STRIPE_SECRET: &str = "sk_test_chaosSecretOfTheAccount";

/// Everything that runs.
#[derive(Debug)]
pub struct Cluster {
    pub postgres: Mutex<Postgres>,
    pub sandbox: Mutex<SandboxProcess>,
    pub control: Control,
    pub services: Vec<Mutex<Service>>,
    /// From the clients to each service.
    pub fronts: Vec<Link>,
    /// From each service to PostgreSQL.
    pub proxies: Vec<Proxy>,
    /// From each service to the gateway.
    pub gateways: Vec<Link>,
    pub merchants: Vec<Merchant>,
    pub journal: PathBuf,
    /// Dropped last: all of the above work in it.
    _folder: TempDir,
}

#[derive(Clone, Debug)]
pub struct Merchant {
    pub id: MerchantId,
    pub secret: String,
}

impl Cluster {
    /// Starts everything; services get `bug` in their environment, which seeds one.
    pub async fn start(bug: Option<&str>) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("oncepay-chaos-")
            .tempdir()
            .unwrap();
        let journal = folder.path().join("journal.ndjson");
        let sandbox = SandboxProcess::with_lag(&journal, SEARCH_LAG);
        let postgres = Postgres::create(&folder.path().join("postgres")).await;
        let mut session = postgres.connect().await.unwrap();
        let mut merchants = Vec::new();
        for number in 0..MERCHANTS {
            let (id, secret) = merchant_in(&mut session, &format!("M{number}")).await;
            merchants.push(Merchant { id, secret });
        }
        let (mut fronts, mut proxies, mut gateways) = (Vec::new(), Vec::new(), Vec::new());
        for _service in 0..SERVICES {
            // Nobody listens on port 1: the service's own is known when it has started.
            fronts.push(Link::start(1).await);
            proxies.push(Proxy::start_on(&Handle::current(), postgres.options()).await);
            gateways.push(Link::start(sandbox.addr().port()).await);
        }
        let services = (0..SERVICES).map(|number| {
            let service = Service::new(
                folder.path(),
                &proxies[number].url(),
                &gateways[number].base(),
                bug,
            );
            Mutex::new(service)
        });
        let cluster = Self {
            services: services.collect(),
            control: sandbox.control.clone(),
            postgres: Mutex::new(postgres),
            sandbox: Mutex::new(sandbox),
            fronts,
            proxies,
            gateways,
            merchants,
            journal,
            _folder: folder,
        };
        let all = (0..SERVICES).map(|number| cluster.start_service(number));
        futures_util::future::join_all(all).await;
        cluster
    }

    /// Starts a service that does not run; its database may be away, so for a while again and
    /// again.
    pub async fn start_service(&self, number: usize) {
        let mut service = self.services[number].lock().await;
        if let Some(port) = service.start().await {
            self.fronts[number].wire.lead_to(port);
        }
    }

    /// Ends a service, however it is asked to, and starts another.
    pub async fn restart_service(&self, number: usize, end: End) {
        self.services[number].lock().await.end(end).await;
        self.start_service(number).await;
    }

    pub async fn restart_postgres(&self, stop: Stop) {
        let mut postgres = self.postgres.lock().await;
        postgres.restart(stop).await;
        for proxy in &self.proxies {
            proxy.wire().lead_to(postgres.port());
        }
    }

    /// Straight to the database, past every fault of a network; it waits for a restart to end.
    pub async fn connect(&self) -> sqlx::Result<PgConnection> {
        self.postgres.lock().await.connect().await
    }

    /// The network of a service to somebody.
    pub fn wire(&self, between: Between, service: usize) -> &Wire {
        match between {
            Between::Clients => &self.fronts[service].wire,
            Between::Postgres => self.proxies[service].wire(),
            Between::Gateway => &self.gateways[service].wire,
        }
    }

    /// Ends everything in order, so that nobody works in the folder when that goes.
    pub async fn stop(&self) {
        for service in &self.services {
            service.lock().await.end(End::Killed).await;
        }
        self.postgres.lock().await.stop().await;
    }

    /// What must not be in any log.
    pub async fn secrets(&self) -> Vec<String> {
        let mut secrets = vec![STRIPE_SECRET.to_owned()];
        secrets.extend(
            self.merchants
                .iter()
                .map(|merchant| merchant.secret.clone()),
        );
        secrets.push(self.postgres.lock().await.password());
        secrets
    }
}
