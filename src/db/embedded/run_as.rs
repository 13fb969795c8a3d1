//! Runs PostgreSQL as somebody else where we are root, because PostgreSQL refuses root.

use std::{
    fs, io,
    os::unix::{
        fs::{MetadataExt as _, chown},
        process::CommandExt as _,
    },
    path::Path,
    process::{Command, Stdio},
};

use nix::unistd::{User, geteuid};
use serde::{Deserialize, Serialize};

use super::{discovery::Programs, error::EmbeddedError, folder::Folder};

/// Accounts that are there for this, best first.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// An account other than our own that PostgreSQL runs under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// `None`: PostgreSQL runs as ourselves. Data that exist decide, because PostgreSQL works on
    /// data of its own account only: root continues a user's folder as that user.
    pub(super) fn for_folder(folder: &Folder) -> Result<Option<Self>, EmbeddedError> {
        let us = geteuid();
        match owner(&folder.data())? {
            Some(owner) if owner.uid == us.as_raw() && !us.is_root() => Ok(None),
            Some(owner) if us.is_root() && owner.uid != 0 => Ok(Some(owner)),
            Some(owner) => Err(EmbeddedError::ForeignOwner {
                data: folder.data(),
                owner: owner.uid,
            }),
            None if us.is_root() => candidate().map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn uid(self) -> u32 {
        self.uid
    }

    pub(super) fn own(self, path: &Path) -> Result<(), EmbeddedError> {
        chown(path, Some(self.uid), Some(self.gid)).map_err(EmbeddedError::io(
            "give away to the account of PostgreSQL",
            path,
        ))
    }

    /// Whether this account can run the programs and stand in `folder`. The kernel is asked by
    /// doing it, since modes of the way there, access lists and mount options all have a say.
    pub(super) fn can_run_in(self, programs: &Programs, folder: &Path) -> io::Result<bool> {
        let status = command(&programs.postgres(), folder, Some(self))
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        match status {
            Ok(status) => Ok(status.success()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// A command that runs under `account` in `folder`: our own working directory may be one that the
/// account cannot enter, and PostgreSQL's programs fail where they cannot name theirs.
pub(super) fn command(program: &Path, folder: &Path, account: Option<Account>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    if let Some(account) = account {
        // The standard library drops root's supplementary groups together with the user.
        command.uid(account.uid).gid(account.gid);
    }
    command
}

fn owner(data: &Path) -> Result<Option<Account>, EmbeddedError> {
    match fs::metadata(data) {
        Ok(about) => Ok(Some(Account {
            uid: about.uid(),
            gid: about.gid(),
        })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(EmbeddedError::io("look at", data)(error)),
    }
}

/// An account that cannot be looked up is as good as none: the next one may do.
fn candidate() -> Result<Account, EmbeddedError> {
    CANDIDATES
        .iter()
        .find_map(|name| User::from_name(name).ok().flatten())
        .map(|user| Account {
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
        })
        .ok_or(EmbeddedError::NoAccount)
}
