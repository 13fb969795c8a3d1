//! HTTP: the only place that knows status codes, headers and JSON.
//!
//! A request passes, each before the next: the connection's limits (`server`), the size and time
//! limits of its body (`limits`), authentication (`auth`), the idempotency key, the content type,
//! strict JSON (`body`), validation (`payments::command`), and then the guard
//! (`idempotency::run`). What fails before the guard is not remembered, so the corrected request
//! may use the same key.
//!
//! Errors are RFC 9457 problem documents from one catalogue (`problem`), chosen in one exhaustive
//! match (`error`).

pub mod answer;
pub mod auth;
pub mod body;
pub mod error;
pub mod first_bytes;
pub mod guarded;
pub mod health;
pub mod idempotency_key;
pub mod keys;
pub mod limits;
pub mod meta;
pub mod middleware;
pub mod openapi;
pub mod pagination;
pub mod path;
pub mod payments;
pub mod prefer;
pub mod problem;
pub mod query;
pub mod router;
pub mod server;
pub mod views;
