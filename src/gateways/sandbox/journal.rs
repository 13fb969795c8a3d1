//! The journal: one JSON object per line for every request, effect and answer.
//!
//! It is written by the gateway's side only, so it can convict the service: executions are counted
//! here. Lines are only ever appended, each as one write, and only by whoever holds the folder's
//! lock. A process that is killed inside that write can leave the start of a line behind (the
//! kernel may stop between two pages); the next writer cuts it off before it appends, and a reader
//! takes a line for written when its line feed is there. So no reader ever sees a torn line, and
//! a line that was seen stays.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::gateways::{self, GatewayKey};

/// The journal's name inside a sandbox folder.
pub const FILE_NAME: &str = "journal.ndjson";

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub at: DateTime<Utc>,
    pub kind: Kind,
    pub gateway_key: String,
    pub call: Call,
    pub amount: Option<i64>,
    pub currency: Option<String>,
    /// What the line is about: in a request the object it names, else the object that was made.
    pub object_id: Option<String>,
}

/// What a line tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A call arrived.
    Request,
    /// Money moved, or was held or let go. A decline is none.
    Effect,
    /// A call was answered. It is missing where the caller never got one.
    Answer,
}

/// [`gateways::Call`], and the look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    Authorize,
    Capture,
    Cancel,
    Refund,
    Find,
}

impl From<gateways::Call> for Call {
    fn from(call: gateways::Call) -> Self {
        match call {
            gateways::Call::Authorize => Self::Authorize,
            gateways::Call::Capture => Self::Capture,
            gateways::Call::Cancel => Self::Cancel,
            gateways::Call::Refund => Self::Refund,
        }
    }
}

/// Reads every line that is written to its end. A line that is not of the format is an error:
/// whoever counts effects must not skip one.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<Line>> {
    let text = fs::read(path)?;
    let written = text.get(..written_len(&text)).unwrap_or_default();
    written
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| serde_json::from_slice(line).map_err(io::Error::from))
        .collect()
}

/// How many effects each gateway key had. More than one is money moved twice.
pub fn effects(lines: &[Line]) -> BTreeMap<GatewayKey, usize> {
    let mut effects = BTreeMap::new();
    for line in lines.iter().filter(|line| line.kind == Kind::Effect) {
        *effects
            .entry(GatewayKey::new(line.gateway_key.as_str()))
            .or_default() += 1;
    }
    effects
}

/// The writing end. Its user sees to it that nobody else writes meanwhile.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

impl Journal {
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(path)?;
        Ok(Self { file })
    }

    /// Cuts off what a killed writer left of its line. Nobody was told of that line.
    pub fn mend(&self) -> io::Result<()> {
        let len = self.file.metadata()?.len();
        if len == 0 {
            return Ok(());
        }
        let mut last = [0];
        (&self.file).seek(SeekFrom::End(-1))?;
        (&self.file).read_exact(&mut last)?;
        if last == *b"\n" {
            return Ok(());
        }
        let text = self.text()?;
        let written = u64::try_from(written_len(&text)).map_err(io::Error::other)?;
        self.file.set_len(written)
    }

    /// Appends in one write. A write that falls short (disk full) is taken back.
    pub fn append(&self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let before = self.file.metadata()?.len();
        match (&self.file).write(&text) {
            Ok(written) if written == text.len() => Ok(()),
            Ok(_) => {
                self.file.set_len(before)?;
                Err(io::ErrorKind::WriteZero.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Waits until what was appended is on the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Whether `gateway_key` has its effect. Reads the whole file: only asked after a crash.
    pub fn has_effect(&self, gateway_key: &str) -> io::Result<bool> {
        let text = self.text()?;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let line: Line = serde_json::from_slice(line)?;
            if line.kind == Kind::Effect && line.gateway_key == gateway_key {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// All that is written.
    pub(super) fn text(&self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        (&self.file).seek(SeekFrom::Start(0))?;
        (&self.file).read_to_end(&mut text)?;
        Ok(text)
    }
}

/// How much of the text is whole lines.
fn written_len(text: &[u8]) -> usize {
    text.iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |line_feed| line_feed.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(gateway_key: &str, kind: Kind) -> Line {
        Line {
            at: DateTime::UNIX_EPOCH,
            kind,
            gateway_key: gateway_key.to_owned(),
            call: Call::Authorize,
            amount: Some(1999),
            currency: Some("EUR".to_owned()),
            object_id: None,
        }
    }

    #[test]
    fn a_line_has_the_agreed_members() {
        insta::assert_snapshot!(
            serde_json::to_string(&line("k", Kind::Effect)).unwrap(),
            @r#"{"at":"1970-01-01T00:00:00Z","kind":"effect","gateway_key":"k","call":"authorize","amount":1999,"currency":"EUR","object_id":null}"#
        );
    }

    #[test]
    fn effects_are_counted_per_gateway_key() {
        let lines = [
            line("a", Kind::Request),
            line("a", Kind::Effect),
            line("b", Kind::Effect),
            line("b", Kind::Effect),
            line("c", Kind::Answer),
        ];

        let effects = effects(&lines);

        assert_eq!(effects.get(&GatewayKey::new("a")), Some(&1));
        assert_eq!(effects.get(&GatewayKey::new("b")), Some(&2));
        assert_eq!(effects.len(), 2, "requests and answers are no effects");
    }

    #[test]
    fn a_line_cut_short_anywhere_is_never_read_and_the_next_one_is_whole() {
        let torn = serde_json::to_vec(&line("torn", Kind::Effect)).unwrap();
        for cut in 1..=torn.len() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(FILE_NAME);
            let journal = Journal::open(&path).unwrap();
            journal.append(&line("first", Kind::Effect)).unwrap();
            (&journal.file).write_all(&torn[..cut]).unwrap();
            assert_eq!(read(&path).unwrap(), [line("first", Kind::Effect)]);

            journal.mend().unwrap();
            journal.append(&line("next", Kind::Effect)).unwrap();

            let expected = [line("first", Kind::Effect), line("next", Kind::Effect)];
            assert_eq!(read(&path).unwrap(), expected, "cut at {cut}");
        }
    }

    #[test]
    fn a_line_of_another_format_is_an_error_and_not_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        fs::write(&path, "{}\n").unwrap();

        assert!(read(&path).is_err());
    }
}
