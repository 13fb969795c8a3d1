//! The idempotency protocol.

pub mod fingerprint;
pub mod key;
pub mod run;
