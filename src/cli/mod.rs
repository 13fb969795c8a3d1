//! The command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub mod guardian;
pub mod serve;

#[derive(Debug, Parser)]
#[command(name = "oncepay", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a private PostgreSQL for its parent.
    #[command(hide = true)]
    Guardian(guardian::GuardianArgs),
}

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Guardian(args) => guardian::run(&args),
    }
}
