//! One binary: it links once, and all its tests share one PostgreSQL server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests panic; the lints spare functions marked as tests only"
)]

mod connections;
mod embedded;
mod model;
mod readme;
mod replay;
mod support;
