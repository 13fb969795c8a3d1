//! `oncepay merchants`: who can own payments.

use chrono::{DateTime, Utc};
use clap::Subcommand;
use serde::Serialize;

use super::{CliError, connect, output};
use crate::{
    clock::{Clock, SystemClock},
    ids::MerchantId,
    merchants::{self, Name},
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Makes a merchant
    Create {
        /// A name for people; two merchants may have the same
        name: String,
        #[command(flatten)]
        database: connect::AdminArguments,
    },
}

#[derive(Debug, Serialize)]
struct MerchantView<'a> {
    id: MerchantId,
    name: &'a str,
    created_at: DateTime<Utc>,
}

pub(super) async fn run(command: Command) -> Result<(), CliError> {
    let Command::Create { name, database } = command;
    let name = Name::parse(&name)?;
    let mut connection = database.connect().await?;
    let merchant = merchants::create_merchant(&mut connection, name, SystemClock.now()).await?;
    output::object(&MerchantView {
        id: merchant.id,
        name: merchant.name.as_str(),
        created_at: merchant.created_at,
    })
}
