//! `oncepay api-keys`: the credentials of merchants.

use chrono::{DateTime, Utc};
use clap::Subcommand;
use serde::Serialize;

use super::{CliError, connect, output};
use crate::{
    clock::{Clock, SystemClock},
    ids::{ApiKeyId, MerchantId},
    merchants::{self, ApiKey, ApiKeySecret, Name},
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Makes an API key and prints its secret, this once
    Create {
        /// The merchant that it belongs to
        #[arg(long)]
        merchant: MerchantId,
        /// What it is for, for people
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        database: connect::AdminArguments,
    },
    /// Lists a merchant's API keys, revoked ones too
    List {
        #[arg(long)]
        merchant: MerchantId,
        #[command(flatten)]
        database: connect::AdminArguments,
    },
    /// Refuses an API key from now on
    Revoke {
        /// The API key's id, as `list` shows it
        id: ApiKeyId,
        #[command(flatten)]
        database: connect::AdminArguments,
    },
}

#[derive(Debug, Serialize)]
struct ApiKeyView {
    id: ApiKeyId,
    merchant_id: MerchantId,
    name: Option<String>,
    prefix: String,
    created_at: DateTime<Utc>,
    revoked_at: Option<DateTime<Utc>>,
}

/// The one place where a secret leaves the program.
#[derive(Serialize)]
struct CreatedView<'a> {
    #[serde(flatten)]
    api_key: ApiKeyView,
    secret: &'a str,
}

pub(super) async fn run(command: Command) -> Result<(), CliError> {
    match command {
        Command::Create {
            merchant,
            name,
            database,
        } => create(merchant, name, database).await,
        Command::List { merchant, database } => list(merchant, database).await,
        Command::Revoke { id, database } => revoke(id, database).await,
    }
}

async fn create(
    merchant: MerchantId,
    name: Option<String>,
    database: connect::AdminArguments,
) -> Result<(), CliError> {
    let name = name.as_deref().map(Name::parse).transpose()?;
    let mut connection = database.connect().await?;
    let (api_key, secret) =
        merchants::create_api_key(&mut connection, merchant, name, SystemClock.now()).await?;
    print_created(api_key, &secret)
}

fn print_created(api_key: ApiKey, secret: &ApiKeySecret) -> Result<(), CliError> {
    output::object(&CreatedView {
        api_key: api_key.into(),
        secret: secret.expose(),
    })
}

async fn list(merchant: MerchantId, database: connect::AdminArguments) -> Result<(), CliError> {
    let mut connection = database.connect().await?;
    let api_keys = merchants::list_api_keys(&mut connection, merchant).await?;
    api_keys
        .into_iter()
        .try_for_each(|api_key| output::object(&ApiKeyView::from(api_key)))
}

async fn revoke(id: ApiKeyId, database: connect::AdminArguments) -> Result<(), CliError> {
    let mut connection = database.connect().await?;
    let api_key = merchants::revoke_api_key(&mut connection, id, SystemClock.now()).await?;
    output::object(&ApiKeyView::from(api_key))
}

impl From<ApiKey> for ApiKeyView {
    fn from(api_key: ApiKey) -> Self {
        Self {
            id: api_key.id,
            merchant_id: api_key.merchant_id,
            name: api_key.name,
            prefix: api_key.prefix,
            created_at: api_key.created_at,
            revoked_at: api_key.revoked_at,
        }
    }
}
