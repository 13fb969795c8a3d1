//! A PostgreSQL server of one test, durable as in production, that can be crashed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use oncepay::db::embedded::{Cluster, Durability, Options, Server, discovery};

/// Opens the server whose data are in `folder`; they are made where there are none.
#[expect(
    clippy::disallowed_methods,
    reason = "the tests find PostgreSQL on PATH as the program does, and have no configuration"
)]
pub async fn open(folder: &Path) -> Server {
    let path = std::env::var_os("PATH");
    let options = Options::new(
        folder,
        discovery::find(None, path.as_deref()).unwrap(),
        PathBuf::from(env!("CARGO_BIN_EXE_oncepay")),
        Durability::Full,
    );
    Cluster::open(options).await.unwrap()
}

/// `kill -9` of the postmaster and everything below it: nobody flushes anything.
pub fn kill_with_children(postmaster: u32) {
    let children = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let parent = stat.rsplit(')').next()?.split_whitespace().nth(1)?;
        (parent == postmaster.to_string()).then_some(pid)
    });
    let all: Vec<u32> = std::iter::once(postmaster).chain(children).collect();
    for pid in all {
        // A backend may have ended by itself meanwhile.
        let _gone_or_killed = kill(Pid::from_raw(pid.try_into().unwrap()), Signal::SIGKILL);
    }
}
