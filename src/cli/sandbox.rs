//! `oncepay sandbox`: a payment gateway to test against, as a server of its own.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use clap::Args;
use serde_json::json;

use super::{CliError, output, serve::terminated};
use crate::{
    clock::SystemClock,
    config::RawLog,
    gateways::sandbox::server::{Options, SandboxServer, help},
    lifecycle::Tasks,
};

#[derive(Args, Debug)]
#[command(after_long_help = help())]
pub(super) struct SandboxArguments {
    /// The address to listen on; with port 0, any free port. The address is printed as JSON
    #[arg(long, default_value = "127.0.0.1:12111")]
    addr: SocketAddr,

    /// The journal: one JSON object per line for every request, effect and answer
    ///
    /// It is written before anything is answered. What else must be remembered lies beside it in
    /// `….memory`; a start on the same journal remembers keys, objects and effects.
    #[arg(long, value_name = "FILE")]
    journal: PathBuf,

    /// For how long a key is remembered; after that it is a new one
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = humantime::parse_duration)]
    key_window: Duration,

    /// For how long a search does not find what was made or changed
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = humantime::parse_duration)]
    search_lag: Duration,

    #[command(flatten)]
    log: RawLog,
}

/// Serves until SIGTERM or SIGINT.
pub(super) async fn run(arguments: SandboxArguments) -> Result<(), CliError> {
    super::log(&arguments.log.validate()?)?;
    let options = Options {
        journal: arguments.journal,
        key_window: arguments.key_window,
        search_lag: arguments.search_lag,
    };
    let server = SandboxServer::bind(arguments.addr, options, Arc::new(SystemClock))
        .await
        .map_err(|error| CliError::step("the sandbox cannot start", error))?;
    let signal = terminated().map_err(|error| CliError::step("signals cannot be caught", error))?;
    let addr = server
        .addr()
        .map_err(|error| CliError::step("the sandbox has no address", error))?;
    output::object(&json!({"addr": addr}))?;
    let tasks = Tasks::default();
    let stopping = async {
        signal.await;
        tasks.stop();
    };
    tokio::join!(server.serve(&tasks), stopping);
    Ok(())
}
