//! `oncepay dev`: everything on one machine, without set-up.
//!
//! A private PostgreSQL in `.oncepay/postgres` (or the database of `DATABASE_URL`), migrated; a
//! demo merchant, whose API key is kept in `.oncepay/api-key`; the sandbox gateway, whose memory is
//! `.oncepay/sandbox`. A second start finds all of it again.

mod api_key;
mod greeting;

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::Args;
use secrecy::ExposeSecret as _;

use super::{
    CliError,
    serve::{Service, terminated},
};
use crate::{
    config::RawSettings,
    db::{
        embedded::{Cluster, Durability, Options, Server, discovery},
        migrations,
    },
};

/// Where everything is kept, in the folder in which the command is given.
const FOLDER: &str = ".oncepay";

/// The database on the private server.
const DATABASE: &str = "oncepay";

#[derive(Args, Debug)]
pub struct DevArguments {
    /// The folder of PostgreSQL's programs
    #[arg(long, value_name = "PATH")]
    pub pg_bin: Option<PathBuf>,
    #[command(flatten)]
    pub settings: RawSettings,
}

/// Runs until SIGTERM or SIGINT, then stops the service and after it its database.
pub async fn run(arguments: DevArguments) -> Result<(), CliError> {
    let DevArguments {
        pg_bin,
        mut settings,
    } = arguments;
    super::log(&settings.log.clone().validate()?)?;
    let folder = folder().map_err(|error| CliError::step(".oncepay cannot be made", error))?;
    if settings.gateway.sandbox_dir.is_none() {
        settings.gateway.sandbox_dir = Some(format!("{FOLDER}/sandbox"));
    }
    let server = match settings.database.database_url {
        Some(_) => None,
        None => Some(private_server(&folder, pg_bin.as_deref()).await?),
    };
    if let Some(server) = &server {
        settings.database.database_url = Some(server.url(DATABASE));
    }
    let outcome = serve(settings, &folder, server.as_ref()).await;
    if let Some(server) = server {
        let stopped = server.stop().await;
        stopped.map_err(|error| CliError::step("PostgreSQL did not stop", error))?;
    }
    outcome
}

async fn serve(
    settings: RawSettings,
    folder: &Path,
    server: Option<&Server>,
) -> Result<(), CliError> {
    let settings = settings.validate()?;
    let options = settings
        .database
        .connect_options()
        .map_err(CliError::Database)?;
    migrations::apply(&options).await?;
    let file = folder.join(match server {
        Some(_) => api_key::FILE.to_owned(),
        None => api_key::file_of(&options),
    });
    let secret = api_key::demo(&options, &file).await?;
    let signal = terminated().map_err(|error| CliError::step("signals cannot be caught", error))?;
    let service = Service::start(settings).await?;
    let addr = service
        .addr()
        .map_err(|error| CliError::step("the server has no address", error))?;
    greeting::print(addr, secret.expose_secret(), server)?;
    service.run_until(signal).await
}

fn folder() -> io::Result<PathBuf> {
    let folder = std::env::current_dir()?.join(FOLDER);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

#[expect(clippy::disallowed_methods, reason = "PATH is no setting of ours")]
async fn private_server(folder: &Path, pg_bin: Option<&Path>) -> Result<Server, CliError> {
    let path = std::env::var_os("PATH");
    let programs = discovery::find(pg_bin, path.as_deref())
        .map_err(|error| CliError::step("a private PostgreSQL cannot be started", error))?;
    let guardian = std::env::current_exe()
        .map_err(|error| CliError::step("the program does not know where it is", error))?;
    let options = Options::new(
        folder.join("postgres"),
        programs,
        guardian,
        Durability::Full,
    );
    let server = Cluster::open(options)
        .await
        .map_err(|error| CliError::step("the private PostgreSQL did not start", error))?;
    server
        .create_database(DATABASE)
        .await
        .map_err(CliError::Database)?;
    Ok(server)
}
