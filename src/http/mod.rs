//! HTTP: the only place that knows status codes, headers and JSON.

pub mod body;
pub mod payments;
pub mod router;
