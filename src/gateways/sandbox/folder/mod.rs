//! The sandbox's memory on disk, shared by processes that may die at any line.
//!
//! ```text
//! lock              held (exclusively, by the kernel) during every step; a dead holder lets go
//! keys/NAME.json    one per gateway key: the request, the state, the money
//! intent.json       what the step under way is about to change; normally absent
//! journal.ndjson    the effects, and around them requests and answers
//! ```
//!
//! A step with an effect goes through four writes, in this order:
//!
//! 1. the intent: the effect's line and all entries as they will be (synced);
//! 2. the line in the journal (synced): from here on the effect has happened;
//! 3. the entries, each written aside and put in its place whole (synced);
//! 4. the intent is removed.
//!
//! Whoever takes the lock next first looks for an intent. If the journal has its line, the entries
//! are written again, which changes nothing where they were; if not, the intent is dropped:
//! nothing happened and nobody was told. So an entry says *approved* if and only if the journal
//! has its line, and since an effect is only ever begun for an entry that is not approved, no key
//! gets a second line. Writing the key's file first and the journal after it would need a reader
//! to repair the journal; writing them in this order needs no reader to know.
//!
//! It promises this for processes that are killed. After a power failure it also relies on the
//! file system to keep the order of renames.

#[cfg(test)]
mod tests;

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    entry::Entry,
    journal::{self, Journal, Line},
    memory::Ledger,
    request::Name,
};

/// A sandbox folder.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    journal: Journal,
}

/// The folder while this process, and in it one step, has it to itself.
#[derive(Debug)]
pub(super) struct Locked<'a> {
    folder: &'a Folder,
    /// Closing the file lets the lock go. Each step opens its own, because the lock belongs to
    /// the opened file: two steps that shared one would both hold it.
    _lock: File,
}

/// What a step is about to change.
#[derive(Debug, Serialize, Deserialize)]
struct Intent {
    effect: Line,
    entries: Vec<(Name, Entry)>,
}

impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path.join("keys"))?;
        let folder = Self {
            path: path.to_owned(),
            journal: Journal::open(path.join(journal::FILE_NAME))?,
        };
        drop(folder.lock()?);
        Ok(folder)
    }

    /// Waits for the lock and finishes what its last holder left.
    pub(super) fn lock(&self) -> io::Result<Locked<'_>> {
        let lock = File::options()
            .create(true)
            .append(true)
            .open(self.path.join("lock"))?;
        lock.lock()?;
        self.recover()?;
        Ok(Locked {
            folder: self,
            _lock: lock,
        })
    }

    fn recover(&self) -> io::Result<()> {
        self.journal.mend()?;
        let text = match fs::read(self.intent_path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            text => text?,
        };
        // An intent that was cut short does not parse; its effect had not begun.
        if let Ok(intent) = serde_json::from_slice::<Intent>(&text)
            && self.journal.has_effect(&intent.effect.gateway_key)?
        {
            self.apply(&intent)?;
        }
        fs::remove_file(self.intent_path())
    }

    fn announce(&self, intent: &Intent) -> io::Result<()> {
        let mut file = File::create(self.intent_path())?;
        file.write_all(&serde_json::to_vec(intent)?)?;
        file.sync_data()
    }

    fn execute(&self, intent: &Intent) -> io::Result<()> {
        self.journal.append(&intent.effect)?;
        self.journal.sync()
    }

    fn apply(&self, intent: &Intent) -> io::Result<()> {
        intent
            .entries
            .iter()
            .try_for_each(|(name, entry)| self.write(name, entry))
    }

    /// Puts an entry in its place, whole. A new one is linked there, which fails if there is one
    /// already: where a file system ignores locks, a rival's key is not overwritten in silence.
    fn write(&self, name: &Name, entry: &Entry) -> io::Result<()> {
        let aside = self.path.join("keys").join("next");
        // Removed and not truncated: if its writer died after the link, it is the same file as
        // that writer's key, and truncating it would empty the key.
        remove_if_there(&aside)?;
        let mut file = File::create_new(&aside)?;
        file.write_all(&serde_json::to_vec(entry)?)?;
        file.sync_data()?;
        let place = self.key_path(name);
        if place.try_exists()? {
            fs::rename(&aside, &place)
        } else {
            fs::hard_link(&aside, &place)?;
            fs::remove_file(&aside)
        }
    }

    fn intent_path(&self) -> PathBuf {
        self.path.join("intent.json")
    }

    fn key_path(&self, name: &Name) -> PathBuf {
        self.path
            .join("keys")
            .join(format!("{}.json", name.as_str()))
    }
}

impl Ledger for Locked<'_> {
    fn entry(&self, name: &Name) -> io::Result<Option<Entry>> {
        match fs::read(self.folder.key_path(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            text => Ok(Some(serde_json::from_slice(&text?)?)),
        }
    }

    fn entries(&self) -> io::Result<Vec<(Name, Entry)>> {
        let mut entries = Vec::new();
        for file in fs::read_dir(self.folder.path.join("keys"))? {
            let path = file?.path();
            // `next` is what a writer that died has left.
            let name = path.file_name().and_then(Name::in_file_name);
            if let Some(name) = name {
                entries.push((name, serde_json::from_slice(&fs::read(path)?)?));
            }
        }
        Ok(entries)
    }

    fn keep(&mut self, name: &Name, entry: Entry) -> io::Result<()> {
        self.folder.write(name, &entry)
    }

    fn commit(&mut self, effect: Line, entries: Vec<(Name, Entry)>) -> io::Result<()> {
        let intent = Intent { effect, entries };
        self.folder.announce(&intent)?;
        self.folder.execute(&intent)?;
        self.folder.apply(&intent)?;
        fs::remove_file(self.folder.intent_path())
    }

    fn note(&mut self, line: &Line) -> io::Result<()> {
        self.folder.journal.append(line)
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
