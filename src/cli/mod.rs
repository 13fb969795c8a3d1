//! The command line.

use std::process::ExitCode;

pub mod serve;

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
