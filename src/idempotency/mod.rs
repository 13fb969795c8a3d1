//! The idempotency protocol.

pub mod canonical;
pub mod difference;
pub mod document;
pub mod fingerprint;
pub mod gateway_key;
pub mod key;
pub mod operation;
pub mod pointer;
pub mod run;
