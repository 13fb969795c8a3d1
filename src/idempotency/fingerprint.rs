//! The name of one request: what makes two requests the same.
//!
//! It covers operation, path, query and the members that were sent, with what they say and not how
//! it was written. A default that is spelled out is another request than one that is left out, and
//! a member that a later release adds changes no old hash: nothing but what was sent goes in.

use std::fmt;

use super::{canonical::Canonical, document::Document, operation::Operation};

/// The version of every new fingerprint. It is stored beside the hash; hashes of different
/// versions say nothing about each other.
const VERSION: i16 = 1;

/// Begins every hash of version 1.
const PURPOSE: &str = "oncepay request v1";

/// The hash of a request, with the version of its recipe.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    pub version: i16,
    pub hash: [u8; 32],
}

impl Fingerprint {
    /// `path` and `query` are taken as they were sent; a query that is empty (`/x?`) is not the
    /// same as none.
    pub fn of(operation: Operation, path: &str, query: Option<&str>, document: &Document) -> Self {
        let mut canonical = Canonical::new(PURPOSE);
        canonical.text(operation.as_str());
        canonical.text(path);
        canonical.optional_text(query);
        canonical.members(document.members());
        Self {
            version: VERSION,
            hash: canonical.finish(),
        }
    }
}

/// The first digits only: the hash of a short body could be guessed back.
impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash = hex::encode(self.hash);
        write!(f, "Fingerprint(v{} {hash:.8})", self.version)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const PATH: &str = "/v1/payments";

    pub(in super::super) fn document(json: &serde_json::Value) -> Document {
        Document::from_json(json).unwrap()
    }

    fn fingerprint(json: &serde_json::Value) -> Fingerprint {
        Fingerprint::of(Operation::PaymentsCreate, PATH, None, &document(json))
    }

    /// Few names and few values, so that equal and nearly equal documents come up.
    pub(in super::super) fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Into::into),
            (-2_i64..3).prop_map(Into::into),
            "[a-c0-2]{0,2}".prop_map(Into::into),
        ];
        let value = leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Into::into),
                members(inner),
            ]
        });
        members(value)
    }

    fn members(
        value: impl Strategy<Value = serde_json::Value>,
    ) -> impl Strategy<Value = serde_json::Value> {
        prop::collection::btree_map("[a-c]{0,2}", value, 0..4)
            .prop_map(|members| members.into_iter().collect())
    }

    #[test]
    fn version_1_never_changes() {
        let json = json!({
            "amount": 1999, "currency": "EUR", "payment_method": "pm_card_visa", "reference": "é",
            "customer": null, "metadata": {"a": "", "b": null}, "other": [null, true, false, -1],
        });

        let plain = fingerprint(&json);
        let query = Fingerprint::of(
            Operation::PaymentsCreate,
            PATH,
            Some("a=1"),
            &document(&json),
        );

        assert_eq!(plain.version, 1);
        assert_eq!(
            hex::encode(plain.hash),
            "f9539d01ae04cf3eff5d67e650eab2992f60351ce92b7fac096ac7422096609b"
        );
        assert_eq!(
            hex::encode(query.hash),
            "53773f1219d34481dc343e7ccb13fe9c20aabf32dc98befa4f6e11555858e965"
        );
    }

    #[test]
    fn a_null_member_counts_as_not_sent_at_every_depth() {
        let absent = fingerprint(&json!({"amount": 1, "metadata": {}}));

        assert_eq!(
            fingerprint(&json!({"amount": 1, "metadata": {"a": null}, "x": null})),
            absent
        );
        assert_ne!(
            fingerprint(&json!({"amount": 1})),
            absent,
            "an empty object was sent"
        );
    }

    #[test]
    fn a_default_that_is_spelled_out_is_another_request() {
        let left_out = fingerprint(&json!({"amount": 1}));

        assert_ne!(
            fingerprint(&json!({"amount": 1, "capture_method": "automatic"})),
            left_out
        );
    }

    #[test]
    fn nothing_can_move_between_path_query_and_members() {
        let empty = document(&json!({}));
        let of = |path, query| Fingerprint::of(Operation::PaymentsCreate, path, query, &empty);
        let all = [
            of("/ab", None),
            of("/ab", Some("")),
            of("/a", Some("b")),
            of("/", Some("ab")),
            of("/a?b", None),
            fingerprint(&json!({"ab": "c"})),
            fingerprint(&json!({"a": "bc"})),
            fingerprint(&json!({"a": "b", "c": ""})),
            fingerprint(&json!({"a": ["b", "c"]})),
            fingerprint(&json!({"a": ["bc"]})),
            fingerprint(&json!({"a": 1})),
            fingerprint(&json!({"a": "1"})),
            fingerprint(&json!({"a": true})),
        ];

        let distinct = std::collections::HashSet::from(all);

        assert_eq!(distinct.len(), all.len(), "each is a request of its own");
    }

    #[test]
    fn debug_shows_no_whole_hash() {
        let shown = format!("{:?}", fingerprint(&json!({})));

        assert_eq!(shown.len(), "Fingerprint(v1 01234567)".len(), "{shown}");
    }

    proptest! {
        #[test]
        fn hashes_are_equal_exactly_if_the_sent_members_are(one in json(), other in json()) {
            let same = document(&one).to_json() == document(&other).to_json();

            prop_assert_eq!(fingerprint(&one) == fingerprint(&other), same);
            prop_assert_eq!(fingerprint(&one), fingerprint(&document(&one).to_json()));
        }
    }
}
