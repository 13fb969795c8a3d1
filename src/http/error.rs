//! From what the domain says to the problem that a client gets: one exhaustive match each, so that
//! a new variant does not compile until its problem is chosen.

#![deny(clippy::wildcard_enum_match_arm)]

use axum::http::{HeaderValue, header};

use super::{
    body::Rejected,
    problem::{Problem, ProblemKind, ProblemMember},
};
use crate::{
    db::DbError,
    idempotency::{key::KeyError, run::RunError},
    merchants::AuthError,
    payments::field_error::FieldError,
    telemetry::error_chain,
};

impl From<DbError> for Problem {
    /// For what only reads: nothing can have been executed.
    fn from(error: DbError) -> Self {
        tracing::error!(error = %error_chain(&error), "a read failed");
        Self::new(
            ProblemKind::ServiceUnavailable,
            "The database cannot be reached at the moment.",
        )
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        match error {
            RunError::NotExecuted(_) => {
                tracing::error!(error = %error_chain(&error), "not executed");
                Self::new(
                    ProblemKind::ServiceUnavailable,
                    "This request executed nothing. Send it again with the same key: if an earlier \
                     one with this key was executed, you get its answer.",
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

/// Too many requests are under way; this one was not begun.
pub fn overloaded() -> Problem {
    Problem::new(
        ProblemKind::ServiceUnavailable,
        "Too many requests are under way. This request executed nothing.",
    )
}

/// A bug of ours. The same key is the safe way to find out what happened.
pub fn internal_error() -> Problem {
    Problem::new(
        ProblemKind::InternalError,
        "The request may have been executed. Send the same request with the same key again: it is \
         executed at most once, and you get its answer.",
    )
}

/// Nothing is at the path.
pub fn not_found() -> Problem {
    Problem::new(ProblemKind::NotFound, "There is nothing at this path.")
}

impl From<KeyError> for Problem {
    fn from(error: KeyError) -> Self {
        let kind = if error == KeyError::Missing {
            ProblemKind::IdempotencyKeyMissing
        } else {
            ProblemKind::IdempotencyKeyInvalid
        };
        let problem = Self::new(kind, format!("The idempotency key was refused: {error}."));
        if error == KeyError::Missing {
            // The IETF draft (section 2.7) asks for a link to the documentation of the key.
            let policy = HeaderValue::from_static("</v1/meta>; rel=\"describedby\"");
            return problem.with_header(header::LINK, policy);
        }
        problem.with_errors(vec![ProblemMember {
            pointer: "Idempotency-Key".to_owned(),
            code: error.code().to_owned(),
            message: error.to_string(),
        }])
    }
}

impl From<Rejected> for Problem {
    fn from(rejected: Rejected) -> Self {
        let member = ProblemMember {
            pointer: rejected.pointer,
            code: rejected.fault.code().to_owned(),
            message: rejected.fault.to_string(),
        };
        Self::new(ProblemKind::JsonMalformed, format!("{}.", member.message))
            .with_errors(vec![member])
    }
}

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Refused => unauthenticated(),
            AuthError::Database(error) => error.into(),
        }
    }
}

/// The same for a missing, an unknown and a revoked key: nothing is told about which exist.
pub fn unauthenticated() -> Problem {
    Problem::new(
        ProblemKind::Unauthenticated,
        "Send an API key as Authorization: Bearer sk_….",
    )
    .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
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
            message: error.message,
        }
    }
}
