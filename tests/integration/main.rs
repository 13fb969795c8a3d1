//! One binary: it links once, and all its tests share one PostgreSQL server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests panic; the lints spare functions marked as tests only"
)]

mod embedded;
