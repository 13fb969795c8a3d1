//! One binary: it links once, and all its tests share one PostgreSQL server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "helpers of tests panic; the lints spare functions marked as tests only"
)]

mod audit;
mod connections;
mod embedded;
mod pending;
mod readme;
mod replay;
mod rescuer;
mod reviews;
mod support;
