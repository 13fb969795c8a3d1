//! The idempotency protocol.

pub mod acquire;
pub mod cleaner;
pub mod decide;
pub mod document;
pub mod fingerprint;
pub mod finish;
pub mod key;
pub mod lease;
pub mod operation;
pub mod perform;
pub mod record;
pub mod run;
pub mod store;
