//! What a failed step means for the money: that is all a caller needs to know.

use sqlx::postgres::PgDatabaseError;

/// A database step that gave no result.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// No connection could be had: the step was not sent, so nothing happened.
    #[error("the database cannot be reached")]
    Unreachable(#[source] sqlx::Error),
    /// The step was sent and no answer came: it may or may not have been committed.
    #[error("the database did not answer")]
    Unanswered(#[source] Option<sqlx::Error>),
    /// The server refused the step and rolled it back, again and again where that can help.
    #[error("the database refused the step")]
    Refused(#[source] sqlx::Error),
}

impl DbError {
    /// The name of the constraint that refused, if it was one.
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Self::Refused(sqlx::Error::Database(error)) => error.constraint(),
            Self::Refused(_) | Self::Unreachable(_) | Self::Unanswered(_) => None,
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
        return match error {
            // A step's own word that it met no row, and rolled back.
            sqlx::Error::RowNotFound => Failure::Refusal,
            // Whatever else is not the server's word is a lost answer.
            _ => Failure::Silence,
        };
    };
    match code {
        // serialization_failure, deadlock_detected, lock_not_available (our lock_timeout).
        "40001" | "40P01" | "55P03" => Failure::Contention,
        // Class 57P: the server is going down. It says so to a session whose statement may have
        // been committed just before. Class 08: a connection exception from a pooler between us.
        code if code.starts_with("57P") || code.starts_with("08") => Failure::Silence,
        _ => Failure::Refusal,
    }
}

/// The SQLSTATE of an error that the server sent.
pub(super) fn sqlstate(error: &sqlx::Error) -> Option<&str> {
    match error {
        sqlx::Error::Database(error) => {
            error.try_downcast_ref::<PgDatabaseError>().map(PgDatabaseError::code)
        }
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
