//! What a command writes, without panicking when nobody reads it.

use std::{
    error::Error,
    io::{self, Write},
};

use serde::Serialize;

use super::CliError;
use crate::telemetry::error_chain;

/// One JSON object on a line of its own on stdout.
pub(super) fn object(object: &impl Serialize) -> Result<(), CliError> {
    let mut line = serde_json::to_vec(object).map_err(|error| CliError::Output(error.into()))?;
    line.push(b'\n');
    write(&line)
}

/// Text for a person, on stdout.
pub(super) fn text(text: &str) -> Result<(), CliError> {
    write(text.as_bytes())
}

/// An error on stderr. A closed stderr changes nothing: the exit code says the same.
pub(super) fn error(error: &(dyn Error + 'static)) {
    drop(writeln!(io::stderr(), "error: {}", error_chain(error)));
}

fn write(bytes: &[u8]) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(bytes)
        .and_then(|()| stdout.flush())
        .map_err(CliError::Output)
}
