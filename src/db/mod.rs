//! PostgreSQL: connections that cannot be poisoned, steps that can be repeated, and errors that
//! say what is known.
//!
//! All work on the database is a [`Step`]: one statement, or one transaction, which may be run
//! again when the server rolled it back. [`Database::run`] is the only way to run one on a hot
//! path; it promises
//!
//! 1. that a connection on which something is unfinished is closed and never goes back to the
//!    pool, whoever drops the future;
//! 2. that a step the server refused for contention is repeated, bounded and jittered;
//! 3. that [`DbError`] tells *nothing was sent* from *it is not known what happened*.

pub mod embedded;
pub mod error;
pub mod migrations;
pub mod pool;
pub mod step;

pub use error::DbError;
pub use pool::Database;
pub use step::Step;
