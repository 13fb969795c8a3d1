//! The idempotency protocol.

pub mod acquire;
pub mod canonical;
pub mod cleaner;
pub mod decide;
pub mod difference;
pub mod document;
pub mod fingerprint;
pub mod finish;
pub mod gateway_key;
pub mod key;
pub mod lease;
pub mod operation;
pub mod perform;
pub mod pointer;
pub mod record;
pub mod run;
pub mod store;
