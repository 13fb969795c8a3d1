//! Why a command did not do what it was asked to.

use std::{error::Error, io, process::ExitCode};

use crate::{
    config::ConfigErrors, db::migrations::MigrationError, merchants::MerchantError,
    telemetry::logs::LogError,
};

/// Arguments or settings are wrong; the same code that clap uses.
const USAGE: u8 = 2;

#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error("the file .env cannot be read")]
    EnvFile(#[source] io::Error),
    #[error("the file .env is malformed; its lines are comments or NAME=value")]
    EnvFileMalformed,
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    #[error("logging cannot start")]
    Log(#[from] LogError),
    #[error("the program cannot start its threads")]
    Runtime(#[source] io::Error),
    #[error("the database cannot be reached")]
    Database(#[source] sqlx::Error),
    #[error(transparent)]
    Migration(#[from] MigrationError),
    #[error(transparent)]
    Merchant(#[from] MerchantError),
    /// What was asked for may have been done; only saying so failed.
    #[error("the result cannot be written to stdout")]
    Output(#[source] io::Error),
    #[error("`{0}` is not built yet")]
    NotBuilt(&'static str),
    #[error("{0} tasks had not ended within the shutdown timeout; what they held was let go")]
    NotDrained(usize),
    #[error("{0} breaches of the invariants")]
    Breaches(usize),
    /// A step of a longer command failed; `step` is a clause such as "the server cannot listen".
    #[error("{step}")]
    Step {
        step: &'static str,
        source: Box<dyn Error + Send + Sync>,
    },
}

impl CliError {
    pub fn step(step: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Step {
            step,
            source: source.into(),
        }
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) | Self::EnvFile(_) | Self::EnvFileMalformed => ExitCode::from(USAGE),
            _ => ExitCode::FAILURE,
        }
    }
}
