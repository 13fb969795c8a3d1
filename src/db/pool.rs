//! The pool, and the two guards that keep a poisoned connection out of it.
//!
//! sqlx 0.9.0 returns a connection to the pool inside an open transaction when a future is dropped
//! while `BEGIN` is on the wire; what is written on it later is lost without an error. So a
//! connection that is handed out is asked first whether it is at rest ([`AT_REST`]), and one whose
//! step has no answer is closed, never returned.

use std::time::Duration;

use futures_util::future::BoxFuture;
use rand::RngExt as _;
use sqlx::{
    PgConnection, PgPool, Postgres, Row as _,
    pool::{PoolConnection, PoolConnectionMetadata},
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    DbError, Step,
    error::{Failure, classify, contention},
};
use crate::{
    crash::{self, Moment},
    telemetry::metrics,
};

/// How long a step may take, and how long it may wait for a connection before that. A healthy
/// server answers in milliseconds; a client waits for the sum of a few of these at the worst.
const DEADLINE: Duration = Duration::from_secs(5);

/// How long a statement waits for a lock before it gives way. Nothing of ours holds a lock
/// longer than one statement, so a longer wait means a stranger, and others queue behind us.
const LOCK_TIMEOUT: &str = "100ms";

/// Ends a session whose transaction rests: ours never do.
const IDLE_IN_TRANSACTION_TIMEOUT: &str = "10s";

/// The pause before a refused step is repeated grows from this, doubling, with full jitter.
const RETRY_BASE: Duration = Duration::from_millis(2);
const RETRY_MAX: Duration = Duration::from_millis(100);

/// Whether the connection is outside of any transaction, and on a server that can be written to.
///
/// By the simple protocol: there `now()`, the start of the transaction, is the start of the
/// statement exactly when no transaction was open. By the extended one they always differ.
const AT_REST: &str = "SELECT now() = statement_timestamp()
    AND current_setting('transaction_read_only') = 'off'";

/// A commit that is confirmed before it is on disk may be lost with money already moved, so a
/// session refuses that setting, wherever it comes from; stricter ones it leaves as they are.
const DURABLE: &str = "SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') = 'off'";

/// Whether the server can be written to. A pool that waits for a server that can is of more use
/// than a session on a standby: during a failover an address may lead to one for a moment, and an
/// owner that was refused there would take the server's word as final.
const WRITABLE: &str = "SELECT current_setting('transaction_read_only') = 'off'";

/// The database of the service. Cloning shares the pool.
#[derive(Clone, Debug)]
pub struct Database {
    pool: PgPool,
}

impl Database {
    /// A pool on `options`; connects when it is first needed.
    pub fn new(options: PgConnectOptions, connections_max: u32) -> Self {
        let pool = PgPoolOptions::new()
            .max_connections(connections_max)
            .acquire_timeout(DEADLINE)
            .test_before_acquire(false)
            .after_connect(fit)
            .before_acquire(at_rest)
            .connect_lazy_with(with_session_settings(options));
        Self { pool }
    }

    /// For migrations and administration; the hot path goes through [`run`](Self::run).
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Says in the metrics how many connections there are.
    pub fn observe(&self) {
        let size = self.pool.size();
        let idle = u32::try_from(self.pool.num_idle()).unwrap_or(size);
        // Both change between the two looks.
        metrics::connections(idle.min(size), size.saturating_sub(idle));
    }

    /// Runs `step` to its end, again where the server refused it for contention.
    pub async fn run<S: Step>(&self, step: &S) -> Result<S::Output, DbError> {
        self.run_until(step, Instant::now() + DEADLINE).await
    }

