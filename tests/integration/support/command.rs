//! A command of the program that runs to its end.

use std::{
    path::Path,
    process::{Command, Stdio},
};

/// What a command said, and how it ended.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `oncepay` with these arguments on a database, in an empty folder and environment.
pub fn oncepay(database_url: &str, arguments: &[&str]) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_oncepay"));
    command
        .args(arguments)
        .env_clear()
        .env("DATABASE_URL", database_url);
    run(command, folder.path())
}

/// Runs a program in `folder` and keeps what it says.
pub fn run(mut command: Command, folder: &Path) -> Said {
    let output = command
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Said {
        code: output.status.code().expect("the command was killed"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Said {
    #[track_caller]
    pub fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        self
    }

    /// One JSON object for each line of stdout.
    pub fn objects(&self) -> Vec<serde_json::Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}
