//! The command line: one binary, one file per command.
//!
//! Results go to stdout, one JSON object per line, and nothing else does; logs and errors go to
//! stderr. The exit code is 0 when what was asked for is done, 2 when the arguments or settings
//! are wrong, and 1 for every other failure.

mod api_keys;
mod audit;
mod cleanup;
mod connect;
pub mod dev;
pub mod error;
pub mod guardian;
mod merchants;
mod migrate;
mod output;
mod reviews;
mod sandbox;
pub mod serve;

use std::{process::ExitCode, time::Duration};

use clap::{Parser, Subcommand};

pub use self::error::CliError;
use crate::{
    config::{LogSettings, RawSettings},
    seeded,
    telemetry::logs,
};

/// Idempotent payments on PostgreSQL: one key moves money once.
#[derive(Debug, Parser)]
#[command(name = "oncepay", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs everything on this machine, without set-up
    Dev(Box<dev::DevArguments>),
    /// Runs the service
    Serve {
        /// Applies pending migrations first, instead of refusing to start
        #[arg(long)]
        migrate: bool,
        #[command(flatten)]
        settings: Box<RawSettings>,
    },
    /// Applies pending migrations
    Migrate(migrate::MigrateArguments),
    /// Deletes expired records until there are none, and says how many
    Cleanup(cleanup::CleanupArguments),
    /// Checks the invariants over the database, and a sandbox journal or the gateway's list against it
    Audit(Box<audit::AuditArguments>),
    /// Decides on payments that a person must look at
    #[command(subcommand)]
    Reviews(reviews::Command),
    /// Runs a payment gateway to test against: Stripe's wire format, a journal, faults on demand
    Sandbox(sandbox::SandboxArguments),
    /// Runs a private PostgreSQL for its parent
    #[command(hide = true)]
    Guardian(guardian::GuardianArgs),
    /// Administers merchants
    #[command(subcommand)]
    Merchants(merchants::Command),
    /// Administers API keys
    #[command(subcommand)]
    ApiKeys(api_keys::Command),
}

/// For blocking calls that are about to end.
const BLOCKING_PATIENCE: Duration = Duration::from_secs(1);

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    // Test builds take the named points of `FAILPOINTS`, for as long as this lives, and the bug of
    // `SEEDED_BUG`; a release has none of them, and no such variables.
    let _failpoints = fail::has_failpoints().then(fail::FailScenario::setup);
    let _bug = fail::has_failpoints().then(seeded::asked_for);
    let outcome = read_env_file().and_then(|()| match Cli::try_parse() {
        // It makes a runtime of its own, and has no settings.
        Ok(Cli {
            command: Command::Guardian(arguments),
        }) => Ok(guardian::run(&arguments)),
        Ok(cli) => start(cli.command).map(|()| ExitCode::SUCCESS),
        // Help and version come this way too; clap knows which of them is a failure.
        Err(usage) => {
            drop(usage.print());
            Ok(u8::try_from(usage.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from))
        }
    });
    outcome.unwrap_or_else(|error| {
        output::error(&error);
        error.exit_code()
    })
}

/// Before clap, which reads the environment, and before there are threads, which could read it at
/// the same time. This folder's file only: one of a parent folder belongs to something else.
fn read_env_file() -> Result<(), CliError> {
    match dotenvy::from_path(".env") {
        Err(dotenvy::Error::Io(source)) if source.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(dotenvy::Error::Io(source)) => Err(CliError::EnvFile(source)),
        // The error repeats the line, which may hold a secret.
        Err(_) => Err(CliError::EnvFileMalformed),
        Ok(()) => Ok(()),
    }
}

fn start(command: Command) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(CliError::Runtime)?;
    let outcome = runtime.block_on(run(command));
    // What was tracked has ended or was let go. A blocking call that hangs (a file lock that
    // another process holds, a look-up of a name) must not keep a stopped program alive.
    runtime.shutdown_timeout(BLOCKING_PATIENCE);
    outcome
}

async fn run(command: Command) -> Result<(), CliError> {
    match command {
        Command::Dev(arguments) => Box::pin(dev::run(*arguments)).await,
        Command::Serve { migrate, settings } => {
            let settings = settings.validate()?;
            log(&settings.log)?;
            Box::pin(serve::run(settings, migrate)).await
        }
        Command::Migrate(arguments) => Box::pin(migrate::run(arguments)).await,
        Command::Cleanup(arguments) => Box::pin(cleanup::run(arguments)).await,
        Command::Audit(arguments) => Box::pin(audit::run(*arguments)).await,
        Command::Reviews(command) => Box::pin(reviews::run(command)).await,
        Command::Sandbox(arguments) => Box::pin(sandbox::run(arguments)).await,
        Command::Guardian(_) => Err(CliError::NotBuilt("oncepay guardian inside a runtime")),
        Command::Merchants(command) => Box::pin(merchants::run(command)).await,
        Command::ApiKeys(command) => Box::pin(api_keys::run(command)).await,
    }
}

/// Starts logging; each command calls it as soon as its settings are known.
fn log(settings: &LogSettings) -> Result<(), CliError> {
    Ok(logs::init(settings)?)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_is_understood() {
        let merchant = "mer_0192f0c1a2b37c4d8e5f60718293a4b5";
        let key = "key_0192f0c1a2b37c4d8e5f60718293a4b5";
        for line in [
            "oncepay dev --pg-bin /opt/pg/bin --http-addr 127.0.0.1:0",
            "oncepay serve --migrate --allow-short-ttl --idempotency-key-ttl 10s",
            "oncepay serve --allow-short-ttl=false",
            "oncepay migrate --check --database-url postgres://h/d",
            "oncepay cleanup --cleanup-batch-size 500",
            "oncepay audit --journal journal.ndjson",
            "oncepay audit --gateway --since 48h --gateway-kind stripe --stripe-secret-key sk_test_x",
            "oncepay reviews list",
            "oncepay reviews resolve pay_0192f0c1a2b37c4d8e5f60718293a4b5 --to requires_capture \
             --by Ada --reason seen --gateway-reference pi_1",
            "oncepay sandbox --addr 127.0.0.1:0 --journal j.ndjson --key-window 1m --search-lag 5s",
            "oncepay merchants create Shop",
            &format!("oncepay api-keys create --merchant {merchant} --name till"),
            &format!("oncepay api-keys list --merchant {merchant}"),
            &format!("oncepay api-keys revoke {key}"),
        ] {
            if let Err(error) = parse(line) {
                panic!("{line}: {error}");
            }
        }
    }

    #[test]
    fn an_id_of_another_kind_is_refused() {
        let key = "key_0192f0c1a2b37c4d8e5f60718293a4b5";

        let error = parse(&format!("oncepay api-keys list --merchant {key}")).unwrap_err();

        assert!(
            error.to_string().contains("not a valid merchant id"),
            "{error}"
        );
    }

    #[test]
    fn the_short_ttl_flag_needs_no_value() {
        let Ok(Cli {
            command: Command::Serve { settings, .. },
        }) = parse("oncepay serve --allow-short-ttl --database-url postgres://h/d")
        else {
            panic!("the command line is valid");
        };

        assert_eq!(settings.idempotency.allow_short_ttl, "true");
    }
}
