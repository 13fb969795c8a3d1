//! What a client sent: the tree that is validated, fingerprinted and stored.
//!
//! Promises: two bodies that differ in member order, white space or escapes only are the same
//! document, and no number in it was ever rounded. A member that is null counts as not sent, in
//! the document itself and in every object inside it (D4): SDKs write unset members as null. An
//! element of an array that is null stays, because it moves its neighbours.
//!
//! Unicode is compared as it is: `é` in one and in two code points are different texts, because
//! to the gateway and to the payer's bank they are.

use std::{collections::BTreeMap, fmt};

/// The members of an object, sorted by the bytes of their names.
pub type Members = BTreeMap<String, Value>;

/// A JSON value without floating-point numbers.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    /// A number token that is not a plain integer (`1.0`, `1e0`, `-0`, beyond 64 bits), as it was
    /// written: validation refuses it, and nothing may turn it into a number before that.
    NotAnInteger(String),
    String(String),
    Array(Vec<Self>),
    Object(Members),
}

/// A JSON object that a client sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Document {
    members: Members,
}

impl Document {
    pub const fn new(members: Members) -> Self {
        Self { members }
    }

    /// All members, null or not.
    pub const fn members(&self) -> &Members {
        &self.members
    }

    /// The members that count as sent.
    pub fn sent(&self) -> impl Iterator<Item = (&str, &Value)> {
        sent(&self.members)
    }

    /// The members that were sent, for storage as `jsonb`; sorted, without nulls.
    pub fn to_json(&self) -> serde_json::Value {
        object_to_json(&self.members)
    }

    /// Reads a stored document back. `None` where it is no object, so never one of ours.
    pub fn from_json(stored: &serde_json::Value) -> Option<Self> {
        match Value::from_json(stored) {
            Value::Object(members) => Some(Self::new(members)),
            _ => None,
        }
    }
}

impl Value {
    fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Integer(value) => (*value).into(),
            // Only validated documents are stored, and in those there is none. Kept as text rather
            // than rounded, should that ever change.
            Self::NotAnInteger(text) | Self::String(text) => text.as_str().into(),
            Self::Array(elements) => elements.iter().map(Self::to_json).collect(),
            Self::Object(members) => object_to_json(members),
        }
    }

    fn from_json(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(*value),
            serde_json::Value::Number(number) => number
                .as_i64()
                .map_or_else(|| Self::NotAnInteger(number.to_string()), Self::Integer),
            serde_json::Value::String(text) => Self::String(text.clone()),
            serde_json::Value::Array(elements) => {
                Self::Array(elements.iter().map(Self::from_json).collect())
            }
            serde_json::Value::Object(members) => Self::Object(
                members
                    .iter()
                    .map(|(name, value)| (name.clone(), Self::from_json(value)))
                    .collect(),
            ),
        }
    }
}

/// The members that count as sent.
pub fn sent(members: &Members) -> impl Iterator<Item = (&str, &Value)> {
    members
        .iter()
        .filter(|(_, value)| **value != Value::Null)
        .map(|(name, value)| (name.as_str(), value))
}

fn object_to_json(members: &Members) -> serde_json::Value {
    sent(members)
        .map(|(name, value)| (name.to_owned(), value.to_json()))
        .collect()
}

/// Shows how much was sent and nothing of it: bodies never reach the logs (D11).
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({} members)", self.members.len())
    }
}

/// Shows the type and nothing of the value, for the same reason.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "Null",
            Self::Bool(_) => "Bool",
            Self::Integer(_) => "Integer",
            Self::NotAnInteger(_) => "NotAnInteger",
            Self::String(_) => "String",
            Self::Array(_) => "Array",
            Self::Object(_) => "Object",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(json: &serde_json::Value) -> Document {
        Document::from_json(json).unwrap()
    }

    #[test]
    fn stored_json_is_sorted_and_without_nulls() {
        let json = json!({"b": [null, {"x": null}], "a": {"z": 1, "y": null}, "n": null});

        let stored = document(&json).to_json().to_string();

        assert_eq!(stored, r#"{"a":{"z":1},"b":[null,{}]}"#);
    }

    #[test]
    fn what_was_stored_is_read_back_as_it_was() {
        let json = json!({"a": i64::MAX, "b": [true, "é", null, -1], "c": {"d": ""}});

        assert_eq!(document(&json).to_json(), json);
        assert_eq!(
            Document::from_json(&json!([1])),
            None,
            "no object, no document"
        );
    }

    #[test]
    fn numbers_beyond_64_bits_are_kept_apart_and_never_rounded() {
        let read = document(&json!({"a": u64::MAX}));

        assert_eq!(
            read.members().get("a"),
            Some(&Value::NotAnInteger("18446744073709551615".to_owned()))
        );
    }

    #[test]
    fn debug_shows_nothing_that_was_sent() {
        let read = document(&json!({"secret-name": "secret-value"}));

        let shown = format!("{read:?} {:?}", read.members().values().next());

        assert_eq!(shown, "Document(1 members) Some(String)");
    }
}
