//! One server per folder at a time, by a file lock that the guardian holds for its life.
//!
//! The kernel lets the lock go when its holder dies, in whatever way, so nothing stale can block.

use std::{
    fs::{File, OpenOptions, TryLockError},
    os::unix::fs::OpenOptionsExt as _,
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{error::EmbeddedError, folder::Folder, postmaster};

/// The standard library's lock waits without a bound or not at all, so we ask again.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Waits until the folder is free, at most `patience`. Dropping the file gives the folder back.
pub(super) async fn acquire(folder: &Folder, patience: Duration) -> Result<File, EmbeddedError> {
    let path = folder.lock();
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(EmbeddedError::io("open", &path))?;
    let asked_at = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if asked_at.elapsed() < patience => {
                sleep(ASK_EVERY).await;
            }
            Err(TryLockError::WouldBlock) => return Err(in_use(folder, patience)),
            Err(TryLockError::Error(error)) => return Err(EmbeddedError::io("lock", &path)(error)),
        }
    }
}

pub(super) fn in_use(folder: &Folder, waited: Duration) -> EmbeddedError {
    EmbeddedError::InUse {
        folder: folder.path().to_owned(),
        postmaster_pid: postmaster::recorded_pid(&folder.data()),
        waited,
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[tokio::test]
    async fn a_folder_has_one_holder_until_it_lets_go() {
        let parent = TempDir::new().unwrap();
        let folder = Folder::prepare(parent.path()).unwrap();

        let held = acquire(&folder, Duration::ZERO).await.unwrap();
        let refused = acquire(&folder, Duration::ZERO).await.unwrap_err();
        assert!(matches!(refused, EmbeddedError::InUse { .. }), "{refused}");
        drop(held);
        acquire(&folder, Duration::ZERO).await.unwrap();
    }
}
