//! One of the services: a process, the next one, and what all of them have logged.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use tokio::{task::spawn_blocking, time::sleep};

use super::STRIPE_SECRET;
use crate::support::process::{Process, ProcessBuilder, Started};

/// The shortest that is allowed, so that take-overs come within a run.
pub const LEASE: Duration = Duration::from_secs(2);

/// A database or a network that is away comes back sooner.
const START_WITHIN: Duration = Duration::from_secs(30);
const START_PAUSE: Duration = Duration::from_millis(100);

/// `SHUTDOWN_TIMEOUT`, and what the machine takes for it.
const SHUTDOWN_WITHIN: Duration = Duration::from_secs(15);

/// Connections of one service.
pub const CONNECTIONS: usize = 8;

/// How a service ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Killed,
    /// SIGTERM: it drains, and lets go of what it cannot finish.
    Terminated,
}

/// What runs, ran, and will run.
#[derive(Debug)]
pub struct Service {
    folder: PathBuf,
    database_url: String,
    gateway: String,
    bug: Option<String>,
    process: Option<Process>,
    /// Of those that have ended.
    log: String,
}

impl Service {
    pub fn new(folder: &Path, database_url: &str, gateway: &str, bug: Option<&str>) -> Self {
        Self {
            folder: folder.to_owned(),
            database_url: database_url.to_owned(),
            gateway: gateway.to_owned(),
            bug: bug.map(str::to_owned),
            process: None,
            log: String::new(),
        }
    }

    /// Starts it unless it runs, again where it ends at once for want of its database; gives the
    /// port of a new process.
    pub async fn start(&mut self) -> Option<u16> {
        if self.process.is_some() {
            return None;
        }
        let deadline = Instant::now() + START_WITHIN;
        loop {
            let builder = self.builder();
            match spawn_blocking(move || builder.start_or_end())
                .await
                .unwrap()
            {
                Started::Listens(process) => {
                    let port = process.base().rsplit(':').next().unwrap().parse().unwrap();
                    self.process = Some(process);
                    return Some(port);
                }
                Started::Ended(log) => {
                    assert!(Instant::now() < deadline, "a service must start:\n{log}");
                    self.log.push_str(&log);
                }
            }
            sleep(START_PAUSE).await;
        }
    }

    pub async fn end(&mut self, end: End) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        let ended = spawn_blocking(move || {
            match end {
                End::Killed => process.kill(),
                End::Terminated => {
                    process.signal(Signal::SIGTERM);
                    process.wait(SHUTDOWN_WITHIN);
                }
            }
            process
        });
        self.log.push_str(&ended.await.unwrap().log());
    }

    /// Sends a signal to the process that runs; `false` where none does.
    pub fn signal(&self, signal: Signal) -> bool {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
        self.process.is_some()
    }

    /// Everything that was logged by the process that runs, and those before it.
    pub fn log(&self) -> String {
        let running = self.process.as_ref().map(Process::log);
        self.log.clone() + &running.unwrap_or_default()
    }

    /// The most memory that the process that runs ever had, in MiB.
    pub fn memory_mib(&self) -> u64 {
        let id = self.process.as_ref().map(Process::id).unwrap();
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kib: u64 = line
            .and_then(|line| line.split_whitespace().nth(1))
            .unwrap()
            .parse()
            .unwrap();
        kib / 1024
    }

    fn builder(&self) -> ProcessBuilder {
        let builder = Process::at_url(&self.database_url, &self.folder)
            .env_remove("SANDBOX_DIR")
            .env("GATEWAY", "stripe")
            .env("STRIPE_API_BASE", &self.gateway)
            .env("STRIPE_SECRET_KEY", STRIPE_SECRET)
            .env("DATABASE_MAX_CONNECTIONS", &CONNECTIONS.to_string())
            .env("GATEWAY_TIMEOUT", "800ms")
            .env("REQUEST_TIMEOUT", "1500ms")
            .env("SHUTDOWN_TIMEOUT", "3s")
            .env("IDEMPOTENCY_LEASE_TTL", &format!("{}ms", LEASE.as_millis()))
            .env("RESCUE_INTERVAL", "150ms")
            .env("CLEANUP_INTERVAL", "300ms")
            .env("RUST_LOG", "warn,oncepay=debug");
        match &self.bug {
            Some(bug) => builder.env("SEEDED_BUG", bug),
            None => builder,
        }
    }
}
