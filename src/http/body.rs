//! Strict JSON: the bytes of a body, read into the one [`Document`] that they can mean.
//!
//! Refuses what two readers could understand differently, or what PostgreSQL cannot store:
//! duplicate members, `\u0000`, surrogates without their other half, anything but an object at the
//! top. A gateway or a database that trips over such a text would do so *after* the charge.
//!
//! The lexing is `serde_json`'s. Values are taken as raw text, level by level, and read by their
//! first byte, so that a number is never a float on its way: what is not a plain integer stays as
//! it was written ([`Value::NotAnInteger`]) for validation to refuse with a pointer.

use std::{fmt, time::Duration};

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    prefer,
    problem::{Problem, ProblemKind},
};
use crate::idempotency::{
    document::{Document, Members, Value},
    pointer::Pointer,
};

/// How deep objects and arrays may nest, the body itself included.
///
/// Ours need two (metadata); the rest lets validation name the member that is wrong. Every level
/// is scanned once more, so this also bounds the work per byte.
pub const DEPTH_MAX: usize = 8;

/// A body that is not read any further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct Rejected {
    /// Where (RFC 6901); for a bad member name, the object around it.
    pub pointer: String,
    pub fault: Fault,
}

/// What is wrong with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the body is not UTF-8")]
    NotUtf8,
    #[error("the body is not JSON: unexpected input or end at line {line}, column {column}")]
    Malformed { line: usize, column: usize },
    #[error("the body is not a JSON object")]
    NotAnObject,
    #[error("the member is there twice")]
    DuplicateMember,
    #[error("a text holds the character U+0000")]
    NulCharacter,
    #[error("a text holds half of a surrogate pair")]
    LoneSurrogate,
    #[error("the body nests deeper than {DEPTH_MAX} levels")]
    NestedTooDeep,
}

impl Fault {
    /// Stable, kebab-case.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotUtf8 => "not-utf-8",
            Self::Malformed { .. } => "malformed",
            Self::NotAnObject => "not-an-object",
            Self::DuplicateMember => "duplicate-member",
            Self::NulCharacter => "nul-character",
            Self::LoneSurrogate => "lone-surrogate",
            Self::NestedTooDeep => "nested-too-deep",
        }
    }
}

impl Document {
    /// Reads a whole body. Here and not beside the type, because only HTTP sees bytes.
    pub fn parse(body: &[u8]) -> Result<Self, Rejected> {
        let root = Pointer::Root;
        let text = str::from_utf8(body).map_err(|_not_utf8| rejected(&root, Fault::NotUtf8))?;
        let raw = decode(text, &root)?;
        match value(raw, &root, DEPTH_MAX)? {
            Value::Object(members) => Ok(Self::new(members)),
            _ => Err(rejected(&root, Fault::NotAnObject)),
        }
    }
}

/// The document of a request, and for how long its client would wait.
#[derive(Clone, Debug)]
pub struct StrictBody {
    pub document: Document,
    pub wait: Option<Duration>,
}

impl<S: Send + Sync> FromRequest<S> for StrictBody {
    type Rejection = Problem;

    /// The content type first, then the bytes.
    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::new(
                ProblemKind::UnsupportedMediaType,
                "Send the body as Content-Type: application/json, in UTF-8 and not compressed.",
            ));
        }
        let wait = prefer::wait(request.headers());
        // Read whole before (`limits`), so this neither waits nor fails.
        let bytes = Bytes::from_request(request, state)
            .await
            .unwrap_or_default();
        Ok(Self {
            document: Document::parse(&bytes)?,
            wait,
        })
    }
}

/// `application/json`, whatever its parameters but another charset; not compressed, because a
/// small body could then be a large one.
fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (types.next(), types.next()) else {
        return false;
    };
    let Ok(value) = value.to_str() else {
        return false;
    };
    let mut parts = value.split(';').map(str::trim);
    let json = parts
        .next()
        .is_some_and(|media| media.eq_ignore_ascii_case("application/json"));
    let utf8 = parts
        .filter_map(|parameter| parameter.split_once('='))
        .filter(|(name, _)| name.eq_ignore_ascii_case("charset"))
        .all(|(_, charset)| charset.trim_matches('"').eq_ignore_ascii_case("utf-8"));
    json && utf8 && !headers.contains_key(header::CONTENT_ENCODING)
}

