//! One binary: it links once, and all its tests share one PostgreSQL server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::float_arithmetic,
    unreachable_pub,
    reason = "helpers of tests panic; the lints spare functions marked as tests only"
)]

mod audit;
mod audit_gateway;
mod audit_gateway_list;
mod audit_gateway_meanwhile;
mod bodies;
mod chaos;
mod cleaning;
mod clock_skew;
mod clocks;
mod commands;
mod connections;
mod crash_matrix;
mod crashes;
mod durability;
mod embedded;
mod expiry;
mod failover;
mod feed;
mod key_header;
mod leases;
mod listing;
mod lost_commits;
mod merchants;
mod metrics;
mod migrations;
mod mismatch;
mod openapi;
mod outages;
mod outcomes;
mod partitions;
mod pending;
mod problems;
mod races;
mod reading;
mod readme;
mod recovery;
mod release;
mod replay;
mod rescuer;
mod reviews;
mod sandbox_server;
mod schema;
mod secrets;
mod seeded_bugs;
mod settings;
mod shutdown;
mod slow_clients;
mod states;
mod stripe_connection;
mod stripe_faults;
mod stripe_gateway;
mod stripe_look_ups;
mod stripe_nonsense;
mod stripe_payments;
mod support;
mod timezones;
mod two_services;
mod validation;
mod waiting;
