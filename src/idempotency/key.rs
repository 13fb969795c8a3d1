//! The idempotency key, as a client may write it.
//!
//! Promises: the bare form and the quoted string of the IETF draft
//! (draft-ietf-httpapi-idempotency-key-header, RFC 9651 section 3.3.3) give the same key; keys are
//! compared as bytes, and no two of them differ by case folding, trimming or escapes only.
//!
//! Refuses: whatever another reader of the same header could understand as another key, and so pay
//! twice. A second header line, a comma list, parameters after a quoted key and escapes are errors,
//! never guesses; an empty value is an error, never "no key". A bare `a;b` is a key, because
//! without quotes the semicolon is just a character, and it equals `"a;b"`.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::payments::card_number::looks_like_card_number;

/// The longest key, in bytes: what other payment services accept, and one row of an index page.
pub const KEY_BYTES_MAX: usize = 255;

/// The client's name for one logical operation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(String);

/// Why a key cannot be used. No variant holds what the client sent: it could be a card number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("the request has no Idempotency-Key")]
    Missing,
    #[error("the Idempotency-Key header must be sent once")]
    Repeated,
    #[error("the key is empty")]
    Empty,
    #[error("the key is longer than {KEY_BYTES_MAX} bytes")]
    TooLong,
    #[error("the header holds a list; one key is expected")]
    List,
    #[error("the quotes around the key do not match")]
    MalformedQuoting,
    #[error("a quoted key takes no parameters")]
    Parameters,
    #[error("the key holds a space or a tab")]
    InnerSpace,
    #[error("the key holds a character that is not visible ASCII, or one of \" , \\")]
    ForbiddenCharacter,
    #[error("`.` and `..` cannot be addressed in a path")]
    DotSegment,
    #[error("the key is a card number; card data must not be sent here")]
    CardNumber,
}

impl KeyError {
    /// Stable, kebab-case. Only `missing` means that no key was sent at all.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Repeated => "repeated",
            Self::Empty => "empty",
            Self::TooLong => "too-long",
            Self::List => "list",
            Self::MalformedQuoting => "malformed-quoting",
            Self::Parameters => "parameters",
            Self::InnerSpace => "inner-space",
            Self::ForbiddenCharacter => "forbidden-character",
            Self::DotSegment => "dot-segment",
            Self::CardNumber => "card-number",
        }
    }
}

impl IdempotencyKey {
    /// Reads the values of all `Idempotency-Key` lines of one request.
    pub fn parse_header_values<'a>(
        values: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, KeyError> {
        let mut values = values.into_iter();
        let value = values.next().ok_or(KeyError::Missing)?;
        if values.next().is_some() {
            return Err(KeyError::Repeated);
        }
        Self::from_bytes(unquoted(trim_ows(value))?)
    }

    /// Reads a percent-decoded path segment: the key itself, without the header's quotes.
    pub fn from_path_segment(segment: &[u8]) -> Result<Self, KeyError> {
        Self::from_bytes(segment)
    }

    /// A key as a record holds it: it was validated, or made by us, before it was claimed.
    pub const fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What logs may show of a key (D11): enough to find the same key again.
    pub fn short_hash(&self) -> String {
        let hash = hex::encode(Sha256::digest(&self.0));
        hash.chars().take(8).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        match bytes {
            [] => return Err(KeyError::Empty),
            b"." | b".." => return Err(KeyError::DotSegment),
            _ if bytes.len() > KEY_BYTES_MAX => return Err(KeyError::TooLong),
            _ => {}
        }
        // The card number comes first: with spaces in it, it is no key either, but the client
        // should learn the weightier reason.
        let text = str::from_utf8(bytes).map_err(|_not_text| KeyError::ForbiddenCharacter)?;
        if looks_like_card_number(text) {
            return Err(KeyError::CardNumber);
        }
        match bytes.iter().find(|byte| !is_key_byte(**byte)) {
            None => Ok(Self(text.to_owned())),
            Some(b' ' | b'\t') => Err(KeyError::InnerSpace),
            Some(_) => Err(KeyError::ForbiddenCharacter),
        }
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdempotencyKey({})", self.short_hash())
    }
}

/// Visible ASCII without what a list or a quoted string gives a meaning to.
const fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b'\\')
}