/// Reads one value. `raw` is well-formed, so that its first byte tells its type.
fn value(raw: &RawValue, at: &Pointer<'_>, levels: usize) -> Result<Value, Rejected> {
    match raw.get().as_bytes() {
        [b'{', ..] => object(raw, at, level_below(levels, at)?).map(Value::Object),
        [b'[', ..] => array(raw, at, level_below(levels, at)?).map(Value::Array),
        [b'"', ..] => string(raw, at).map(Value::String),
        [b'n', ..] => Ok(Value::Null),
        [b't', ..] => Ok(Value::Bool(true)),
        [b'f', ..] => Ok(Value::Bool(false)),
        _ => Ok(number(raw.get())),
    }
}

fn level_below(levels: usize, at: &Pointer<'_>) -> Result<usize, Rejected> {
    levels
        .checked_sub(1)
        .ok_or_else(|| rejected(at, Fault::NestedTooDeep))
}

fn object(raw: &RawValue, at: &Pointer<'_>, levels: usize) -> Result<Members, Rejected> {
    let RawMembers(raw_members) = decode(raw.get(), at)?;
    let mut members = Members::new();
    for (raw_name, raw_value) in raw_members {
        let name = string(raw_name, at)?;
        let place = at.member(&name);
        if members.contains_key(&name) {
            return Err(rejected(&place, Fault::DuplicateMember));
        }
        let value = value(raw_value, &place, levels)?;
        members.insert(name, value);
    }
    Ok(members)
}

fn array(raw: &RawValue, at: &Pointer<'_>, levels: usize) -> Result<Vec<Value>, Rejected> {
    let elements: Vec<&RawValue> = decode(raw.get(), at)?;
    elements
        .into_iter()
        .enumerate()
        .map(|(index, raw)| value(raw, &at.element(index), levels))
        .collect()
}

fn string(raw: &RawValue, at: &Pointer<'_>) -> Result<String, Rejected> {
    // The scan for raw text checks quotes, escapes and control characters and passes surrogates,
    // so that these are all that can still be wrong.
    let text: String =
        serde_json::from_str(raw.get()).map_err(|_surrogate| rejected(at, Fault::LoneSurrogate))?;
    if text.contains('\0') {
        return Err(rejected(at, Fault::NulCharacter));
    }
    Ok(text)
}

/// `-0` is refused with the rest: it is an integer to some readers and a float to others.
fn number(token: &str) -> Value {
    match token.parse() {
        Ok(integer) if token != "-0" => Value::Integer(integer),
        _ => Value::NotAnInteger(token.to_owned()),
    }
}

fn decode<'a, T: Deserialize<'a>>(text: &'a str, at: &Pointer<'_>) -> Result<T, Rejected> {
    serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        rejected(at, Fault::Malformed { line, column })
    })
}

fn rejected(at: &Pointer<'_>, fault: Fault) -> Rejected {
    Rejected {
        pointer: at.to_string(),
        fault,
    }
}

/// The members of one object in the order and as often as they were written: a map type would
/// already have dropped the duplicates.
struct RawMembers<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for RawMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RawMembersVisitor)
    }
}

struct RawMembersVisitor;

impl<'de> Visitor<'de> for RawMembersVisitor {
    type Value = RawMembers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(RawMembers(members))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(body: impl AsRef<[u8]>) -> (&'static str, String) {
        let rejected = Document::parse(body.as_ref()).unwrap_err();
        (rejected.fault.code(), rejected.pointer)
    }

    fn member(body: &str) -> Value {
        let document = Document::parse(body.as_bytes()).unwrap();
        document.members().get("a").unwrap().clone()
    }

