//! What can go wrong with a private server.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// Written for the person who typed `oncepay dev`: each message names the file or the way on.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    #[error(
        "no PostgreSQL programs (initdb, postgres) were found. Three ways on: install PostgreSQL \
         (or name its folder with --pg-bin), run `docker compose up`, or set DATABASE_URL to a \
         server that runs already"
    )]
    NotInstalled,
    #[error("{} holds no PostgreSQL programs (initdb, postgres)", .0.display())]
    NoProgramsIn(PathBuf),
    #[error(
        "{} is not a folder for a private PostgreSQL: it holds {entry:?}", folder.display()
    )]
    FolderNotOurs { folder: PathBuf, entry: PathBuf },
    #[error(
        "{} belongs to user {owner}: start as that user or as root, or delete it", data.display()
    )]
    ForeignOwner { data: PathBuf, owner: u32 },
    #[error(
        "PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody to \
         run it as"
    )]
    NoAccount,
    #[error("user {uid} may not run the PostgreSQL programs in {}", bin.display())]
    ProgramsForbidden { bin: PathBuf, uid: u32 },
    #[error("user {uid}, who would run PostgreSQL, cannot enter {}", folder.display())]
    FolderForbidden { folder: PathBuf, uid: u32 },
    #[error(
        "{} is in use by another server{} that did not end within {}",
        folder.display(),
        postmaster_pid.map_or_else(String::new, |pid| format!(" (process {pid})")),
        humantime::format_duration(*waited)
    )]
    InUse {
        folder: PathBuf,
        postmaster_pid: Option<i32>,
        waited: Duration,
    },
    #[error(
        "{} holds data but their password is missing; put it back, or delete the folder",
        .0.display()
    )]
    PasswordMissing(PathBuf),
    #[error("initdb failed: {output}")]
    Initdb { output: String },
    #[error("PostgreSQL ended unasked; the end of its log:\n{log_tail}")]
    Exited { log_tail: String },
    #[error(
        "PostgreSQL did not answer within {}; the end of its log:\n{log_tail}",
        humantime::format_duration(*within)
    )]
    NotReady { within: Duration, log_tail: String },
    #[error(
        "PostgreSQL did not stop in order within {}; the end of its log:\n{log_tail}",
        humantime::format_duration(*within)
    )]
    NotStopped { within: Duration, log_tail: String },
    #[error("the guardian of PostgreSQL failed: {message}")]
    Guardian { message: String },
    #[error("could not {doing} {}", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl EmbeddedError {
    /// For `map_err`: what was being done, and to which file.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            doing,
            path: path.to_owned(),
            source,
        }
    }
}
