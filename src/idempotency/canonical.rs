//! One encoding per value, hashed: what fingerprints and gateway keys are made of.
//!
//! No two different sequences of values share an encoding. Every text is preceded by its length
//! and every value by its type, so that nothing can move across a border: (`ab`, `c`) and (`a`,
//! `bc`) differ. Every use begins with a purpose that names itself and its version, so that a hash
//! made for one can never be taken for another.

use sha2::{Digest, Sha256};

use super::document::{Members, Value, sent};

/// A hash over values in their canonical encoding.
///
/// The encoding is pinned by the vectors in `fingerprint` and `gateway_key`. Hashes are stored,
/// and gateways remember keys: another encoding needs another purpose.
#[derive(Debug)]
pub struct Canonical(Sha256);

impl Canonical {
    pub fn new(purpose: &str) -> Self {
        let mut canonical = Self(Sha256::new());
        canonical.text(purpose);
        canonical
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.update(bytes);
    }

    pub fn optional_text(&mut self, text: Option<&str>) {
        match text {
            None => self.tag(b'-'),
            Some(text) => {
                self.tag(b'+');
                self.text(text);
            }
        }
    }

    /// The members that were sent, in the order of their names' bytes.
    pub fn members(&mut self, members: &Members) {
        self.length(sent(members).count());
        for (name, value) in sent(members) {
            self.text(name);
            self.value(value);
        }
    }

    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.tag(b'0'),
            Value::Bool(false) => self.tag(b'f'),
            Value::Bool(true) => self.tag(b't'),
            Value::Integer(integer) => {
                self.tag(b'i');
                self.0.update(integer.to_be_bytes());
            }
            Value::NotAnInteger(token) => {
                self.tag(b'n');
                self.text(token);
            }
            Value::String(text) => {
                self.tag(b's');
                self.text(text);
            }
            Value::Array(elements) => {
                self.tag(b'a');
                self.length(elements.len());
                for element in elements {
                    self.value(element);
                }
            }
            Value::Object(members) => {
                self.tag(b'o');
                self.members(members);
            }
        }
    }

    fn tag(&mut self, tag: u8) {
        self.0.update([tag]);
    }

    /// Eight bytes on every machine, whatever its `usize`.
    fn length(&mut self, length: usize) {
        // A length that does not fit 64 bits does not fit any memory.
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        self.0.update(length.to_be_bytes());
    }
}
