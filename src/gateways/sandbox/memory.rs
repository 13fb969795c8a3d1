//! What the sandbox remembers by: a folder, or nothing but this process.

use std::{
    collections::BTreeMap,
    fmt, io,
    sync::{Arc, Mutex, PoisonError},
};

use super::{entry::Entry, folder::Folder, journal::Line, request::Name};

/// The memory while one step has it to itself.
pub(super) trait Ledger {
    fn entry(&self, name: &Name) -> io::Result<Option<Entry>>;

    /// All entries; an error where not enough is remembered of them to tell whose they are.
    fn entries(&self) -> io::Result<Vec<(Name, Entry)>>;

    /// Replaces one entry, without an effect.
    fn keep(&mut self, name: &Name, entry: Entry) -> io::Result<()>;

    /// Puts the effect into the journal and replaces the entries it changes: all of it or nothing.
    fn commit(&mut self, effect: Line, entries: Vec<(Name, Entry)>) -> io::Result<()>;

    /// Puts a request or an answer into the journal.
    fn note(&mut self, line: &Line) -> io::Result<()>;
}

/// Where the ledger is. Cloning shares it.
#[derive(Clone)]
pub(super) enum Memory {
    Folder {
        folder: Arc<Folder>,
        /// Taken before a blocking thread is, so that a thousand calls in flight wait as futures
        /// and not as threads. Between processes the folder's own lock decides.
        turn: Arc<tokio::sync::Mutex<()>>,
    },
    Map(Arc<Mutex<BTreeMap<Name, Entry>>>),
}

impl Memory {
    /// Runs `work` with the ledger to itself. A caller that is dropped before its turn comes has
    /// done nothing; after that, the work runs to its end without it.
    pub(super) async fn step<T, W>(&self, work: W) -> io::Result<T>
    where
        T: Send + 'static,
        W: FnOnce(&mut dyn Ledger) -> io::Result<T> + Send + 'static,
    {
        match self {
            Self::Folder { folder, turn } => {
                let turn = Arc::clone(turn).lock_owned().await;
                let folder = Arc::clone(folder);
                tokio::task::spawn_blocking(move || {
                    let done = folder.lock().and_then(|mut ledger| work(&mut ledger));
                    drop(turn);
                    done
                })
                .await
                .map_err(io::Error::other)?
            }
            // Each change of the map is one insert after the last fallible line, so what a panic
            // left behind is whole.
            Self::Map(map) => work(&mut *map.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

/// Not what is remembered: a benchmark's map has no place in a log.
impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { folder, .. } => fmt::Debug::fmt(folder, f),
            Self::Map(_) => f.write_str("Map"),
        }
    }
}

impl Ledger for BTreeMap<Name, Entry> {
    fn entry(&self, name: &Name) -> io::Result<Option<Entry>> {
        Ok(self.get(name).cloned())
    }

    fn entries(&self) -> io::Result<Vec<(Name, Entry)>> {
        let message = "a sandbox without a folder keeps no list; set SANDBOX_DIR";
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }

    fn keep(&mut self, name: &Name, mut entry: Entry) -> io::Result<()> {
        // The fingerprint decides; the request itself is for whoever reads a file.
        entry.request = None;
        self.insert(name.clone(), entry);
        Ok(())
    }

    fn commit(&mut self, _effect: Line, entries: Vec<(Name, Entry)>) -> io::Result<()> {
        for (name, entry) in entries {
            self.keep(&name, entry)?;
        }
        Ok(())
    }

    fn note(&mut self, _line: &Line) -> io::Result<()> {
        Ok(())
    }
}
