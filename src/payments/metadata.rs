//! A merchant's own notes on a payment: string → string, kept and given back, never looked into.

use std::collections::BTreeMap;

use super::{field_error::FieldFault, fields::Fields, text::TextRule};
use crate::idempotency::{
    document::{Value, sent},
    pointer::Pointer,
};

/// With names of 40 and values of 500 characters this stays inside the body limit for most texts,
/// and inside what the gateways that we know accept.
const MEMBERS_MAX: usize = 50;
const NAME: TextRule = TextRule::line(40);
const VALUE: TextRule = TextRule::line(500);

/// Reads the member `metadata`; empty where it was not sent or is refused.
pub fn metadata(fields: &mut Fields<'_>) -> BTreeMap<String, String> {
    let at = Pointer::Root.member("metadata");
    let mut metadata = BTreeMap::new();
    let members = match fields.sent("metadata") {
        None => return metadata,
        Some(Value::Object(members)) => members,
        Some(_) => {
            fields.refuse(
                &at,
                &FieldFault::WrongType {
                    expected: "an object",
                },
            );
            return metadata;
        }
    };
    if sent(members).count() > MEMBERS_MAX {
        fields.refuse(
            &at,
            &FieldFault::TooManyMembers {
                members_max: MEMBERS_MAX,
            },
        );
    }
    for (name, value) in sent(members) {
        let place = at.member(name);
        match (NAME.check(name), VALUE.read(value)) {
            (Ok(()), Ok(text)) => {
                metadata.insert(name.to_owned(), text);
            }
            (name, text) => {
                for fault in [name.err(), text.err()].into_iter().flatten() {
                    fields.refuse(&place, &fault);
                }
            }
        }
    }
    metadata
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::idempotency::document::Document;

    fn read(
        json: &serde_json::Value,
    ) -> Result<BTreeMap<String, String>, Vec<(String, &'static str)>> {
        let document = Document::from_json(&json!({ "metadata": json })).unwrap();
        let mut fields = Fields::of(&document);
        let metadata = metadata(&mut fields);
        let errors: Vec<_> = fields
            .finish()
            .into_iter()
            .map(|error| (error.pointer, error.code))
            .collect();
        if errors.is_empty() {
            Ok(metadata)
        } else {
            Err(errors)
        }
    }

    fn members(count: usize) -> serde_json::Value {
        (0..count)
            .map(|number| (format!("k{number}"), json!("v")))
            .collect()
    }

    #[test]
    fn strings_are_kept_and_null_members_count_as_not_sent() {
        let expected = BTreeMap::from([("a".to_owned(), "1".to_owned())]);

        assert_eq!(read(&json!({"a": "1", "b": null})), Ok(expected));
        assert_eq!(read(&json!({})), Ok(BTreeMap::new()));
        assert_eq!(read(&json!(null)), Ok(BTreeMap::new()));
    }

    #[test]
    fn limits_are_inclusive() {
        let (name, value) = ("n".repeat(40), "v".repeat(500));

        assert!(read(&members(50)).is_ok());
        assert_eq!(
            read(&members(51)),
            Err(vec![("/metadata".to_owned(), "too-many-members")])
        );
        assert!(read(&json!({ &*name: value })).is_ok());
        assert_eq!(
            read(&json!({ format!("{name}n"): "v" })),
            Err(vec![(format!("/metadata/{name}n"), "too-long")])
        );
        assert_eq!(
            read(&json!({ "a": format!("{value}v") })),
            Err(vec![("/metadata/a".to_owned(), "too-long")])
        );
    }

    #[test]
    fn what_is_no_text_is_refused_with_a_pointer_to_the_member() {
        for (json, pointer, code) in [
            (json!([]), "/metadata", "wrong-type"),
            (json!("a"), "/metadata", "wrong-type"),
            (json!({"a": 1}), "/metadata/a", "wrong-type"),
            (json!({"a": {"b": "c"}}), "/metadata/a", "wrong-type"),
            (json!({"a": ""}), "/metadata/a", "empty"),
            (json!({"": "a"}), "/metadata/", "empty"),
            (json!({"a": "b\n"}), "/metadata/a", "control-character"),
            (json!({"a\n": "b"}), "/metadata/a\n", "control-character"),
            (
                json!({"a": "4111111111111111"}),
                "/metadata/a",
                "card-number",
            ),
            (json!({"4111111111111111": "a"}), "/metadata", "card-number"),
        ] {
            assert_eq!(read(&json), Err(vec![(pointer.to_owned(), code)]), "{json}");
        }
    }
}
