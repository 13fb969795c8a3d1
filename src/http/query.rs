//! Query parameters and path segments, read strictly: ours answer with a problem document.

use std::collections::BTreeMap;

use axum::{
    extract::FromRequestParts,
    http::{Uri, request::Parts},
};

use super::problem::{Problem, ProblemKind, ProblemMember};
use crate::payments::card_number::looks_like_card_number;

/// The parameters of a query, each at most once.
#[derive(Clone, Debug, Default)]
pub struct QueryMembers(BTreeMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for QueryMembers {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let mut members = BTreeMap::new();
        for (name, value) in pairs(&parts.uri)? {
            if value.contains('\0') {
                return Err(invalid(
                    &name,
                    "nul-character",
                    "must not hold the character U+0000",
                ));
            }
            if members.insert(name.clone(), value).is_some() {
                return Err(invalid(&name, "repeated", "is there twice"));
            }
        }
        Ok(Self(members))
    }
}

impl QueryMembers {
    /// Takes one parameter out and reads it.
    pub fn take<T>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.0.remove(name) else {
            return Ok(None);
        };
        match read(&value) {
            Some(value) => Ok(Some(value)),
            None => Err(invalid(name, "invalid", &format!("must be {expected}"))),
        }
    }

    /// Refuses parameters that nobody took: a filter that is misspelt must not list everything.
    pub fn finish(self) -> Result<(), Problem> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(invalid(
                name,
                "unknown-parameter",
                "is not a parameter here",
            )),
        }
    }
}

/// Refuses a card number among the names and values of a query, whether or not anybody reads it
/// (D4): queries end up in the logs of proxies, and filters in the statements of databases.
///
/// A path that holds one leads nowhere, and other headers than the key are neither kept nor logged;
/// they are not searched, because tracing headers carry long random numbers, of which some are card
/// numbers by all their rules.
pub fn refuse_card_numbers(uri: &Uri) -> Result<(), Problem> {
    let found = pairs(uri)?
        .iter()
        .any(|(name, value)| looks_like_card_number(name) || looks_like_card_number(value));
    if found {
        let message = "is a card number; card data must not be sent here";
        // Where it is a name it cannot be named.
        return Err(invalid("", "card-number", message));
    }
    Ok(())
}

#[expect(
    clippy::disallowed_types,
    reason = "decodes only; refusals are answered by us"
)]
fn pairs(uri: &Uri) -> Result<Vec<(String, String)>, Problem> {
    let pairs = axum::extract::Query::try_from_uri(uri)
        .map_err(|_malformed| invalid("", "malformed", "cannot be decoded"))?;
    Ok(pairs.0)
}

fn invalid(name: &str, code: &str, message: &str) -> Problem {
    // A name is what the client made up, so it is cut; a value is never repeated.
    let pointer: String = name
        .chars()
        .filter(|char| !char.is_control())
        .take(64)
        .collect();
    Problem::new(
        ProblemKind::QueryInvalid,
        format!("A query parameter {message}."),
    )
    .with_errors(vec![ProblemMember {
        pointer,
        code: code.to_owned(),
        message: message.to_owned(),
    }])
}