    #[test]
    fn order_white_space_and_escapes_do_not_matter() {
        let one = Document::parse(r#"{"a":"é/😀","b":[1,{"x":null}],"c":true}"#.as_bytes());
        let other = Document::parse(
            b" {\t\"c\" : true,\r\n\"b\":[ 1 ,{\"\\u0078\":null} ],\"\\u0061\":\"\\u00e9\\/\\ud83d\\ude00\"}\n",
        );

        assert!(one.is_ok());
        assert_eq!(one, other);
    }

    #[test]
    fn what_is_not_one_json_object_is_refused() {
        for body in [
            "",
            " ",
            "{",
            "{}{}",
            "{},",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "{'a':1}",
            "{\"a\":01}",
            "{\"a\":+1}",
            "{\"a\":.5}",
            "{\"a\":1.}",
            "{\"a\":NaN}",
            "{\"a\":\"\t\"}",
            "{\"a\":\"\0\"}",
            "{\"a\":\"\\x\"}",
            "{\"a\":\"\\ud80\"}",
            "{\"a\":1}//",
            "\u{FEFF}{}",
            "nul",
            "{\"a\":tru}",
            "{1:1}",
            "[{]}",
        ] {
            assert_eq!(refused(body), ("malformed", String::new()), "{body:?}");
        }
        for body in ["[]", "\"a\"", "1", "1.5", "null", "true"] {
            assert_eq!(refused(body), ("not-an-object", String::new()), "{body}");
        }
        assert_eq!(refused(b"{\"a\":\"\xFF\"}"), ("not-utf-8", String::new()));
    }

    #[test]
    fn a_syntax_error_says_where_it_is() {
        let rejected = Document::parse(b"{\"a\": 1,\n  oops}").unwrap_err();

        assert_eq!(rejected.fault, Fault::Malformed { line: 2, column: 3 });
    }

    #[test]
    fn what_is_ambiguous_or_cannot_be_stored_is_refused_with_a_pointer() {
        for (body, code, pointer) in [
            (r#"{"a":1,"a":1}"#, "duplicate-member", "/a"),
            (r#"{"a":1,"\u0061":2}"#, "duplicate-member", "/a"),
            (
                r#"{"m":[{"x/y":1,"x/y":null}]}"#,
                "duplicate-member",
                "/m/0/x~1y",
            ),
            (
                r#"{"4111111111111111":1,"4111111111111111":1}"#,
                "duplicate-member",
                "",
            ),
            (r#"{"a":"x\u0000y"}"#, "nul-character", "/a"),
            (r#"{"m":{"x\u0000y":1}}"#, "nul-character", "/m"),
            (r#"{"a":["\ud800"]}"#, "lone-surrogate", "/a/0"),
            (r#"{"a":"\udc00"}"#, "lone-surrogate", "/a"),
            (r#"{"a":"\ud800\u0041"}"#, "lone-surrogate", "/a"),
            (r#"{"a":"\ud800x"}"#, "lone-surrogate", "/a"),
            (r#"{"\ud800":1}"#, "lone-surrogate", ""),
        ] {
            assert_eq!(refused(body), (code, pointer.to_owned()), "{body}");
        }
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |levels: usize| {
            let inner = levels - 1;
            format!("{{\"a\":{}{}}}", "[".repeat(inner), "]".repeat(inner))
        };

        assert!(Document::parse(nested(DEPTH_MAX).as_bytes()).is_ok());
        assert_eq!(refused(nested(DEPTH_MAX + 1)).0, "nested-too-deep");
        assert_eq!(refused(nested(30_000)).0, "nested-too-deep");
    }

    #[test]
    fn integers_are_exact_and_nothing_else_is_an_integer() {
        for integer in [0, -1, 9_007_199_254_740_993, i64::MAX, i64::MIN] {
            assert_eq!(
                member(&format!("{{\"a\":{integer}}}")),
                Value::Integer(integer)
            );
        }
        for token in [
            "-0",
            "1.0",
            "1e0",
            "1E2",
            "0.0",
            "-0.0",
            "9223372036854775808",
            "1e999",
        ] {
            let value = member(&format!("{{\"a\":{token}}}"));

            assert!(value == Value::NotAnInteger(token.to_owned()), "{token}");
        }
    }

    /// Any JSON value that a document can hold exactly.
    fn json() -> impl Strategy<Value = serde_json::Value> {
        let text = "[^\\u{0}]{0,8}";
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            text.prop_map(Into::into),
        ];
        leaf.prop_recursive(3, 16, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map(text, inner, 0..4)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    /// Whatever is read is read again as the same after it was stored.
    fn assert_error_or_stable(body: &[u8]) {
        if let Ok(document) = Document::parse(body) {
            let stored = document.to_json();
            let again = Document::parse(stored.to_string().as_bytes()).unwrap();
            assert_eq!(again.to_json(), stored);
        }
    }

    proptest! {
        #[test]
        fn any_json_is_read_as_it_was_written(json in json()) {
            let json = serde_json::json!({ "a": json });

            for body in [json.to_string(), format!("{json:#}")] {
                prop_assert_eq!(Document::parse(body.as_bytes()).ok(), Document::from_json(&json));
            }
        }

        #[test]
        fn any_bytes_are_an_error_or_a_document(body in prop::collection::vec(any::<u8>(), 0..64)) {
            assert_error_or_stable(&body);
        }

        #[test]
        fn any_near_json_is_an_error_or_a_document(
            body in r#"\{"a":[\[\]{}",:anul0-9eE.+\\u -]{0,16}\}"#,
        ) {
            assert_error_or_stable(body.as_bytes());
        }
    }
}