/// Optional white space around a field value is no part of it (RFC 9110, section 5.5).
fn trim_ows(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// The key inside a header value, which is bare or one quoted string.
fn unquoted(value: &[u8]) -> Result<&[u8], KeyError> {
    match value {
        [b'"', quoted @ ..] => in_quotes(quoted),
        _ if value.contains(&b',') => Err(KeyError::List),
        _ if value.contains(&b'"') => Err(KeyError::MalformedQuoting),
        _ => Ok(value),
    }
}

/// The key before the closing quote, after which nothing may come.
fn in_quotes(quoted: &[u8]) -> Result<&[u8], KeyError> {
    // A backslash escapes a quote or a backslash, and neither may be in a key.
    if quoted.contains(&b'\\') {
        return Err(KeyError::ForbiddenCharacter);
    }
    let mut parts = quoted.splitn(2, |byte| *byte == b'"');
    let (Some(key), Some(rest)) = (parts.next(), parts.next()) else {
        return Err(KeyError::MalformedQuoting);
    };
    match trim_ows(rest) {
        [] => Ok(key),
        [b';', ..] => Err(KeyError::Parameters),
        [b',', ..] => Err(KeyError::List),
        _ => Err(KeyError::MalformedQuoting),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(value: impl AsRef<[u8]>) -> Result<String, KeyError> {
        IdempotencyKey::parse_header_values([value.as_ref()]).map(|key| key.0)
    }

    #[test]
    fn the_bare_and_the_quoted_form_are_the_same_key() {
        for (value, key) in [
            ("K", "K"),
            ("\"K\"", "K"),
            (" \tK\t ", "K"),
            (" \"K\" ", "K"),
            ("k", "k"),
            ("a;b", "a;b"),
            ("\"a;b\"", "a;b"),
            ("...", "..."),
            (
                "!#$%&'()*+-./:<=>?@[]^_`{|}~",
                "!#$%&'()*+-./:<=>?@[]^_`{|}~",
            ),
        ] {
            assert_eq!(parse(value), Ok(key.to_owned()), "{value}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        use KeyError as E;
        for (value, error) in [
            ("", E::Empty),
            ("   ", E::Empty),
            ("\t", E::Empty),
            ("\"\"", E::Empty),
            ("\"", E::MalformedQuoting),
            ("\"k", E::MalformedQuoting),
            ("k\"", E::MalformedQuoting),
            ("a\"b\"", E::MalformedQuoting),
            ("\"a\"b", E::MalformedQuoting),
            ("\"a\"\"b\"", E::MalformedQuoting),
            ("\"k\";a=1", E::Parameters),
            ("\"k\" ; a", E::Parameters),
            ("a,b", E::List),
            ("a, a", E::List),
            ("k,", E::List),
            (",", E::List),
            ("\"a\", \"b\"", E::List),
            ("\"a,b\"", E::ForbiddenCharacter),
            ("a b", E::InnerSpace),
            ("a\tb", E::InnerSpace),
            ("\" k\"", E::InnerSpace),
            ("a\\b", E::ForbiddenCharacter),
            ("\"a\\\"b\"", E::ForbiddenCharacter),
            ("a\0b", E::ForbiddenCharacter),
            ("a\u{7F}", E::ForbiddenCharacter),
            ("\u{E9}", E::ForbiddenCharacter),
            ("\u{1F4B6}", E::ForbiddenCharacter),
            (".", E::DotSegment),
            ("..", E::DotSegment),
            ("\"..\"", E::DotSegment),
        ] {
            assert_eq!(parse(value), Err(error), "{value:?}");
        }
        assert_eq!(parse(b"\xFFk"), Err(E::ForbiddenCharacter), "obs-text");
    }

    #[test]
    fn the_header_is_sent_exactly_once() {
        let parse =
            |values: &[&'static [u8]]| IdempotencyKey::parse_header_values(values.iter().copied());

        assert_eq!(parse(&[]), Err(KeyError::Missing));
        assert_eq!(parse(&[b"k", b"k"]), Err(KeyError::Repeated));
        assert_eq!(parse(&[b"k", b""]), Err(KeyError::Repeated));
    }

    #[test]
    fn a_key_has_at_most_255_bytes_quotes_not_counted() {
        let longest = "k".repeat(KEY_BYTES_MAX);

        assert_eq!(parse(&longest), Ok(longest.clone()));
        assert_eq!(parse(format!("\"{longest}\"")), Ok(longest.clone()));
        assert_eq!(parse(format!("{longest}k")), Err(KeyError::TooLong));
        assert_eq!(parse("k".repeat(1 << 20)), Err(KeyError::TooLong));
    }

    #[test]
    fn a_card_number_is_no_key_and_is_not_shown() {
        for value in [
            "4111111111111111",
            "4111-1111-1111-1111",
            "\"4111-1111-1111-1111\"",
            "4111 1111 1111 1111",
        ] {
            assert_eq!(parse(value), Err(KeyError::CardNumber), "{value}");
        }
        let shown = format!("{} {:?}", KeyError::CardNumber, KeyError::CardNumber);
        assert!(!shown.contains("4111"), "{shown}");
    }

    #[test]
    fn a_path_segment_is_the_key_without_quotes() {
        let key = IdempotencyKey::from_path_segment(b"a;b/c").unwrap();

        assert_eq!(key.as_str(), "a;b/c");
        for (segment, error) in [
            (&b"\"k\""[..], KeyError::ForbiddenCharacter),
            (b" k", KeyError::InnerSpace),
            (b"", KeyError::Empty),
            (b"..", KeyError::DotSegment),
        ] {
            assert_eq!(IdempotencyKey::from_path_segment(segment), Err(error));
        }
    }

    #[test]
    fn debug_shows_a_short_hash_and_never_the_key() {
        let key = IdempotencyKey::from_path_segment(b"abc").unwrap();

        assert_eq!(
            format!("{key:?}"),
            "IdempotencyKey(ba7816bf)",
            "FIPS 180-2, appendix B.1"
        );
    }

    proptest! {
        #[test]
        fn any_header_value_is_a_key_or_an_error(value in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(key) = parse(&value) {
                prop_assert!((1..=KEY_BYTES_MAX).contains(&key.len()));
                prop_assert!(key.bytes().all(is_key_byte));
                prop_assert_eq!(parse(format!("\"{key}\"")), Ok(key));
            }
        }
    }
}
