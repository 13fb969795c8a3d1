//! Opens a cluster: places it, has a guardian start it, and waits until it answers.

use std::{
    io::{BufRead as _, BufReader},
    net::{Ipv4Addr, TcpListener},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::{
    task::spawn_blocking,
    time::{sleep, timeout},
};

use super::{
    discovery::Programs,
    error::EmbeddedError,
    guardian::{Orders, Report},
    initdb::INITDB_WITHIN,
    place::{self, Place},
    ready,
    server::Server,
};

/// A start that ends at once is tried again on another port: between our choice of a free one and
/// PostgreSQL's use of it, another program may have taken it; and after `kill -9` of a postmaster
/// its sessions hold the data for a moment longer.
const START_ATTEMPTS: u32 = 3;
const PAUSE_BETWEEN_ATTEMPTS: Duration = Duration::from_millis(300);

/// PostgreSQL's own default.
const MAX_CONNECTIONS: u16 = 100;

/// Longer than a fast stop of the server before takes (20 s).
const PATIENCE: Duration = Duration::from_secs(30);

/// What a crash of the machine may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Durability {
    /// Nothing that was committed: it is a database, not a mock.
    Full,
    /// Everything. A crash of PostgreSQL alone costs nothing either way.
    ForTests,
}

/// What to open, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// A folder for this server alone; it is made where it is missing.
    pub folder: PathBuf,
    pub programs: Programs,
    /// The `oncepay` program, which guards as `oncepay guardian …`.
    pub guardian: PathBuf,
    pub durability: Durability,
    pub max_connections: u16,
    /// How long to wait for another server in the folder to end.
    pub patience: Duration,
}

impl Options {
    pub fn new(
        folder: impl Into<PathBuf>,
        programs: Programs,
        guardian: impl Into<PathBuf>,
        durability: Durability,
    ) -> Self {
        Self {
            folder: folder.into(),
            programs,
            guardian: guardian.into(),
            durability,
            max_connections: MAX_CONNECTIONS,
            patience: PATIENCE,
        }
    }
}

/// The data of one private PostgreSQL. It is only ever seen open, as a [`Server`].
#[derive(Debug)]
pub enum Cluster {}

impl Cluster {
    /// Makes the data on first use and starts a server on them. While another server has the
    /// folder, waits for `patience`, then says [`EmbeddedError::InUse`].
    pub async fn open(options: Options) -> Result<Server, EmbeddedError> {
        let place = place::choose(&options.folder, &options.programs)?;
        let mut attempt = 1;
        loop {
            match start(&options, &place).await {
                Err(EmbeddedError::Exited { .. }) if attempt < START_ATTEMPTS => {
                    attempt += 1;
                    sleep(PAUSE_BETWEEN_ATTEMPTS).await;
                }
                done => return done,
            }
        }
    }
}

/// Wherever this returns early or is cancelled, the pipe closes and the guardian stops all.
async fn start(options: &Options, place: &Place) -> Result<Server, EmbeddedError> {
    let orders = Orders {
        folder: place.folder.clone(),
        programs: options.programs.clone(),
        run_as: place.run_as,
        port: free_port()?,
        max_connections: options.max_connections,
        durability: options.durability,
        patience: options.patience,
    };
    let mut guardian = spawn_guardian(&options.guardian, &orders)?;
    let said = guardian.stdout.take();
    let postmaster_pid = started(said, &orders).await?;
    let mut server = Server::new(guardian, &orders, place.placement, postmaster_pid)?;
    ready::wait(&mut server).await?;
    Ok(server)
}

fn spawn_guardian(program: &Path, orders: &Orders) -> Result<Child, EmbeddedError> {
    let text = serde_json::to_string(orders).map_err(|error| EmbeddedError::Guardian {
        message: format!("its orders cannot be written: {error}"),
    })?;
    Command::new(program)
        .arg("guardian")
        .arg(text)
        // Away from the terminal's group, so that Ctrl-C leaves it to do its work.
        .process_group(0)
        // It may have to outlive a deleted checkout or a folder that is about to be unmounted.
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Whoever reads our standard error to its end must not wait for the guardian too.
        .stderr(Stdio::null())
        .spawn()
        .map_err(EmbeddedError::io("run", program))
}

/// What the guardian's first line says. It bounds its own work, and the same bound holds here in
/// case that it is stopped (SIGSTOP) or stuck.
async fn started(said: Option<ChildStdout>, orders: &Orders) -> Result<u32, EmbeddedError> {
    let silent = || EmbeddedError::Guardian {
        message: "it said nothing".to_owned(),
    };
    let within = orders.patience.saturating_mul(2) + INITDB_WITHIN;
    let out = said.ok_or_else(silent)?;
    let line = timeout(within, spawn_blocking(move || first_line(out)))
        .await
        .map_err(|_elapsed| silent())?
        .ok()
        .flatten()
        .ok_or_else(silent)?;
    match serde_json::from_str(&line) {
        Ok(Report::Started { postmaster_pid }) => Ok(postmaster_pid),
        Ok(Report::InUse { postmaster_pid }) => Err(EmbeddedError::InUse {
            folder: orders.folder.path().to_owned(),
            postmaster_pid,
            waited: orders.patience,
        }),
        Ok(Report::Failed { message }) => Err(EmbeddedError::Guardian { message }),
        Err(_) => Err(EmbeddedError::Guardian {
            message: format!("it said {line:?}"),
        }),
    }
}

fn first_line(out: ChildStdout) -> Option<String> {
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).ok()?;
    Some(line)
}

fn free_port() -> Result<u16, EmbeddedError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(EmbeddedError::io(
            "find a free port on",
            Path::new("127.0.0.1"),
        ))
}
