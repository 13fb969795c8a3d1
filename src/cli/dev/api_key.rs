//! The demo merchant and its API key, made once.

use std::{fs, io, os::unix::fs::OpenOptionsExt as _, path::Path};

use secrecy::SecretString;
use sha2::{Digest as _, Sha256};
use sqlx::{ConnectOptions as _, Connection as _, postgres::PgConnectOptions};

use super::CliError;
use crate::{
    clock::{Clock as _, SystemClock},
    db::Database,
    merchants::{self, AuthError, Name},
};

/// The key of the private database, where the README looks for it.
pub(super) const FILE: &str = "api-key";
const MERCHANT: &str = "demo";

/// Where the key of another database is kept: it must not take the place of the private one's.
pub(super) fn file_of(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or_default();
    let name = format!("{}:{}/{database}", options.get_host(), options.get_port());
    let hash = hex::encode(Sha256::digest(name));
    format!("{FILE}-{}", hash.chars().take(8).collect::<String>())
}

/// The API key that was kept, or a new one where there is none that the database accepts: the
/// folder may be older than the database, or the key revoked.
pub(super) async fn demo(
    options: &PgConnectOptions,
    file: &Path,
) -> Result<SecretString, CliError> {
    if let Some(kept) = read(file)? {
        let database = Database::new(options.clone(), 1);
        let authenticated = merchants::authenticate(&database, &kept).await;
        database.pool().close().await;
        match authenticated {
            Ok(_) => return Ok(SecretString::from(kept)),
            Err(AuthError::Refused) => {}
            Err(error) => return Err(CliError::step("the demo API key cannot be checked", error)),
        }
    }
    let secret = create(options).await?;
    write(file, &secret)?;
    Ok(SecretString::from(secret))
}

async fn create(options: &PgConnectOptions) -> Result<String, CliError> {
    let mut connection = options.connect().await.map_err(CliError::Database)?;
    let now = SystemClock.now();
    let merchant = merchants::create_merchant(&mut connection, Name::parse(MERCHANT)?, now).await?;
    let (_key, secret) = merchants::create_api_key(&mut connection, merchant.id, None, now).await?;
    connection.close().await.map_err(CliError::Database)?;
    Ok(secret.expose().to_owned())
}

fn read(file: &Path) -> Result<Option<String>, CliError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::step("the demo API key cannot be read", error)),
    }
}

/// Only its owner may read it; written aside and renamed, so that a crash leaves no half of it.
fn write(file: &Path, secret: &str) -> Result<(), CliError> {
    let aside = file.with_extension("new");
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&aside)
        .and_then(|mut opened| io::Write::write_all(&mut opened, format!("{secret}\n").as_bytes()))
        .and_then(|()| fs::rename(&aside, file));
    written.map_err(|error| CliError::step("the demo API key cannot be kept", error))
}
