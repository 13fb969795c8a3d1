//! `oncepay audit --gateway`, and what it says.

use std::{collections::BTreeSet, process::Command};

use serde_json::Value;

use super::{
    command::{Said, run},
    database::TestDatabase,
};

/// `oncepay audit --gateway` on a database, with the settings that `set` makes.
pub fn audit_with(database: &TestDatabase, set: impl FnOnce(&mut Command)) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_oncepay"));
    command
        .args(["audit", "--gateway"])
        .env_clear()
        .env("DATABASE_URL", database.url());
    set(&mut command);
    run(command, folder.path())
}

/// The checks of all breaches.
pub fn checks(said: &Said) -> BTreeSet<String> {
    let objects = said.objects();
    let checks = objects.iter().filter_map(|line| line["check"].as_str());
    checks.map(str::to_owned).collect()
}

/// The last line.
#[track_caller]
pub fn summary(said: &Said) -> Value {
    said.objects().pop().expect("there must be a summary")
}

/// No breach; gives what was compared.
#[track_caller]
pub fn assert_clean(said: &Said) -> Value {
    said.assert_code(0);
    let summary = summary(said);
    assert_eq!(summary["breaches"], 0);
    summary["gateway"].clone()
}

/// The gateway could not be compared with: an error, and no line that could be taken for a result.
#[track_caller]
pub fn assert_fails(said: &Said, why: &str) {
    said.assert_code(1);
    assert_eq!(said.stdout, "", "there is no result");
    assert!(said.stderr.contains(why), "{why}: {}", said.stderr);
}
