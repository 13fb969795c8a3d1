//! PostgreSQL's first process: starts it, stops it, and finds one that an earlier guardian left.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::{Command as StdCommand, ExitStatus, Stdio},
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

use super::{cluster::Durability, error::EmbeddedError, guardian::Orders, lock, run_as::command};

/// A fast shutdown ends sessions and writes a checkpoint. What takes longer has a sick disk, and
/// is cut short: PostgreSQL then recovers at its next start, which is what a log is for.
const FAST_STOP_WITHIN: Duration = Duration::from_secs(20);
const IMMEDIATE_STOP_WITHIN: Duration = Duration::from_secs(5);

/// The longest that an orderly stop takes, for whoever waits for the guardian.
pub(super) const STOP_WITHIN: Duration = FAST_STOP_WITHIN.saturating_add(IMMEDIATE_STOP_WITHIN);

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What `postmaster.pid` says, and whether it is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recorded {
    /// No file, or one whose process is gone: PostgreSQL clears that up by itself.
    Nothing,
    /// A server works in this folder.
    Running(Pid),
    /// The file is empty, or its number now belongs to a stranger (a crash, then a restart of the
    /// machine or container). PostgreSQL would refuse to start.
    Stale,
}

/// The process number in `postmaster.pid`, for messages: not proof that anybody runs.
pub(super) fn recorded_pid(data: &Path) -> Option<i32> {
    let text = fs::read_to_string(pid_file(data)).ok()?;
    text.lines().next()?.trim().parse().ok()
}

/// Ends a server whose guardian was killed, and clears away what a crash left. For the holder of
/// the lock only: whoever still runs in the folder then has no guardian any more.
pub(super) async fn clear_left_over(orders: &Orders) -> Result<(), EmbeddedError> {
    let data = orders.folder.data();
    match recorded(&data)? {
        Recorded::Nothing => Ok(()),
        Recorded::Stale => {
            let file = pid_file(&data);
            fs::remove_file(&file).map_err(EmbeddedError::io("remove", &file))
        }
        Recorded::Running(pid) => end_orphan(orders, &data, pid).await,
    }
}

pub(super) fn start(orders: &Orders) -> Result<Child, EmbeddedError> {
    let path = orders.folder.log();
    // Begun anew at each start, which bounds it. Opened here and not by PostgreSQL, so that it
    // also holds what PostgreSQL says before it has read its settings.
    let log = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)
        .map_err(EmbeddedError::io("open", &path))?;
    let for_errors = log.try_clone().map_err(EmbeddedError::io("open", &path))?;
    let program = orders.programs.postgres();
    let mut postgres = command(&program, orders.folder.path(), orders.run_as);
    postgres
        .arg("-D")
        .arg(orders.folder.data())
        .args(settings(orders))
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(for_errors);
    // Should the guardian panic, a killed server that recovers is better than an unguarded one.
    Command::from(postgres)
        .kill_on_drop(true)
        .spawn()
        .map_err(EmbeddedError::io("run", &program))
}

/// Stops in order if that is possible, and in any case. Says which it was.
pub(super) async fn stop(postgres: &mut Child) -> io::Result<ExitStatus> {
    for (how, within) in [
        (Signal::SIGINT, FAST_STOP_WITHIN),
        (Signal::SIGQUIT, IMMEDIATE_STOP_WITHIN),
    ] {
        send(postgres, how)?;
        if let Ok(ended) = timeout(within, postgres.wait()).await {
            return ended;
        }
    }
    postgres.start_kill()?;
    postgres.wait().await
}

/// Only a child that has not been waited for has a number, so that no stranger can be hit.
fn send(postgres: &Child, signal: Signal) -> io::Result<()> {
    match postgres.id().map(i32::try_from) {
        Some(Ok(pid)) => kill(Pid::from_raw(pid), signal).map_err(io::Error::from),
        Some(Err(_)) | None => Ok(()),
    }
}

