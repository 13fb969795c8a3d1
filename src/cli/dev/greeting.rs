//! What `oncepay dev` says when it is ready.

use std::net::SocketAddr;

use super::super::{CliError, output};
use crate::db::embedded::{Placement, Server};

/// Prints a command to paste, and where the data are where nobody would look for them.
pub(super) fn print(
    addr: SocketAddr,
    secret: &str,
    server: Option<&Server>,
) -> Result<(), CliError> {
    let data = match server {
        Some(server) if server.placement() == Placement::SystemPlace => format!(
            "\nPostgreSQL's user cannot enter this folder; its data are in {}\n",
            server.folder().display()
        ),
        Some(_) | None => String::new(),
    };
    output::text(&format!(
        "oncepay is ready on http://{addr} (API: http://{addr}/docs). A payment to paste:

curl -i http://{addr}/v1/payments \\
  -H 'Authorization: Bearer {secret}' \\
  -H 'Idempotency-Key: order-1' \\
  -H 'Content-Type: application/json' \\
  -d '{{\"amount\":1999,\"currency\":\"EUR\",\"payment_method\":\"pm_card_visa\",\"reference\":\"order-1\"}}'

Paste it twice: the second answer is the first one again, byte for byte.
{data}"
    ))
}
