//! Payments over HTTP.