/// Given on the command line, which wins over files in the data folder that somebody edited.
fn settings(orders: &Orders) -> Vec<String> {
    let durable = match orders.durability {
        Durability::Full => "on",
        Durability::ForTests => "off",
    };
    [
        format!("port={}", orders.port),
        "listen_addresses=127.0.0.1".to_owned(),
        // No socket file: its path may have 107 bytes at most, and a checkout may lie deeper.
        "unix_socket_directories=".to_owned(),
        format!("max_connections={}", orders.max_connections),
        format!("fsync={durable}"),
        format!("synchronous_commit={durable}"),
        format!("full_page_writes={durable}"),
    ]
    .into_iter()
    .flat_map(|setting| ["-c".to_owned(), setting])
    .collect()
}

async fn end_orphan(orders: &Orders, data: &Path, pid: Pid) -> Result<(), EmbeddedError> {
    match kill(pid, Signal::SIGINT) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => return Err(EmbeddedError::io("stop the server in", data)(error.into())),
    }
    let asked_at = Instant::now();
    while matches!(recorded(data)?, Recorded::Running(_)) {
        if asked_at.elapsed() > orders.patience {
            return Err(lock::in_use(&orders.folder, orders.patience));
        }
        sleep(LOOK_EVERY).await;
    }
    Ok(())
}

fn recorded(data: &Path) -> Result<Recorded, EmbeddedError> {
    let file = pid_file(data);
    let present = file
        .try_exists()
        .map_err(EmbeddedError::io("look at", &file))?;
    match recorded_pid(data).map(Pid::from_raw) {
        None if present => Ok(Recorded::Stale),
        None => Ok(Recorded::Nothing),
        Some(pid) if kill(pid, None) == Err(Errno::ESRCH) => Ok(Recorded::Nothing),
        Some(pid) if works_in(pid, data) => Ok(Recorded::Running(pid)),
        Some(_) => Ok(Recorded::Stale),
    }
}

/// Whether this process is a server of ours. PostgreSQL's working directory is its data folder;
/// where there is no `/proc`, the arguments that we started it with name it.
fn works_in(pid: Pid, data: &Path) -> bool {
    if Path::new("/proc/self/cwd").exists() {
        return fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|folder| folder == data);
    }
    let listed = StdCommand::new("ps")
        .args(["-o", "args=", "-p", &pid.to_string()])
        .output();
    match listed {
        Ok(listed) => String::from_utf8_lossy(&listed.stdout).contains(&*data.to_string_lossy()),
        // Not knowing must not lead to two servers on the same data.
        Err(_) => true,
    }
}

fn pid_file(data: &Path) -> PathBuf {
    data.join("postmaster.pid")
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_process_number_is_believed_only_of_a_process_that_works_in_the_folder() {
        let folder = TempDir::new().unwrap();
        let data = fs::canonicalize(folder.path()).unwrap();
        // Ends with this test, also when that panics: its standard input ends then.
        let mut here = StdCommand::new("cat")
            .stdin(Stdio::piped())
            .current_dir(&data)
            .spawn()
            .unwrap();
        let pid = here.id();
        let record = |text: String| fs::write(pid_file(&data), text).unwrap();

        assert_eq!(recorded(&data).unwrap(), Recorded::Nothing);
        record(format!("{pid}\n{}\n", data.display()));
        let running = recorded(&data).unwrap();
        here.kill().unwrap();
        here.wait().unwrap();
        let gone = recorded(&data).unwrap();
        record(std::process::id().to_string());
        let stranger = recorded(&data).unwrap();
        record(String::new());
        let empty = recorded(&data).unwrap();

        let pid = Pid::from_raw(pid.try_into().unwrap());
        assert_eq!(running, Recorded::Running(pid));
        assert_eq!(gone, Recorded::Nothing);
        assert_eq!(stranger, Recorded::Stale);
        assert_eq!(empty, Recorded::Stale);
    }
}
