//! `oncepay audit`: was anyone charged without a record, and is all else as promised?

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use chrono::TimeDelta;
use clap::Args;
use serde::Serialize;
use sqlx::PgConnection;

use super::{CliError, connect, output, serve};
use crate::{
    audit::{
        self, Breach,
        gateway::{Compared, Witness},
        journal,
    },
    clock::{Clock, SystemClock},
    config::{GatewayKind, GatewaySettings, RawGateway},
};

#[derive(Args, Debug)]
// `--gateway` is what is asked for here; which one it is comes from GATEWAY, as for `serve`.
#[command(mut_arg("gateway", |arg| arg.long("gateway-kind")))]
pub(super) struct AuditArguments {
    /// A sandbox's journal, to be compared with the payments
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,

    /// Compares the payments with the gateway's own list too
    ///
    /// Finds effects without a payment, payments without an effect, other amounts or currencies, and
    /// states that contradict each other. Objects without the key that oncepay puts into their
    /// metadata are counted and not judged. The gateway is asked for its list twice, a hundred
    /// objects at a time; when it does not answer, or not as it should, the audit fails.
    #[arg(long = "gateway")]
    against_gateway: bool,

    /// How far back the gateway's list is compared
    ///
    /// By the moment of creation: what is older and was captured or refunded since is only compared
    /// as far as a newer object names it. Lists do not lag as searches do, so nothing need be left out
    /// at the near end. Longer than the time between two audits, by a good deal.
    #[arg(
        long,
        requires = "against_gateway",
        value_name = "DURATION",
        default_value = "48h",
        value_parser = humantime::parse_duration
    )]
    since: Duration,

    #[command(flatten)]
    gateway: RawGateway,
    #[command(flatten)]
    database: connect::AdminArguments,
}

/// The last line.
#[derive(Debug, Serialize)]
struct Summary {
    /// Over the database; a journal or a gateway adds its own.
    checks: usize,
    journal: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<Compared>,
    breaches: usize,
}

/// Prints one line per breach and a summary, and fails if there is any. It changes nothing and may
/// run at any time, beside any number of instances.
pub(super) async fn run(arguments: AuditArguments) -> Result<(), CliError> {
    let AuditArguments {
        journal,
        against_gateway,
        since,
        gateway,
        database,
    } = arguments;
    let gateway = against_gateway.then(|| gateway.validate()).transpose()?;
    let mut connection = database.connect().await?;
    let mut breaches = check(&mut connection, journal.as_ref()).await?;
    let mut compared = None;
    if let Some(gateway) = gateway {
        let (more, counted) = compare(&mut connection, &gateway, since).await?;
        breaches.extend(more);
        compared = Some(counted);
    }
    breaches.iter().try_for_each(output::object)?;
    output::object(&Summary {
        checks: audit::checks(),
        journal: journal.is_some(),
        gateway: compared,
        breaches: breaches.len(),
    })?;
    if breaches.is_empty() {
        Ok(())
    } else {
        Err(CliError::Breaches(breaches.len()))
    }
}

async fn check(
    connection: &mut PgConnection,
    journal: Option<&PathBuf>,
) -> Result<Vec<Breach>, CliError> {
    let lines = journal.map(|path| move || journal::read(path));
    let lines = lines
        .as_ref()
        .map(|lines| -> &(dyn Fn() -> io::Result<Vec<journal::Line>> + Send + Sync) { lines });
    audit::run(connection, lines).await.map_err(not_ended)
}

async fn compare(
    connection: &mut PgConnection,
    settings: &GatewaySettings,
    since: Duration,
) -> Result<(Vec<Breach>, Compared), CliError> {
    const NO_GATEWAY: &str = "the gateway cannot be asked";
    // Opening a folder makes it, and an empty one would have lost everything.
    if let GatewayKind::Sandbox { dir: Some(dir) } = &settings.kind
        && !dir.is_dir()
    {
        let missing = io::Error::new(io::ErrorKind::NotFound, "there is no folder SANDBOX_DIR");
        return Err(CliError::step(NO_GATEWAY, missing));
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let now = clock.now();
    let gateway =
        serve::gateway(settings, clock).map_err(|error| CliError::step(NO_GATEWAY, error))?;
    let since = TimeDelta::from_std(since)
        .ok()
        .and_then(|since| now.checked_sub_signed(since))
        .ok_or_else(|| CliError::step(NO_GATEWAY, "--since goes back further than time does"))?;
    let witness = Witness {
        gateway: gateway.as_ref(),
        since,
    };
    audit::run_against(connection, &witness)
        .await
        .map_err(not_ended)
}

fn not_ended(error: audit::AuditError) -> CliError {
    CliError::step("the audit has not ended", error)
}
