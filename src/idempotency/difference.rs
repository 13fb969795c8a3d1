//! What to tell a client whose key came back with another request.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{document::Document, pointer::Pointer};

/// Pointers to the members that were added, removed or changed since the record was made, sorted;
/// never their values, which may belong to somebody who is not the sender of this request.
///
/// Names the top-level member, or where both sides hold an object (`metadata`), the member inside.
/// Empty where the requests differ in operation, path or query only.
pub fn differing_members(stored: &Value, sent: &Document) -> Vec<String> {
    // A record that is no object is not one of ours; then everything that was sent is new.
    let stored = Document::from_json(stored).map(|stored| stored.to_json());
    let (empty, sent) = (Map::new(), sent.to_json());
    let stored = stored.as_ref().and_then(Value::as_object).unwrap_or(&empty);
    let sent = sent.as_object().unwrap_or(&empty);

    let mut pointers = BTreeSet::new();
    for name in names_of_differing(stored, sent) {
        let member = Pointer::Root.member(name);
        if let (Some(Value::Object(stored)), Some(Value::Object(sent))) =
            (stored.get(name), sent.get(name))
        {
            let inner = names_of_differing(stored, sent);
            pointers.extend(inner.map(|name| member.member(name).to_string()));
        } else {
            pointers.insert(member.to_string());
        }
    }
    pointers.into_iter().collect()
}

fn names_of_differing<'a>(
    stored: &'a Map<String, Value>,
    sent: &'a Map<String, Value>,
) -> impl Iterator<Item = &'a str> {
    let names: BTreeSet<_> = stored.keys().chain(sent.keys()).collect();
    names
        .into_iter()
        .filter(|name| stored.get(*name) != sent.get(*name))
        .map(String::as_str)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::idempotency::{
        fingerprint::{
            Fingerprint,
            tests::{document, json},
        },
        operation::Operation,
    };

    #[test]
    fn added_removed_and_changed_members_are_named() {
        let stored = json!({"amount": 1999, "currency": "EUR", "reference": "r", "customer": null});
        let sent =
            json!({"amount": 2999, "currency": "EUR", "reference": null, "description": "d"});

        assert_eq!(
            differing_members(&stored, &document(&sent)),
            ["/amount", "/description", "/reference"]
        );
    }

    #[test]
    fn inside_metadata_the_inner_member_is_named() {
        let stored = json!({"metadata": {"a": "1", "b": "2", "c/d": "3"}});
        let sent = json!({"metadata": {"a": "1", "b": "9", "e": "4"}});

        assert_eq!(
            differing_members(&stored, &document(&sent)),
            ["/metadata/b", "/metadata/c~1d", "/metadata/e"]
        );
    }

    #[test]
    fn metadata_that_was_added_or_changed_type_is_named_itself() {
        for stored in [
            json!({}),
            json!({"metadata": "text"}),
            json!([]),
            json!(null),
        ] {
            let sent = document(&json!({"metadata": {"a": "1"}}));

            assert_eq!(differing_members(&stored, &sent), ["/metadata"], "{stored}");
        }
    }

    proptest! {
        #[test]
        fn no_member_is_named_exactly_if_the_fingerprints_are_equal(one in json(), other in json()) {
            let of = |json| Fingerprint::of(Operation::PaymentsCreate, "/", None, &document(json));

            let named = differing_members(&one, &document(&other));

            prop_assert_eq!(named.is_empty(), of(&one) == of(&other));
        }
    }
}
