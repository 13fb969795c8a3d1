//! Logs, spans and metrics.
//!
//! Nothing sensitive gets in: no key, body, token or connection string as a field; idempotency keys
//! only as short hashes.

mod error_chain;
pub mod logs;
pub mod metrics;

pub use error_chain::error_chain;
