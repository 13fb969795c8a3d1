//! What the server remembers: in memory for answers, in two files for its next start.
//!
//! The journal tells what happened. A second file beside it, `….memory`, tells what an answer
//! needs: keys with their answers, and objects. Both are only ever appended to. A step with an
//! effect appends its memory first and the effect's line second, each synced; the line decides:
//! a start takes a memory with an effect for true only if the journal has that effect. So nothing
//! is remembered that did not happen, and everything that happened is remembered, wherever the
//! process was killed.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::objects::{Intent, Refund};
use crate::gateways::sandbox::journal::{self, Call, Journal, Kind, Line};

/// Everything, as of now. Its user sees to it that nobody else uses it meanwhile.
#[derive(Debug)]
pub(super) struct Store {
    journal: Journal,
    memory: Journal,
    /// Keeps a second server off these files; the kernel lets go when the process ends.
    _lock: std::fs::File,
    keys: BTreeMap<String, Kept>,
    pub(super) intents: BTreeMap<String, Intent>,
    pub(super) refunds: BTreeMap<String, Refund>,
    /// How often each key was sent, for payment methods that misbehave at first.
    sends: BTreeMap<String, u32>,
    effects: Vec<Line>,
}

/// The first answer of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) fingerprint: String,
    pub(super) status: u16,
    pub(super) body: String,
    pub(super) at: DateTime<Utc>,
}

/// What one step changes: all of it or nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) key: Option<(String, Kept)>,
    pub(super) intent: Option<Intent>,
    pub(super) refund: Option<Refund>,
    pub(super) effect: Option<Line>,
    /// Every key so far is forgotten.
    #[serde(default)]
    pub(super) forget_keys: bool,
}

impl Store {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let beside = |extension: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(extension);
            name
        };
        let lock = std::fs::File::options()
            .create(true)
            .append(true)
            .open(beside(".lock"))?;
        lock.try_lock()?;
        let (journal, memory) = (Journal::open(path)?, Journal::open(beside(".memory"))?);
        journal.mend()?;
        memory.mend()?;
        let lines = journal::read(path)?;
        let mut store = Self {
            journal,
            memory,
            _lock: lock,
            keys: BTreeMap::new(),
            intents: BTreeMap::new(),
            refunds: BTreeMap::new(),
            sends: BTreeMap::new(),
            effects: Vec::new(),
        };
        store.restore(lines)?;
        Ok(store)
    }

    fn restore(&mut self, lines: Vec<Line>) -> io::Result<()> {
        let mut happened = BTreeSet::new();
        for line in lines {
            match line.kind {
                Kind::Request => self.count_send(&line),
                Kind::Effect => {
                    happened.insert(identity(&line));
                    self.effects.push(line);
                }
                Kind::Answer => {}
            }
        }
        let text = self.memory.text()?;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let record: Record = serde_json::from_slice(line)?;
            let effect = record.effect.as_ref();
            if effect.is_none_or(|effect| happened.contains(&identity(effect))) {
                self.apply(record);
            }
        }
        Ok(())
    }

    /// Puts a request into the journal, and on the disk.
    pub(super) fn arrived(&mut self, line: &Line) -> io::Result<()> {
        self.journal.append(line)?;
        self.count_send(line);
        self.journal.sync()
    }

    /// Puts an answer into the journal.
    pub(super) fn answered(&self, line: &Line) -> io::Result<()> {
        self.journal.append(line)
    }

    /// Does what `record` says.
    pub(super) fn commit(&mut self, record: Record) -> io::Result<()> {
        self.memory.append(&record)?;
        self.memory.sync()?;
        if let Some(effect) = &record.effect {
            self.journal.append(effect)?;
            self.journal.sync()?;
            self.effects.push(effect.clone());
        }
        self.apply(record);
        Ok(())
    }

    /// The first answer of a key that is not forgotten yet.
    pub(super) fn kept(&self, key: &str, now: DateTime<Utc>, window: Duration) -> Option<&Kept> {
        let window = TimeDelta::from_std(window).unwrap_or(TimeDelta::MAX);
        self.keys.get(key).filter(|kept| now - kept.at < window)
    }

    pub(super) fn sends(&self, key: &str) -> u32 {
        self.sends.get(key).copied().unwrap_or_default()
    }

    /// What was done, for one key or for all.
    pub(super) fn effects(&self, gateway_key: Option<&str>) -> Vec<Line> {
        let asked = |line: &&Line| gateway_key.is_none_or(|key| line.gateway_key == key);
        self.effects.iter().filter(asked).cloned().collect()
    }

    /// The place of the next object in lists.
    pub(super) fn next_number(&self) -> u64 {
        let made = self.intents.len().saturating_add(self.refunds.len());
        u64::try_from(made).unwrap_or(u64::MAX)
    }

    fn count_send(&mut self, line: &Line) {
        if line.call == Call::Authorize {
            let sends = self.sends.entry(line.gateway_key.clone()).or_default();
            *sends = sends.saturating_add(1);
        }
    }

    fn apply(&mut self, record: Record) {
        if record.forget_keys {
            self.keys.clear();
        }
        self.keys.extend(record.key);
        let intent = record.intent.map(|intent| (intent.id.clone(), intent));
        self.intents.extend(intent);
        let refund = record.refund.map(|refund| (refund.id.clone(), refund));
        self.refunds.extend(refund);
    }
}

/// An object is authorised, captured and canceled at most once each, and a refund is an object.
fn identity(effect: &Line) -> (Call, Option<String>) {
    (effect.call, effect.object_id.clone())
}
