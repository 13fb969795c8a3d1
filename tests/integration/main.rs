//! One binary: it links once, and all its tests share one PostgreSQL server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "helpers of tests panic; the lints spare functions marked as tests only"
)]

mod connections;
mod embedded;
mod readme;
mod replay;
mod sandbox_server;
mod stripe_connection;
mod stripe_faults;
mod stripe_gateway;
mod stripe_payments;
mod support;
