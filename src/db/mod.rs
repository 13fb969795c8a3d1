//! PostgreSQL: the pool and its guard, errors by constraint name, and a private server for
//! development and tests.

pub mod embedded;
pub mod migrations;
