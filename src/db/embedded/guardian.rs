//! The guardian: a process of its own that runs PostgreSQL for its parent, and stops it when the
//! parent has gone.
//!
//! Its standard input is a pipe that only the parent holds open, so the kernel tells it of the
//! parent's end, `kill -9` included. It promises not to end before PostgreSQL: it is in a process
//! group of its own (Ctrl-C goes to the terminal's), SIGINT and SIGHUP do nothing, and SIGTERM is
//! an order to stop PostgreSQL. Only `kill -9` of the guardian itself leaves a server behind, and
//! the next start in the folder ends that one.

use std::{
    error::Error,
    io::{self, Write as _},
    iter,
    os::fd::AsFd as _,
    process::ExitCode,
    str::FromStr,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    process::Child,
    signal::unix::{Signal, SignalKind, signal},
};

use super::{
    cluster::Durability, discovery::Programs, error::EmbeddedError, folder::Folder, initdb, lock,
    postmaster, run_as::Account,
};

/// What a guardian is told, as JSON in its one argument: `ps` shows which folder it guards.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Orders {
    pub(super) folder: Folder,
    pub(super) programs: Programs,
    pub(super) run_as: Option<Account>,
    pub(super) port: u16,
    pub(super) max_connections: u16,
    pub(super) durability: Durability,
    /// How long to wait for another server in the folder to end.
    pub(super) patience: Duration,
}

impl FromStr for Orders {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

/// What a guardian tells its parent, as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    Started { postmaster_pid: u32 },
    InUse { postmaster_pid: Option<i32> },
    Failed { message: String },
}

/// Runs PostgreSQL until the parent goes. Makes a runtime, so it is not for async callers.
pub fn run(orders: &Orders) -> ExitCode {
    let guarded = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed("start its runtime", &error))
        .and_then(|runtime| runtime.block_on(guard(orders)));
    let Err(error) = guarded else {
        return ExitCode::SUCCESS;
    };
    let told = tell(&match error {
        EmbeddedError::InUse { postmaster_pid, .. } => Report::InUse { postmaster_pid },
        error => Report::Failed {
            message: chain(&error),
        },
    });
    // Nobody is left to be told where that fails, and the exit code says the same.
    drop(told);
    ExitCode::FAILURE
}

async fn guard(orders: &Orders) -> Result<(), EmbeddedError> {
    let mut parent = Parent::attach().map_err(|error| failed("attach to its parent", &error))?;
    let _lock = tokio::select! {
        lock = lock::acquire(&orders.folder, orders.patience) => lock?,
        () = parent.gone() => return Ok(()),
    };
    // Not cut short where the parent goes meanwhile: both are bounded, and a half-made folder
    // would be made again.
    postmaster::clear_left_over(orders).await?;
    initdb::ensure(orders).await?;
    let mut postgres = postmaster::start(orders)?;
    // A parent that cannot be told has gone.
    if report_start(&postgres).is_ok() {
        tokio::select! {
            ended = postgres.wait() => return Err(ended.map_or_else(
                |error| failed("wait for PostgreSQL", &error),
                |_status| EmbeddedError::Exited { log_tail: orders.folder.log_tail() },
            )),
            () = parent.gone() => {}
        }
    }
    match postmaster::stop(&mut postgres).await {
        Ok(status) if status.success() => Ok(()),
        Ok(_status) => Err(EmbeddedError::NotStopped {
            within: postmaster::STOP_WITHIN,
            log_tail: orders.folder.log_tail(),
        }),
        Err(error) => Err(failed("stop PostgreSQL", &error)),
    }
}

/// The parent as seen from here: an open pipe, or an order to stop.
#[derive(Debug)]
struct Parent {
    pipe: pipe::Receiver,
    terminate: Signal,
}

impl Parent {
    fn attach() -> io::Result<Self> {
        // A handler stays for the life of the process, also when its stream is dropped, and
        // unlike ignoring the signal it is not inherited by PostgreSQL.
        for ignored in [SignalKind::interrupt(), SignalKind::hangup()] {
            drop(signal(ignored)?);
        }
        let terminate = signal(SignalKind::terminate())?;
        // A terminal or /dev/null is refused: neither would end with the parent.
        let pipe = pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
        Ok(Self { pipe, terminate })
    }

    /// Resolves when the parent has gone, or wants PostgreSQL to.
    async fn gone(&mut self) {
        tokio::select! {
            () = ended(&mut self.pipe) => {}
            _received = self.terminate.recv() => {}
        }
    }
}

/// Nobody writes to the pipe; what comes all the same has no meaning. An error is an end too: a
/// parent that can no longer be watched must not leave a server behind.
async fn ended(pipe: &mut pipe::Receiver) {
    let mut ignored = [0; 64];
    while !matches!(pipe.read(&mut ignored).await, Ok(0) | Err(_)) {}
}

fn report_start(postgres: &Child) -> io::Result<()> {
    match postgres.id() {
        Some(postmaster_pid) => tell(&Report::Started { postmaster_pid }),
        None => Ok(()),
    }
}

fn tell(report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

fn failed(what: &str, error: &io::Error) -> EmbeddedError {
    EmbeddedError::Guardian {
        message: format!("could not {what}: {error}"),
    }
}

fn chain(error: &(dyn Error + 'static)) -> String {
    iter::successors(Some(error), |&error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
