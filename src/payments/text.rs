//! Free text in a request.

use super::{card_number::looks_like_card_number, field_error::FieldFault};
use crate::idempotency::document::Value;

/// Whether a text may have more than one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    One,
    /// Line feeds and tabs are allowed.
    Many,
}

/// The rule for one text: 1 to `chars_max` Unicode scalar values, no control characters.
///
/// Control characters (C0, DEL, C1) are refused because these texts end up in statements, CSV
/// exports and terminals. The empty string is refused because it looks like "not sent" to a
/// reader and is not.
#[derive(Clone, Copy, Debug)]
pub struct TextRule {
    pub chars_max: usize,
    pub lines: Lines,
}

impl TextRule {
    pub const fn line(chars_max: usize) -> Self {
        Self {
            chars_max,
            lines: Lines::One,
        }
    }

    pub const fn lines(chars_max: usize) -> Self {
        Self {
            chars_max,
            lines: Lines::Many,
        }
    }

    pub fn read(&self, value: &Value) -> Result<String, FieldFault> {
        let text = string(value)?;
        self.check(text)?;
        Ok(text.to_owned())
    }

    pub fn check(&self, text: &str) -> Result<(), FieldFault> {
        let chars_max = self.chars_max;
        if looks_like_card_number(text) {
            Err(FieldFault::CardNumber)
        } else if text.is_empty() {
            Err(FieldFault::Empty)
        } else if text.chars().nth(chars_max).is_some() {
            Err(FieldFault::TooLong { chars_max })
        } else if text.chars().any(|character| self.forbids(character)) {
            Err(FieldFault::ControlCharacter)
        } else {
            Ok(())
        }
    }

    fn forbids(&self, character: char) -> bool {
        match (self.lines, character) {
            (Lines::Many, '\n' | '\t') => false,
            _ => character.is_control(),
        }
    }
}

/// The text itself, by no rule yet.
pub fn string(value: &Value) -> Result<&str, FieldFault> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(FieldFault::WrongType {
            expected: "a string",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_counted_in_characters() {
        let rule = TextRule::line(3);

        assert_eq!(rule.check("é😀x"), Ok(()));
        assert_eq!(
            rule.check("abcd"),
            Err(FieldFault::TooLong { chars_max: 3 })
        );
        assert_eq!(rule.check(""), Err(FieldFault::Empty));
    }

    #[test]
    fn control_characters_are_refused_but_line_feed_and_tab_in_many_lines() {
        for (text, one, many) in [
            ("a b", true, true),
            ("a\nb\tc", false, true),
            ("a\r\nb", false, false),
            ("\u{1B}[31m", false, false),
            ("a\u{7F}", false, false),
            ("a\u{85}", false, false),
        ] {
            assert_eq!(
                TextRule::line(9).check(text).is_ok(),
                one,
                "{text:?} in one line"
            );
            assert_eq!(
                TextRule::lines(9).check(text).is_ok(),
                many,
                "{text:?} in many lines"
            );
        }
    }
}
