//! Settings: every option is also an environment variable, and all mistakes are reported together.
//!
//! [`RawSettings`] is what the user wrote: text, so that one bad value does not hide the next.
//! [`RawSettings::validate`] turns it into [`Settings`], which are typed and grouped by whoever
//! uses them, or into [`ConfigErrors`], which name every option that is wrong. No value that was
//! written is ever repeated in a message, because a secret pasted into the wrong option would then
//! be in the logs; the secrets here, the database URL and Stripe's key, are [`SecretString`]s.
//!
//! Nothing is offered that does nothing: an option appears with the code that reads it.

mod bounds;
mod error;
mod raw;
mod reader;
mod validate;

#[cfg(test)]
mod tests;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::PgConnectOptions;

pub use self::{
    error::{ConfigError, ConfigErrors},
    raw::{RawCleaner, RawDatabase, RawGateway, RawHttp, RawIdempotency, RawLog, RawSettings},
};

/// Everything that the service can be told.
#[derive(Clone, Debug)]
pub struct Settings {
    pub database: DatabaseSettings,
    pub http: HttpSettings,
    pub idempotency: IdempotencySettings,
    pub gateway: GatewaySettings,
    pub cleaner: CleanerSettings,
    pub log: LogSettings,
}

impl Settings {
    /// The defaults with this database and any free port, whatever the environment says.
    ///
    /// Tests that need other values change [`RawSettings::defaults`] and validate that.
    pub fn for_database(url: &str) -> Result<Self, ConfigErrors> {
        let mut raw = RawSettings::defaults();
        raw.database.database_url = Some(SecretString::from(url));
        "127.0.0.1:0".clone_into(&mut raw.http.http_addr);
        "127.0.0.1:0".clone_into(&mut raw.http.metrics_addr);
        raw.validate()
    }
}

/// How PostgreSQL is reached.
#[derive(Clone, Debug)]
pub struct DatabaseSettings {
    pub url: SecretString,
    pub max_connections: u32,
}

impl DatabaseSettings {
    /// For whoever connects; they add what is particular to them.
    pub fn connect_options(&self) -> Result<PgConnectOptions, sqlx::Error> {
        let options: PgConnectOptions = self.url.expose_secret().parse()?;
        Ok(options.application_name("oncepay"))
    }
}

/// What the HTTP servers listen on, and what they put up with.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    pub addr: SocketAddr,
    pub metrics_addr: SocketAddr,
    /// After it the client gets a 202 while the work goes on.
    pub request_timeout: Duration,
    pub shutdown_timeout: Duration,
    pub header_read_timeout: Duration,
    pub body_read_timeout: Duration,
    pub body_limit_bytes: usize,
    pub connections_max: usize,
}

/// How long keys are remembered and holders are trusted.
#[derive(Clone, Debug)]
pub struct IdempotencySettings {
    pub ttl_completed: Duration,
    pub ttl_failed: Duration,
    pub lease_ttl: Duration,
    pub key_policy: KeyPolicy,
    pub rescue_interval: Duration,
    /// A record older than this is only asked about; it is sent again by a client's own retry.
    pub rescue_send_max_age: Duration,
}

impl IdempotencySettings {
    /// How many heartbeats fit into a lease: three may be lost before the fourth comes too late.
    const HEARTBEATS_PER_LEASE: u32 = 4;

    pub fn heartbeat_interval(&self) -> Duration {
        self.lease_ttl / Self::HEARTBEATS_PER_LEASE
    }
}

/// Whether a client must name its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPolicy {
    Required,
    /// A missing key is made by the service and echoed.
    Optional,
}

impl KeyPolicy {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Optional => "optional",
        }
    }
}

/// Who moves the money.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    pub kind: GatewayKind,
    pub timeout: Duration,
}

/// The gateways that this program contains.
#[derive(Clone, Debug)]
pub enum GatewayKind {
    Sandbox {
        /// Where the sandbox keeps its memory; without a folder it forgets with the process.
        dir: Option<PathBuf>,
    },
    Stripe {
        /// `https://…`, or `http://…` with a key that moves no real money.
        api_base: String,
        secret_key: SecretString,
    },
}

/// How expired records are deleted.
#[derive(Clone, Debug)]
pub struct CleanerSettings {
    pub interval: Duration,
    pub batch_size: u32,
}

/// What is logged, and how it looks.
#[derive(Clone, Debug)]
pub struct LogSettings {
    pub format: LogFormat,
    /// In the language of `tracing_subscriber::EnvFilter`, checked.
    pub filter: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}
