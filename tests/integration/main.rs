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

mod cleaning;
mod clocks;
mod commands;
mod connections;
mod durability;
mod embedded;
mod expiry;
mod feed;
mod leases;
mod metrics;
mod migrations;
mod outages;
mod outcomes;
mod races;
mod readme;
mod recovery;
mod release;
mod replay;
mod schema;
mod settings;
mod shutdown;
mod states;
mod support;
mod timezones;
