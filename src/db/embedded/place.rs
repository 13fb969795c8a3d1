//! Chooses where the data lie: the wanted folder, or the system's own place for such data.
//!
//! Only root ever needs the second: the account that PostgreSQL then runs under may not be able to
//! enter a checkout below `/root`.

use std::{
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use super::{
    discovery::Programs,
    error::EmbeddedError,
    folder::{Folder, make_enterable},
    run_as::Account,
};

/// Where the system keeps data that programs write. macOS has no `/var/lib`.
const SYSTEM_PLACE: &str = if cfg!(target_os = "macos") {
    "/usr/local/var/oncepay"
} else {
    "/var/lib/oncepay"
};

/// How many bytes of the hash name a folder: 64 bits, as few checkouts share a machine.
const NAME_BYTES: usize = 8;

/// Whether the data lie where they were wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    Wanted,
    /// PostgreSQL's account cannot enter the wanted folder; whoever started us should be told.
    SystemPlace,
}

/// A folder, and the account that can work in it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) folder: Folder,
    pub(super) placement: Placement,
    pub(super) run_as: Option<Account>,
}

/// The same path gives the same place at every start, or data would seem to be lost.
pub(super) fn choose(wanted: &Path, programs: &Programs) -> Result<Place, EmbeddedError> {
    let folder = Folder::prepare(wanted)?;
    let Some(account) = Account::for_folder(&folder)? else {
        return Ok(Place {
            folder,
            placement: Placement::Wanted,
            run_as: None,
        });
    };
    if !can_run(account, programs, Path::new("/"))? {
        return Err(EmbeddedError::ProgramsForbidden {
            bin: programs.bin().to_owned(),
            uid: account.uid(),
        });
    }
    if can_run(account, programs, folder.path())? {
        return Ok(Place {
            folder,
            placement: Placement::Wanted,
            run_as: Some(account),
        });
    }
    in_system_place(folder.path(), account, programs)
}

fn in_system_place(
    wanted: &Path,
    account: Account,
    programs: &Programs,
) -> Result<Place, EmbeddedError> {
    let folder = Folder::prepare(&system_place(wanted))?;
    make_enterable(Path::new(SYSTEM_PLACE))?;
    let account = Account::for_folder(&folder)?.unwrap_or(account);
    if !can_run(account, programs, folder.path())? {
        return Err(EmbeddedError::FolderForbidden {
            folder: folder.path().to_owned(),
            uid: account.uid(),
        });
    }
    Ok(Place {
        folder,
        placement: Placement::SystemPlace,
        run_as: Some(account),
    })
}

fn system_place(wanted: &Path) -> PathBuf {
    let hash = Sha256::digest(wanted.as_os_str().as_bytes());
    let name: String = hex::encode(hash).chars().take(2 * NAME_BYTES).collect();
    Path::new(SYSTEM_PLACE).join(name)
}

fn can_run(account: Account, programs: &Programs, folder: &Path) -> Result<bool, EmbeddedError> {
    account
        .can_run_in(programs, folder)
        .map_err(EmbeddedError::io("run", &programs.postgres()))
}
