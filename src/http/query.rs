//! Query parameters and path segments, read strictly: ours answer with a problem document.

use std::collections::BTreeMap;

use axum::{extract::FromRequestParts, http::request::Parts};

use super::problem::{Problem, ProblemKind, ProblemMember};

/// The parameters of a query, each at most once.
#[derive(Clone, Debug, Default)]
pub struct QueryMembers(BTreeMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for QueryMembers {
    type Rejection = Problem;

    #[expect(
        clippy::disallowed_types,
        reason = "decodes only; refusals are answered by us"
    )]
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|_malformed| invalid("", "malformed", "the query cannot be decoded"))?;
        let mut members = BTreeMap::new();
        for (name, value) in pairs.0 {
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
