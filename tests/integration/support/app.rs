//! A service in this process, on a port of its own and a database of its own.

use std::{path::PathBuf, sync::Arc};

use oncepay::{
    cli::serve::Service,
    clock::{Clock, SystemClock},
    config::RawSettings,
    gateways::{
        Gateway,
        sandbox::{Sandbox, journal},
    },
    ids::MerchantId,
};
use secrecy::SecretString;
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};

use super::{client::Client, database::TestDatabase, pair::sends};

/// A running service.
#[derive(Debug)]
pub struct TestApp {
    pub database: Arc<TestDatabase>,
    pub merchant_id: MerchantId,
    /// Of the first merchant.
    pub client: Client,
    /// Where the sandbox remembers, shared by all services of the test.
    pub sandbox: Arc<TempDir>,
    stop: Option<oneshot::Sender<()>>,
    running: Option<JoinHandle<()>>,
}

/// A service that is about to run.
pub struct TestAppBuilder {
    settings: RawSettings,
    gateway: Option<Arc<dyn Gateway>>,
    clock: Arc<dyn Clock>,
    database: Option<Arc<TestDatabase>>,
    sandbox: Option<Arc<TempDir>>,
    database_url: Option<String>,
}

impl TestApp {
    /// The defaults, with the sandbox.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    pub fn builder() -> TestAppBuilder {
        let mut settings = RawSettings::defaults();
        "127.0.0.1:0".clone_into(&mut settings.http.http_addr);
        "127.0.0.1:0".clone_into(&mut settings.http.metrics_addr);
        // Workers that begin at a random moment would do the work of a test before it looks. One
        // that is about them sets these, or asks for `rescuing`.
        "1h".clone_into(&mut settings.idempotency.rescue_interval);
        "24h".clone_into(&mut settings.cleaner.cleanup_interval);
        TestAppBuilder {
            settings,
            gateway: None,
            clock: Arc::new(SystemClock),
            database: None,
            sandbox: None,
            database_url: None,
        }
    }

    /// Effects in the journal of the sandbox, over all keys.
    pub fn effects(&self) -> usize {
        effects(&self.sandbox.path().join(journal::FILE_NAME))
    }

    /// Payments that were sent to the sandbox, over all keys. A gateway that does its part keeps a
    /// second send of a key from having an effect: the service must not rely on that.
    pub fn sends(&self) -> usize {
        let journal = self.sandbox.path().join(journal::FILE_NAME);
        if !journal.exists() {
            return 0;
        }
        sends(&journal::read(journal).unwrap())
    }

    /// Asks the service to stop and waits until it has.
    pub async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.running.take().unwrap().await.unwrap();
    }

    /// Another merchant of the same service.
    pub async fn other_merchant(&self) -> (MerchantId, Client) {
        let (id, secret) = self.database.merchant("T2").await;
        (id, self.client.with_secret(&secret))
    }
}

/// Effects in a journal, over all keys.
pub fn effects(journal: &PathBuf) -> usize {
    if !journal.exists() {
        return 0;
    }
    journal::effects(&journal::read(journal).unwrap())
        .values()
        .sum()
}

impl TestAppBuilder {
    /// Changes settings.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut RawSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// With a rescuer, and a poller of pending payments, that look all the time.
    #[must_use]
    pub fn rescuing(self) -> Self {
        self.settings(|raw| "50ms".clone_into(&mut raw.idempotency.rescue_interval))
    }

    #[must_use]
    pub fn gateway<G: Gateway + 'static>(mut self, gateway: &Arc<G>) -> Self {
        let shared: Arc<G> = Arc::clone(gateway);
        self.gateway = Some(shared);
        self
    }

    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// On the database, and with the sandbox, of another service.
    #[must_use]
    pub fn beside(mut self, other: &TestApp) -> Self {
        self.database = Some(Arc::clone(&other.database));
        self.sandbox = Some(Arc::clone(&other.sandbox));
        self
    }

    #[must_use]
    pub fn database(mut self, database: Arc<TestDatabase>) -> Self {
        self.database = Some(database);
        self
    }

    /// By another way than straight to the server; `database` must be the same one.
    #[must_use]
    pub fn database_url(mut self, url: String) -> Self {
        self.database_url = Some(url);
        self
    }

    pub async fn start(mut self) -> TestApp {
        let database = match self.database {
            Some(database) => database,
            None => Arc::new(TestDatabase::create().await),
        };
        let sandbox = self
            .sandbox
            .unwrap_or_else(|| Arc::new(tempfile::tempdir().unwrap()));
        self.settings.database.database_url = Some(SecretString::from(
            self.database_url.unwrap_or_else(|| database.url()),
        ));
        let settings = self.settings.validate().unwrap();
        let gateway = self.gateway.unwrap_or_else(|| {
            Arc::new(Sandbox::in_folder(sandbox.path(), Arc::clone(&self.clock)).unwrap())
        });
        let (merchant_id, secret) = database.merchant("T1").await;

        let service = Service::start_with(settings, self.clock, gateway)
            .await
            .unwrap();
        let base = format!("http://{}", service.addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        // A test that ends early drops the sender, which stops the service too.
        let running = spawn(async move { drop(stopped.await) }, service);
        TestApp {
            client: Client::new(&base, &secret),
            database,
            merchant_id,
            sandbox,
            stop: Some(stop),
            running: Some(running),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test has no tasks of its own to track it with"
)]
fn spawn(stop: impl Future<Output = ()> + Send + 'static, service: Service) -> JoinHandle<()> {
    tokio::spawn(async move { service.run_until(stop).await.unwrap() })
}
