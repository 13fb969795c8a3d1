//! `oncepay sandbox`: in this process with a clock that a test moves, or as a process of its own.

use std::{
    io::{BufRead as _, BufReader},
    mem,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use chrono::DateTime;
use oncepay::{
    clock::MockClock,
    gateways::{
        sandbox::{
            journal,
            server::{Options, SandboxServer},
        },
        stripe::Stripe,
    },
    lifecycle::Tasks,
};
use secrecy::SecretString;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    client::{Reply, send, try_send},
    race::PATIENCE,
};

/// Talks to a sandbox that listens somewhere.
#[derive(Clone, Debug)]
pub struct Control {
    pub base: String,
    journal: PathBuf,
    http: reqwest::Client,
}

impl Control {
    fn new(addr: &str, journal: &Path) -> Self {
        Self {
            base: format!("http://{addr}"),
            journal: journal.to_owned(),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        }
    }

    /// Asks for a fault, which must be understood.
    pub async fn fault(&self, fault: Value) {
        self.try_fault(&fault).await.assert_status(201);
    }

    pub async fn try_fault(&self, fault: &Value) -> Reply {
        let url = format!("{}/_sandbox/faults", self.base);
        send(self.http.post(url).body(fault.to_string())).await
    }

    /// How often a fault struck, by the server's own count.
    pub async fn struck(&self, fault: &str) -> u64 {
        self.try_struck(fault).await.unwrap()
    }

    /// The same at a server that may be away.
    pub async fn try_struck(&self, fault: &str) -> reqwest::Result<u64> {
        let url = format!("{}/_sandbox/faults", self.base);
        let told = try_send(self.http.get(url).timeout(PATIENCE)).await?.json();
        let counts = told["struck"].as_array().unwrap().iter();
        Ok(counts
            .filter(|count| count["fault"] == fault)
            .map(|count| count["count"].as_u64().unwrap())
            .sum())
    }

    /// Asks for a fault at a server that may be away.
    pub async fn ask(&self, fault: &Value) -> reqwest::Result<Reply> {
        let url = format!("{}/_sandbox/faults", self.base);
        let request = self.http.post(url).body(fault.to_string());
        try_send(request.timeout(PATIENCE)).await
    }

    /// Takes back what waits, at a server that may be away; one that restarts has forgotten it.
    pub async fn try_clear_faults(&self) -> reqwest::Result<Reply> {
        let url = format!("{}/_sandbox/faults", self.base);
        try_send(self.http.delete(url).timeout(PATIENCE)).await
    }

    pub async fn clear_faults(&self) {
        let url = format!("{}/_sandbox/faults", self.base);
        send(self.http.delete(url)).await.assert_status(200);
    }

    /// What the server says that it did under a key.
    pub async fn effects_told(&self, gateway_key: &str) -> u64 {
        let url = format!("{}/_sandbox/effects?gateway_key={gateway_key}", self.base);
        let reply = send(self.http.get(url)).await;
        reply.assert_status(200).json()["count"].as_u64().unwrap()
    }

    /// What stands in the journal.
    pub fn lines(&self) -> Vec<journal::Line> {
        journal::read(&self.journal).unwrap()
    }

    /// Effects in the journal, over all keys.
    pub fn effects(&self) -> usize {
        journal::effects(&self.lines()).values().sum()
    }

    /// A POST as a user's own code would send it.
    pub async fn post(&self, path: &str, key: &str, form: &str) -> Reply {
        let request = self
            .http
            .post(format!("{}{path}", self.base))
            .bearer_auth("sk_test_x")
            .header("idempotency-key", key)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form.to_owned());
        send(request).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        let request = self.http.get(format!("{}{path}", self.base));
        send(request.bearer_auth("sk_test_x")).await
    }

    pub fn stripe(&self, timeout: Duration) -> Stripe {
        Stripe::new(&self.base, &SecretString::from("sk_test_x"), timeout).unwrap()
    }
}

/// A server in this process; it stops with its test.
#[derive(Debug)]
pub struct SandboxHere {
    pub control: Control,
    pub clock: MockClock,
    tasks: Tasks,
    _folder: TempDir,
}

impl SandboxHere {
    pub async fn start() -> Self {
        Self::with_lag(Duration::ZERO).await
    }

    pub async fn with_lag(search_lag: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal.ndjson");
        let clock = MockClock::at(DateTime::UNIX_EPOCH);
        let options = Options {
            journal: journal.clone(),
            key_window: Duration::from_hours(24),
            search_lag,
        };
        let addr: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let server = SandboxServer::bind(addr, options, Arc::new(clock.clone()))
            .await
            .unwrap();
        let control = Control::new(&server.addr().unwrap().to_string(), &journal);
        let tasks = Tasks::default();
        let serving = tasks.clone();
        drop(tasks.spawn(async move { server.serve(&serving).await }));
        Self {
            control,
            clock,
            tasks,
            _folder: folder,
        }
    }
}

impl Drop for SandboxHere {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

/// A server as a process; killed with its test.
#[derive(Debug)]
pub struct SandboxProcess {
    child: Child,
    addr: String,
    arguments: Vec<String>,
    pub control: Control,
}

impl SandboxProcess {
    /// On any free port.
    pub fn start(journal: &Path) -> Self {
        Self::start_with(journal, &[])
    }

    /// The same with searches that lag.
    pub fn with_lag(journal: &Path, search_lag: Duration) -> Self {
        let lag = format!("{}ms", search_lag.as_millis());
        Self::start_with(journal, &["--search-lag", &lag])
    }

    /// The same with more arguments.
    pub fn start_with(journal: &Path, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        Self::at("127.0.0.1:0", journal, arguments)
    }

    fn at(addr: &str, journal: &Path, arguments: Vec<String>) -> Self {
        let mut child = command(addr, journal)
            .args(&arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let told: Value = serde_json::from_str(&line).expect("it must say where it listens");
        let addr = told["addr"].as_str().unwrap().to_owned();
        let control = Control::new(&addr, journal);
        Self {
            child,
            addr,
            arguments,
            control,
        }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr.parse().unwrap()
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Another process on the same address and journal.
    pub fn restart(&mut self) {
        let addr = self.addr.clone();
        let journal = self.control.journal.clone();
        *self = Self::at(&addr, &journal, mem::take(&mut self.arguments));
    }
}

impl Drop for SandboxProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// `oncepay sandbox` on a journal.
pub fn command(addr: &str, journal: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oncepay"));
    command
        .args(["sandbox", "--addr", addr, "--journal"])
        .arg(journal)
        .env_clear()
        .current_dir(journal.parent().unwrap())
        .stdin(Stdio::null());
    command
}

/// A fault for one call.
pub fn fault(name: &str) -> Value {
    json!({ "fault": name })
}

/// A fault with a status.
pub fn fault_status(name: &str, status: u16) -> Value {
    json!({ "fault": name, "status": status })
}
