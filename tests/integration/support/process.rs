//! A service as a process of its own: one that can be killed, stopped and asked to end.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::database::TestDatabase;

/// A process starts in well under a second; a loaded machine may take longer.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// A running `oncepay serve`; killed with its test.
#[derive(Debug)]
pub struct Process {
    child: Child,
    base: String,
    metrics_base: String,
    log: Arc<Mutex<String>>,
}

/// A process that is about to start.
#[derive(Debug)]
pub struct ProcessBuilder {
    command: Command,
}

/// What became of a start.
#[derive(Debug)]
pub enum Started {
    Listens(Process),
    /// It said this and ended.
    Ended(String),
}

impl Process {
    /// `oncepay serve` on a database, with its sandbox in `folder`.
    pub fn builder(database: &TestDatabase, folder: &Path) -> ProcessBuilder {
        Self::at_url(&database.url(), folder)
    }

    /// The same on any database.
    pub fn at_url(database_url: &str, folder: &Path) -> ProcessBuilder {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oncepay"));
        command
            .arg("serve")
            .env_clear()
            .current_dir(folder)
            .env("DATABASE_URL", database_url)
            .env("SANDBOX_DIR", folder)
            .env("HTTP_ADDR", "127.0.0.1:0")
            .env("METRICS_ADDR", "127.0.0.1:0")
            .env("LOG_FORMAT", "json")
            // A test that is not about the rescuer must not meet it.
            .env("RESCUE_INTERVAL", "1h")
            .env("ALLOW_SHORT_TTL", "true");
        ProcessBuilder { command }
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    /// Everything that it has logged so far.
    pub fn log(&self) -> String {
        lock(&self.log).clone()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill(
            Pid::from_raw(i32::try_from(self.child.id()).unwrap()),
            signal,
        )
        .unwrap();
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// How it ended; nothing while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits until it has ended by itself.
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "the process must end within {limit:?}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The metrics as Prometheus reads them.
    pub async fn metrics(&self) -> String {
        reqwest::get(format!("{}/metrics", self.metrics_base))
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
    }

    /// The value of one series, written as in the exposition: `name{label="value"}`.
    pub async fn metric(&self, series: &str) -> f64 {
        let text = self.metrics().await;
        let line = text.lines().find(|line| {
            line.strip_prefix(series)
                .is_some_and(|rest| rest.starts_with(' '))
        });
        let line = line.unwrap_or_else(|| panic!("{series} is not among\n{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }
}

impl ProcessBuilder {
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    #[must_use]
    pub fn env_remove(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    #[must_use]
    pub fn arg(mut self, argument: &str) -> Self {
        self.command.arg(argument);
        self
    }

    /// Starts it and waits until it listens.
    pub fn start(self) -> Process {
        match self.start_or_end() {
            Started::Listens(process) => process,
            Started::Ended(log) => panic!("the service must start:\n{log}"),
        }
    }

    /// Starts it where it may end at once, for want of its database.
    pub fn start_or_end(mut self) -> Started {
        let mut child = self
            .command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let addresses = follow(&mut child, Arc::clone(&log));
        let found = addresses.recv_timeout(START_PATIENCE);
        let Ok((base, metrics_base)) = found else {
            drop(child.kill());
            drop(child.wait());
            return Started::Ended(lock(&log).clone());
        };
        Started::Listens(Process {
            child,
            base,
            metrics_base,
            log,
        })
    }

    /// Starts it where it must refuse to; gives the exit status and what it said.
    pub fn fail(mut self) -> (ExitStatus, String) {
        let mut child = self
            .command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut said = String::new();
            stderr.read_to_string(&mut said).unwrap();
            drop(sender.send(said));
        });
        // Its end closes the pipe; one that serves keeps it open.
        let Ok(said) = receiver.recv_timeout(START_PATIENCE) else {
            drop(child.kill());
            panic!("the service must refuse to start");
        };
        (child.wait().unwrap(), said)
    }
}

impl Drop for Process {
    /// A test that fails shows what the service said.
    fn drop(&mut self) {
        if std::thread::panicking() {
            drop(writeln!(io::stderr(), "{}", lock(&self.log)));
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Keeps the log, and finds the line that says where it listens.
fn follow(child: &mut Child, log: Arc<Mutex<String>>) -> mpsc::Receiver<(String, String)> {
    let (sender, receiver) = mpsc::channel();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    std::thread::spawn(move || {
        for line in stderr.lines().map_while(Result::ok) {
            if let Some(addresses) = listening(&line) {
                drop(sender.send(addresses));
            }
            let mut log = lock(&log);
            log.push_str(&line);
            log.push('\n');
        }
    });
    receiver
}

fn listening(line: &str) -> Option<(String, String)> {
    let event: serde_json::Value = serde_json::from_str(line).ok()?;
    let fields = event.get("fields").unwrap_or(&event);
    if fields.get("message")?.as_str()? != "listening" {
        return None;
    }
    let base = |name: &str| Some(format!("http://{}", fields.get(name)?.as_str()?));
    Some((base("addr")?, base("metrics_addr")?))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
