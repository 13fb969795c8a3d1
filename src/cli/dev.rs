//! `oncepay dev`: everything on one machine, without set-up.

use std::path::PathBuf;

use clap::Args;

use super::CliError;
use crate::config::RawSettings;

#[derive(Args, Debug)]
pub struct DevArguments {
    /// The folder of PostgreSQL's programs
    #[arg(long, value_name = "PATH")]
    pub pg_bin: Option<PathBuf>,
    #[command(flatten)]
    pub settings: RawSettings,
}

#[expect(clippy::unused_async, reason = "the command that replaces it waits")]
pub async fn run(_arguments: DevArguments) -> Result<(), CliError> {
    Err(CliError::NotBuilt("oncepay dev"))
}
