//! The options as they are written: text, with their defaults, in groups that commands pick from.
//!
//! A field `http_addr` is the option `--http-addr` and the variable `HTTP_ADDR`. Values in the
//! environment are hidden from `--help`, so that it can be pasted anywhere. Everything is text
//! (also the one flag), because clap would stop at the first value that it cannot read.

use clap::{
    Args, Command, FromArgMatches,
    builder::{StringValueParser, TypedValueParser},
};
use secrecy::SecretString;

/// Every option of the service.
#[derive(Args, Clone, Debug)]
pub struct RawSettings {
    #[command(flatten)]
    pub database: RawDatabase,
    #[command(flatten)]
    pub http: RawHttp,
    #[command(flatten)]
    pub idempotency: RawIdempotency,
    #[command(flatten)]
    pub gateway: RawGateway,
    #[command(flatten)]
    pub cleaner: RawCleaner,
    #[command(flatten)]
    pub log: RawLog,
}

impl RawSettings {
    /// The defaults, whatever the environment says: tests must not depend on who runs them.
    #[expect(
        clippy::expect_used,
        clippy::missing_panics_doc,
        reason = "the input is the empty command line; unit tests call it"
    )]
    pub fn defaults() -> Self {
        let matches = Self::augment_args(Command::new("defaults").no_binary_name(true))
            .mut_args(|arg| arg.env(None))
            .try_get_matches_from(<[&str; 0]>::default())
            .expect("no option is mandatory");
        Self::from_arg_matches(&matches).expect("every option has a default or is optional")
    }
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Database")]
pub struct RawDatabase {
    /// Where PostgreSQL is: `postgres://user:password@host:5432/name`
    #[arg(long, env, hide_env_values = true, value_name = "URL", value_parser = secret())]
    pub database_url: Option<SecretString>,

    /// How many connections the pool may open, at least 4
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "N",
        default_value = "20"
    )]
    pub database_max_connections: String,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "HTTP")]
pub struct RawHttp {
    /// The address that the API listens on
    #[arg(long, env, hide_env_values = true, default_value = "127.0.0.1:8080")]
    pub http_addr: String,

    /// The address that /metrics listens on
    #[arg(long, env, hide_env_values = true, default_value = "127.0.0.1:9090")]
    pub metrics_addr: String,

    /// After this a client is answered 202 while the work goes on; above the gateway timeout
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "DURATION",
        default_value = "30s"
    )]
    pub request_timeout: String,

    /// How long a shutdown waits for work in flight
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "DURATION",
        default_value = "25s"
    )]
    pub shutdown_timeout: String,

    /// How long a client may take to send its request's headers
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "DURATION",
        default_value = "10s"
    )]
    pub header_read_timeout: String,

    /// How long a client may take to send its request's body
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "DURATION",
        default_value = "10s"
    )]
    pub body_read_timeout: String,

    /// The largest request body, from 1KiB to 1MiB
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "SIZE",
        default_value = "64KiB"
    )]
    pub body_limit: String,

    /// How many client connections may be open at once
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "N",
        default_value = "10000"
    )]
    pub connections_max: String,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Idempotency")]
pub struct RawIdempotency {
    /// How long a finished request is remembered, at least 1h
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "DURATION",
        default_value = "24h"
    )]
    pub idempotency_key_ttl: String,

    /// The same, for requests that were answered with success [default: the key TTL]
    #[arg(long, env, hide_env_values = true, value_name = "DURATION")]
    pub idempotency_ttl_completed: Option<String>,

    /// The same, for requests that were answered with a refusal [default: the key TTL]
    #[arg(long, env, hide_env_values = true, value_name = "DURATION")]
    pub idempotency_ttl_failed: Option<String>,

    /// Allows key TTLs below 1h, for trying things out: a late retry of such a key is refused
    #[arg(
        long, env, hide_env_values = true, value_name = "true|false",
        default_value = "false", num_args = 0..=1, require_equals = true,
        default_missing_value = "true"
    )]
    pub allow_short_ttl: String,

    /// How long a crashed owner blocks its keys, at least 2s; renewed four times per lease
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "DURATION",
        default_value = "30s"
    )]
    pub idempotency_lease_ttl: String,

    /// Whether a request without Idempotency-Key is refused: required or optional
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "POLICY",
        default_value = "required"
    )]
    pub idempotency_key_policy: String,

    /// How often unfinished work of dead owners, unknown outcomes and pending payments are looked for
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "DURATION",
        default_value = "5s"
    )]
    pub rescue_interval: String,

    /// The age after which unfinished work is only asked about, and sent by a client's retry alone
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "DURATION",
        default_value = "15m"
    )]
    pub rescue_send_max_age: String,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Gateway")]
pub struct RawGateway {
    /// Who moves the money: sandbox or stripe
    #[arg(long, env, hide_env_values = true, default_value = "sandbox")]
    pub gateway: String,

    /// How long one gateway call may take
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "DURATION",
        default_value = "10s"
    )]
    pub gateway_timeout: String,

    /// The folder that is the sandbox gateway's memory; without it, it forgets with the process
    #[arg(long, env, hide_env_values = true, value_name = "PATH")]
    pub sandbox_dir: Option<String>,

    /// Where Stripe's API is, or `oncepay sandbox`; only the latter may be http://
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "URL",
        default_value = "https://api.stripe.com"
    )]
    pub stripe_api_base: String,

    /// The secret key of the Stripe account, for the stripe gateway
    #[arg(long, env, hide_env_values = true, value_name = "KEY", value_parser = secret())]
    pub stripe_secret_key: Option<SecretString>,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Cleaner")]
pub struct RawCleaner {
    /// How often expired keys are looked for
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "DURATION",
        default_value = "60s"
    )]
    pub cleanup_interval: String,

    /// How many expired keys one statement deletes, at most 10000
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "N",
        default_value = "1000"
    )]
    pub cleanup_batch_size: String,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Logs")]
pub struct RawLog {
    /// How log lines look: text or json
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "FORMAT",
        default_value = "text"
    )]
    pub log_format: String,

    /// What is logged, as tracing's filter directives
    #[arg(
        long,
        env,
        hide_env_values = true,
        value_name = "DIRECTIVES",
        default_value = "warn,oncepay=info"
    )]
    pub rust_log: String,
}

/// Keeps the text out of every `Debug` from the start.
fn secret() -> impl TypedValueParser<Value = SecretString> {
    StringValueParser::new().map(SecretString::from)
}
