//! Reads the members of a request one by one and collects everything that is wrong with them.
//!
//! Promises: every string and every member name of the request is checked for card numbers,
//! whether or not anybody reads it; a member that nobody read is refused; a member that is null
//! counts as not sent, also where its name is unknown, because SDKs write unset members as null.

use super::{
    card_number::looks_like_card_number,
    field_error::{FieldError, FieldFault},
};
use crate::idempotency::{
    document::{Document, Members, Value},
    pointer::Pointer,
};

/// How many errors one answer names. More than the members we know can have, and few enough that
/// a body full of unknown members gets an answer of its own size.
const ERRORS_MAX: usize = 128;

/// The members of one request, and the errors found so far.
#[derive(Debug)]
pub struct Fields<'a> {
    document: &'a Document,
    known: Vec<&'static str>,
    errors: Vec<FieldError>,
}

impl<'a> Fields<'a> {
    pub fn of(document: &'a Document) -> Self {
        let mut fields = Self {
            document,
            known: Vec::new(),
            errors: Vec::new(),
        };
        fields.refuse_card_numbers_in(document.members(), &Pointer::Root);
        fields
    }

    /// Reads a member; an error where it was not sent.
    pub fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&'a Value) -> Result<T, FieldFault>,
    ) -> Option<T> {
        if self.sent(name).is_none() {
            self.refuse(&Pointer::Root.member(name), &FieldFault::Required);
        }
        self.optional(name, read)
    }

    /// Reads a member that may be missing. `None` where it was not sent or is refused.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&'a Value) -> Result<T, FieldFault>,
    ) -> Option<T> {
        match read(self.sent(name)?) {
            Ok(value) => Some(value),
            Err(fault) => {
                self.refuse(&Pointer::Root.member(name), &fault);
                None
            }
        }
    }

    /// The value of a member, if it counts as sent; from here on the member is a known one.
    pub fn sent(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        let value = self.document.members().get(name)?;
        (*value != Value::Null).then_some(value)
    }

    /// Adds an error. The same error at the same place is said once: a card number that is read
    /// as a token breaks two rules and has one fault.
    pub fn refuse(&mut self, pointer: &Pointer<'_>, fault: &FieldFault) {
        let error = FieldError::new(pointer, fault);
        if self.errors.len() < ERRORS_MAX && !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// Refuses what nobody read, and gives all errors.
    pub fn finish(mut self) -> Vec<FieldError> {
        for (name, _) in self.document.sent() {
            if self.known.contains(&name) {
                continue;
            }
            // The pointer shows no card number, so that "unknown" would be said of the whole body.
            let fault = if looks_like_card_number(name) {
                FieldFault::CardNumber
            } else {
                FieldFault::UnknownMember
            };
            self.refuse(&Pointer::Root.member(name), &fault);
        }
        self.errors
    }

    fn refuse_card_numbers_in(&mut self, members: &Members, at: &Pointer<'_>) {
        for (name, value) in members {
            let place = at.member(name);
            if looks_like_card_number(name) {
                self.refuse(&place, &FieldFault::CardNumber);
            }
            self.refuse_card_number(value, &place);
        }
    }

    fn refuse_card_number(&mut self, value: &Value, at: &Pointer<'_>) {
        match value {
            Value::String(text) if looks_like_card_number(text) => {
                self.refuse(at, &FieldFault::CardNumber);
            }
            Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    self.refuse_card_number(element, &at.element(index));
                }
            }
            Value::Object(members) => self.refuse_card_numbers_in(members, at),
            Value::Null
            | Value::Bool(_)
            | Value::Integer(_)
            | Value::NotAnInteger(_)
            | Value::String(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn errors(json: &serde_json::Value) -> Vec<(String, &'static str)> {
        let document = Document::from_json(json).unwrap();
        let mut fields = Fields::of(&document);
        fields.required("a", |_| Ok(()));
        let errors = fields.finish();
        errors
            .into_iter()
            .map(|error| (error.pointer, error.code))
            .collect()
    }

    #[test]
    fn a_null_member_counts_as_not_sent_known_or_not() {
        assert_eq!(errors(&json!({"a": 1, "x": null})), []);
        assert_eq!(errors(&json!({"a": null})), [("/a".to_owned(), "required")]);
    }

    #[test]
    fn card_numbers_are_found_anywhere_and_never_shown() {
        let json = json!({
            "a": [{"b": "5555 5555 5555 4444"}],
            "4111111111111111": {"c": "4111-1111-1111-1111"},
            "d": {"378282246310005": null, "e": "378282246310005"},
        });

        let found = errors(&json);

        for expected in ["", "/a/0/b", "/d", "/d/e"] {
            assert!(
                found.contains(&(expected.to_owned(), "card-number")),
                "{expected}: {found:?}"
            );
        }
        assert_eq!(found.len(), 5, "and /d is unknown: {found:?}");
    }

    #[test]
    fn the_number_of_errors_is_bounded() {
        let json = (0..1_000)
            .map(|number| (format!("x{number}"), json!(1)))
            .collect();

        assert_eq!(errors(&json).len(), ERRORS_MAX);
    }
}
