//! One binary: it links once, and all its tests share one PostgreSQL server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_arithmetic,
    unreachable_pub,
    reason = "helpers of tests panic; the lints spare functions marked as tests only"
)]

mod bodies;
mod connections;
mod embedded;
mod key_header;
mod listing;
mod merchants;
mod mismatch;
mod openapi;
mod problems;
mod reading;
mod replay;
mod secrets;
mod slow_clients;
mod support;
mod validation;
mod waiting;
