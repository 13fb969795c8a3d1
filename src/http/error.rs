//! From what the domain says to the problem that a client gets: one exhaustive match each, so that
//! a new variant does not compile until its problem is chosen.

#![deny(clippy::wildcard_enum_match_arm)]

use super::problem::{Problem, ProblemKind, ProblemMember};
use crate::{
    db::DbError,
    idempotency::{key::KeyError, run::RunError},
    payments::command::FieldError,
    telemetry::error_chain,
};

impl From<DbError> for Problem {
    /// For what only reads: nothing can have been executed.
    fn from(error: DbError) -> Self {
        tracing::error!(error = %error_chain(&error), "a read failed");
        Self::new(ProblemKind::ServiceUnavailable, "The database cannot be reached at the moment.")
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        match error {
            RunError::NotExecuted(_) => {
                tracing::error!(error = %error_chain(&error), "not executed");
                Self::new(
                    ProblemKind::ServiceUnavailable,
                    "Nothing was executed. Send the same request with the same key again.",
                )
            }
            RunError::OutcomeUnknown(_) => {
                tracing::error!(error = %error_chain(&error), "outcome unknown");
                Self::new(
                    ProblemKind::OutcomeUnknown,
                    "The request may have been executed. Send the same request with the same key \
                     again: it is executed at most once, and you get its answer.",
                )
            }
            RunError::Panicked => {
                tracing::error!("a request panicked after its claim");
                internal_error()
            }
        }
    }
}

/// A bug of ours. The same key is the safe way to find out what happened.
pub fn internal_error() -> Problem {
    Problem::new(
        ProblemKind::InternalError,
        "The request may have been executed. Send the same request with the same key again: it is \
         executed at most once, and you get its answer.",
    )
}

impl From<KeyError> for Problem {
    fn from(error: KeyError) -> Self {
        let kind = if error.is_missing() {
            ProblemKind::IdempotencyKeyMissing
        } else {
            ProblemKind::IdempotencyKeyInvalid
        };
        Self::new(kind, format!("{error}."))
    }
}

impl From<Vec<FieldError>> for Problem {
    fn from(errors: Vec<FieldError>) -> Self {
        let detail = match errors.len() {
            1 => "One member of the request is not valid.".to_owned(),
            count => format!("{count} members of the request are not valid."),
        };
        Self::new(ProblemKind::ValidationFailed, detail)
            .with_errors(errors.into_iter().map(ProblemMember::from).collect())
    }
}

impl From<FieldError> for ProblemMember {
    fn from(error: FieldError) -> Self {
        Self {
            pointer: error.pointer,
            code: error.code.to_owned(),
            message: error.message.to_owned(),
        }
    }
}
