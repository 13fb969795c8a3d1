//! `oncepay guardian`: hidden; runs a private PostgreSQL and stops it with its parent.

use std::process::ExitCode;

use crate::db::embedded::guardian::{self, Orders};

/// Written by [`Cluster::open`](crate::db::embedded::Cluster::open), not by people.
#[derive(Clone, Debug, clap::Args)]
pub struct GuardianArgs {
    /// What to guard, as JSON.
    orders: Orders,
}

/// Guards until the parent has gone. Makes a runtime of its own: not for async callers.
pub fn run(args: &GuardianArgs) -> ExitCode {
    guardian::run(&args.orders)
}
