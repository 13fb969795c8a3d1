//! What a failed step means for the money: that is all a caller needs to know.

use sqlx::postgres::PgDatabaseError;

use crate::telemetry::metrics::Retried;

/// A database step that gave no result.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// No connection could be had: the step was not sent, so nothing happened.
    #[error("the database cannot be reached")]
    Unreachable(#[source] sqlx::Error),
    /// The step was sent and no answer came: it may or may not have been committed.
    #[error("the database did not answer")]
    Unanswered(#[source] Option<sqlx::Error>),
    /// The server rolled the step back for others, again and again until the time was over.
    #[error("the database was too busy for the step")]
    Contended(#[source] sqlx::Error),
    /// The server refused the step and rolled it back; it would again.
    #[error("the database refused the step")]
    Refused(#[source] sqlx::Error),
}

impl DbError {
    /// The name of the constraint that refused, if it was one.
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Self::Refused(sqlx::Error::Database(error)) => error.constraint(),
            Self::Refused(_) | Self::Contended(_) | Self::Unreachable(_) | Self::Unanswered(_) => {
                None
            }
        }
    }
}

/// How a failed statement is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Rolled back because of others; the same step may succeed at once.
    Contention,
    /// Rolled back; repeating it would end the same way.
    Refusal,
    /// The connection or the server went away under the statement.
    Silence,
}

/// Reads an error of a statement that was sent.
pub(super) fn classify(error: &sqlx::Error) -> Failure {
    let Some(code) = sqlstate(error) else {
        // Whatever is not the server's word is a lost answer.
        return Failure::Silence;
    };
    if contention(error).is_some() {
        return Failure::Contention;
    }
    // Class 57P: the server is going down, and says so to a session whose statement may have been
    // committed just before. Class 08: a connection exception, from a pooler between us.
    if code.starts_with("57P") || code.starts_with("08") {
        return Failure::Silence;
    }
    Failure::Refusal
}

/// Why the server rolled back for others: serialization, deadlock, or our own `lock_timeout`.
pub(super) fn contention(error: &sqlx::Error) -> Option<Retried> {
    match sqlstate(error)? {
        "40001" => Some(Retried::SerializationFailure),
        "40P01" => Some(Retried::DeadlockDetected),
        "55P03" => Some(Retried::LockNotAvailable),
        _ => None,
    }
}

/// The SQLSTATE of an error that the server sent.
fn sqlstate(error: &sqlx::Error) -> Option<&str> {
    match error {
        sqlx::Error::Database(error) => error
            .try_downcast_ref::<PgDatabaseError>()
            .map(PgDatabaseError::code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_and_not_answered_is_silence() {
        for error in [
            sqlx::Error::Io(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
            sqlx::Error::Protocol("unexpected end".to_owned()),
            sqlx::Error::WorkerCrashed,
            sqlx::Error::PoolClosed,
        ] {
            assert_eq!(classify(&error), Failure::Silence, "{error}");
        }
    }
}
