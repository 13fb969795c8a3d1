//! `oncepay serve`: the service against a database.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use metrics_exporter_prometheus::PrometheusHandle;
use tokio::{net::TcpListener, signal::unix, sync::Semaphore};

use super::CliError;
use crate::{
    app::App,
    clock::{Clock, SystemClock},
    config::{GatewayKind, GatewaySettings, Settings},
    db::{Database, migrations},
    gateways::{Gateway, sandbox::Sandbox, stripe::Stripe},
    http::{router, server, views},
    idempotency::{
        cleaner,
        lease::LeaseKeeper,
        rescuer::Rescuer,
        store::LetGo,
        waiting::{self, Waiting},
    },
    lifecycle::{Drained, Tasks},
    payments::pending,
    telemetry::metrics,
    worker,
};

/// How often histograms give up their single values, and the pool is counted.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Serves until SIGTERM or SIGINT, and then until what is under way has ended.
pub async fn run(settings: Settings, migrate: bool) -> Result<(), CliError> {
    let options = settings
        .database
        .connect_options()
        .map_err(CliError::Database)?;
    if migrate {
        migrations::apply(&options).await?;
    }
    let service = Service::start(settings).await?;
    let signal = terminated().map_err(|error| CliError::step("signals cannot be caught", error))?;
    service.run_until(signal).await
}

/// A service that listens.
#[derive(Debug)]
pub struct Service {
    app: App,
    listener: TcpListener,
    metrics_listener: TcpListener,
    metrics: PrometheusHandle,
    /// One connection, for renewals only.
    renewals: Database,
}

