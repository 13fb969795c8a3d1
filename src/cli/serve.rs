//! `oncepay serve`: the service.

use super::CliError;
use crate::config::Settings;

#[expect(clippy::unused_async, reason = "the command that replaces it waits")]
pub async fn run(_settings: Settings, _migrate: bool) -> Result<(), CliError> {
    Err(CliError::NotBuilt("oncepay serve"))
}
