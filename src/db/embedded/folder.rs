//! The folder that a private server lives in.
//!
//! The folder itself belongs to whoever starts us, also when that is root and PostgreSQL runs as
//! somebody else: only `data` is given away. So no other account can put a link where root is
//! about to write.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use nix::unistd::geteuid;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::error::EmbeddedError;

/// Everything that may be in the folder. Whatever else is in it, the folder is not ours.
const ENTRIES: [&str; 5] = ["data", "data.new", "lock", "password", "server.log"];

/// How much of the log goes into a message: enough for a start that failed, and it fits a screen.
const LOG_TAIL_LINES: usize = 20;

/// An existing folder, by its canonical path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes the folder where it is missing, and refuses one that holds anything else.
    pub(super) fn prepare(wanted: &Path) -> Result<Self, EmbeddedError> {
        fs::create_dir_all(wanted).map_err(EmbeddedError::io("create", wanted))?;
        let path = fs::canonicalize(wanted).map_err(EmbeddedError::io("open", wanted))?;
        let folder = Self(path);
        folder.refuse_foreign_entries()?;
        make_enterable(&folder.0)?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// Where `initdb` works before its result is renamed to `data`.
    pub(super) fn new_data(&self) -> PathBuf {
        self.0.join("data.new")
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    pub(super) fn password_file(&self) -> PathBuf {
        self.0.join("password")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.0.join("server.log")
    }

    pub(super) fn password(&self) -> Result<SecretString, EmbeddedError> {
        let file = self.password_file();
        let text = fs::read_to_string(&file).map_err(EmbeddedError::io("read", &file))?;
        Ok(text.trim_end().into())
    }

    /// The last lines of the server's log, for a message. Says so where there is none.
    pub(super) fn log_tail(&self) -> String {
        match fs::read(self.log()) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let lines: Vec<&str> = text.lines().collect();
                let tail = lines.len().saturating_sub(LOG_TAIL_LINES);
                lines.into_iter().skip(tail).collect::<Vec<_>>().join("\n")
            }
            Err(error) => format!("(no log: {error})"),
        }
    }

    fn refuse_foreign_entries(&self) -> Result<(), EmbeddedError> {
        let entries = fs::read_dir(&self.0).map_err(EmbeddedError::io("read", &self.0))?;
        for entry in entries {
            let name = entry
                .map_err(EmbeddedError::io("read", &self.0))?
                .file_name();
            if !ENTRIES.iter().any(|ours| name == *ours) {
                return Err(EmbeddedError::FolderNotOurs {
                    folder: self.0.clone(),
                    entry: name.into(),
                });
            }
        }
        Ok(())
    }
}

/// Lets the account that runs PostgreSQL pass through a folder of root's to its data. Passing is
/// all it may do: `password`, `data` and `server.log` have modes of their own.
pub(super) fn make_enterable(folder: &Path) -> Result<(), EmbeddedError> {
    if !geteuid().is_root() {
        return Ok(());
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o711)).map_err(EmbeddedError::io(
        "open to the account of PostgreSQL",
        folder,
    ))
}

/// Writes the names of a folder to disk, so that a rename survives a crash of the machine.
pub(super) fn sync_names(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_folder_that_holds_something_else_is_refused() {
        let parent = TempDir::new().unwrap();
        let folder = parent.path().join("postgres");

        Folder::prepare(&folder).unwrap();
        fs::write(folder.join("server.log"), "").unwrap();
        Folder::prepare(&folder).unwrap();
        fs::write(folder.join("thesis.tex"), "").unwrap();
        let error = Folder::prepare(&folder).unwrap_err();

        assert!(matches!(error, EmbeddedError::FolderNotOurs { entry, .. }
            if entry == Path::new("thesis.tex")));
    }

    #[test]
    fn the_tail_of_the_log_is_its_last_lines() {
        let parent = TempDir::new().unwrap();
        let folder = Folder::prepare(parent.path()).unwrap();
        let lines: Vec<String> = (0..100).map(|number| format!("line {number}")).collect();

        assert!(folder.log_tail().starts_with("(no log"));
        fs::write(folder.log(), lines.join("\n")).unwrap();

        assert_eq!(folder.log_tail(), lines[80..].join("\n"));
    }
}