    /// The same for a step whose answer is of no use after `limit`.
    pub async fn run_until<S: Step>(&self, step: &S, limit: Instant) -> Result<S::Output, DbError> {
        let last_try = limit.min(Instant::now() + DEADLINE);
        let mut pause_max = RETRY_BASE;
        loop {
            let error = match self.attempt(step, limit).await? {
                Ok(output) => return Ok(output),
                Err(error) => error,
            };
            if classify(&error) != Failure::Contention {
                return Err(DbError::Refused(error));
            }
            if Instant::now() + pause_max >= last_try {
                return Err(DbError::Contended(error));
            }
            if let Some(why) = contention(&error) {
                metrics::database_retried(why);
            }
            let pause = rand::rng().random_range(Duration::ZERO..pause_max);
            sleep(pause).await;
            pause_max = (pause_max * 2).min(RETRY_MAX);
        }
    }

    /// Runs `step` once: the inner error is the server's word that nothing was committed.
    ///
    /// Its time begins when it is sent. The wait for a connection has a limit of its own: a step
    /// that is cut off because it had waited would close a healthy connection, and the next one
    /// would wait longer for it.
    async fn attempt<S: Step>(
        &self,
        step: &S,
        limit: Instant,
    ) -> Result<sqlx::Result<S::Output>, DbError> {
        let waited = timeout_at(limit, self.pool.acquire()).await;
        let connection = waited
            .unwrap_or(Err(sqlx::Error::PoolTimedOut))
            .map_err(DbError::Unreachable)?;
        let deadline = limit.min(Instant::now() + DEADLINE);
        let mut guarded = Guarded {
            connection,
            at_rest: false,
        };
        crash::point(S::NAME, Moment::Before);
        let answer = match timeout_at(deadline, step.run(&mut guarded.connection)).await {
            Ok(answer) => answer,
            Err(_elapsed) => return Err(DbError::Unanswered(None)),
        };
        match answer {
            Err(error) if classify(&error) == Failure::Silence => {
                Err(DbError::Unanswered(Some(error)))
            }
            answer => {
                guarded.at_rest = true;
                if answer.is_ok() {
                    crash::point(S::NAME, Moment::After);
                }
                Ok(answer)
            }
        }
    }
}

/// A connection that is closed when it is dropped, unless its step came to an end.
struct Guarded {
    connection: PoolConnection<Postgres>,
    at_rest: bool,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if !self.at_rest {
            self.connection.close_on_drop();
        }
    }
}

fn with_session_settings(options: PgConnectOptions) -> PgConnectOptions {
    options.application_name("oncepay").options([
        ("lock_timeout", LOCK_TIMEOUT),
        (
            "idle_in_transaction_session_timeout",
            IDLE_IN_TRANSACTION_TIMEOUT,
        ),
        ("statement_timeout", "0"),
    ])
}

/// Makes a new session fit for payments. One that cannot be is closed, and the pool goes on trying
/// until its time is over.
fn fit(
    connection: &mut PgConnection,
    _metadata: PoolConnectionMetadata,
) -> BoxFuture<'_, sqlx::Result<()>> {
    Box::pin(async move {
        let row = sqlx::Executor::fetch_one(&mut *connection, sqlx::raw_sql(WRITABLE)).await?;
        if !row.try_get::<bool, _>(0)? {
            return Err(sqlx::Error::Protocol("the server is read-only".to_owned()));
        }
        sqlx::Executor::execute(connection, sqlx::raw_sql(DURABLE)).await?;
        Ok(())
    })
}

/// Takes the place of sqlx's ping: a connection that fails is dropped, and the pool opens another.
fn at_rest(
    connection: &mut PgConnection,
    _metadata: PoolConnectionMetadata,
) -> BoxFuture<'_, sqlx::Result<bool>> {
    Box::pin(async move {
        let row = sqlx::Executor::fetch_one(connection, sqlx::raw_sql(AT_REST)).await?;
        let at_rest = row.try_get::<bool, _>(0)?;
        if !at_rest {
            metrics::connection_discarded();
            tracing::warn!("a pooled connection was not at rest and is discarded");
        }
        Ok(at_rest)
    })
}