impl Service {
    /// With the machine's clock and the gateway of the settings.
    pub async fn start(settings: Settings) -> Result<Self, CliError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let gateway = gateway(&settings.gateway, Arc::clone(&clock))
            .map_err(|error| CliError::step("the gateway cannot start", error))?;
        Self::start_with(settings, clock, gateway).await
    }

    /// Checks the schema and binds the addresses: whoever has this has a service that answers.
    pub async fn start_with(
        settings: Settings,
        clock: Arc<dyn Clock>,
        gateway: Arc<dyn Gateway>,
    ) -> Result<Self, CliError> {
        let options = settings
            .database
            .connect_options()
            .map_err(CliError::Database)?;
        // Taken from the pool's share, so that the setting bounds what the server sees.
        let renewals = Database::new(options.clone(), 1);
        let connections_max = settings.database.max_connections.saturating_sub(1);
        let app = App {
            database: Database::new(options, connections_max),
            gateway,
            leases: LeaseKeeper::new(settings.idempotency.lease_ttl),
            waiting: Waiting::default(),
            clock,
            tasks: Tasks::default(),
            requests: Arc::new(Semaphore::new(settings.http.connections_max)),
            presenter: views::PRESENTER,
            settings: Arc::new(settings),
        };
        require_current_schema(&app).await?;
        let listener = bind(app.settings.http.addr).await?;
        let metrics_listener = bind(app.settings.http.metrics_addr).await?;
        let metrics = metrics::install()
            .map_err(|error| CliError::step("metrics cannot be recorded", error))?;
        Ok(Self {
            app,
            listener,
            metrics_listener,
            metrics,
            renewals,
        })
    }

    /// Where it listens; of use where port 0 was asked for.
    pub fn addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` resolves, then drains.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send) -> Result<(), CliError> {
        let Self {
            app,
            listener,
            metrics_listener,
            metrics,
            renewals,
        } = self;
        if let (Ok(addr), Ok(metrics_addr)) = (listener.local_addr(), metrics_listener.local_addr())
        {
            tracing::info!(%addr, %metrics_addr, "listening");
        }
        let tasks = app.tasks.clone();
        // Leases are renewed, and metrics served, until the last request has ended.
        let until_drained = Tasks::default();
        start_lease_keeper(&app, &renewals, &until_drained);
        start_workers(&app);
        start_upkeep(&app, &until_drained, &metrics);
        let metrics_router = router::metrics_router(metrics);
        let metrics_http = app.settings.http.clone();
        let metrics_tasks = until_drained.clone();
        until_drained.spawn(async move {
            server::serve(
                metrics_listener,
                metrics_router,
                &metrics_http,
                &metrics_tasks,
            )
            .await
        });

        let http = app.settings.http.clone();
        let router = router::router(app.clone());
        let serving = server::serve(listener, router, &http, &tasks);
        let stopping = async {
            stop.await;
            tracing::info!("stopping: no new requests are taken");
            tasks.stop();
        };
        let (drained, ()) = tokio::join!(serving, stopping);
        let_go(&app).await;
        until_drained.stop();
        renewals.pool().close().await;
        app.database.pool().close().await;
        match drained {
            Drained::All => Ok(()),
            Drained::Left(count) => Err(CliError::NotDrained(count)),
        }
    }
}

/// What could not finish in time goes to another instance at once.
async fn let_go(app: &App) {
    let held = app.leases.held();
    if held.is_empty() {
        return;
    }
    match app.database.run(&LetGo(&held)).await {
        Ok(count) => tracing::warn!(count, "let go of work that could not finish"),
        Err(error) => tracing::warn!(error = %error, "leases could not be let go"),
    }
}

fn start_lease_keeper(app: &App, renewals: &Database, until_drained: &Tasks) {
    let heartbeat = app.leases.heartbeat();
    let (leases, database) = (app.leases.clone(), renewals.clone());
    worker::start(until_drained, "lease_keeper", heartbeat, move || {
        let (leases, database) = (leases.clone(), database.clone());
        async move { leases.renew(&database).await }
    });
}

fn start_workers(app: &App) {
    let rescuing = app.clone();
    let rescuer = Rescuer::default();
    let every = app.settings.idempotency.rescue_interval;
    worker::start(&app.tasks, "rescuer", every, move || {
        let (app, rescuer) = (rescuing.clone(), rescuer.clone());
        async move { rescuer.round(&app).await }
    });
    let polling = app.clone();
    worker::start(&app.tasks, "pending_payments", every, move || {
        let app = polling.clone();
        async move { pending::round(&app).await }
    });
    let looking_out = app.clone();
    worker::start(
        &app.tasks,
        "waiting",
        waiting::RESTART_INTERVAL,
        move || {
            let app = looking_out.clone();
            async move { app.waiting.look_out(&app).await }
        },
    );
    let cleaning = app.clone();
    worker::start(
        &app.tasks,
        "cleaner",
        app.settings.cleaner.interval,
        move || {
            let app = cleaning.clone();
            async move { cleaner::round(&app).await }
        },
    );
    let measuring = app.clone();
    worker::start(&app.tasks, "gauges", cleaner::MEASURE_INTERVAL, move || {
        let app = measuring.clone();
        async move { cleaner::measure(&app.database).await }
    });
}

/// Keeps the metrics small, scraped or not, and up to date.
fn start_upkeep(app: &App, until_drained: &Tasks, metrics: &PrometheusHandle) {
    let database = app.database.clone();
    let metrics = metrics.clone();
    worker::start(until_drained, "upkeep", UPKEEP_INTERVAL, move || {
        let (database, metrics) = (database.clone(), metrics.clone());
        async move {
            metrics.run_upkeep();
            database.observe();
            Ok::<_, Infallible>(())
        }
    });
}

/// The gateway of the settings.
pub(super) fn gateway(
    settings: &GatewaySettings,
    clock: Arc<dyn Clock>,
) -> io::Result<Arc<dyn Gateway>> {
    match &settings.kind {
        GatewayKind::Sandbox { dir: Some(dir) } => Ok(Arc::new(Sandbox::in_folder(dir, clock)?)),
        GatewayKind::Sandbox { dir: None } => Ok(Arc::new(Sandbox::in_memory(clock))),
        GatewayKind::Stripe {
            api_base,
            secret_key,
        } => {
            let timeout = settings.timeout;
            Ok(Arc::new(Stripe::new(api_base, secret_key, timeout)?))
        }
    }
}

async fn require_current_schema(app: &App) -> Result<(), CliError> {
    let mut connection = app
        .database
        .pool()
        .acquire()
        .await
        .map_err(CliError::Database)?;
    Ok(migrations::require_current(&mut connection).await?)
}

async fn bind(addr: SocketAddr) -> Result<TcpListener, CliError> {
    let bound = TcpListener::bind(addr).await;
    bound.map_err(|error| CliError::step("the server cannot listen", error))
}

/// Resolves at SIGTERM (an orchestrator) or SIGINT (a terminal).
pub(super) fn terminated() -> io::Result<impl Future<Output = ()> + Send> {
    let mut terminate = unix::signal(unix::SignalKind::terminate())?;
    let mut interrupt = unix::signal(unix::SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
