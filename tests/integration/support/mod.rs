//! What tests stand on: a PostgreSQL server per run, a database per test, services in this process
//! or as processes of their own, a client, a scripted gateway, and a probe that only reads.

pub mod app;
pub mod audit;
pub mod buyer;
pub mod client;
pub mod command;
pub mod crash;
pub mod database;
pub mod faults;
pub mod gateway;
pub mod judge;
pub mod metrics;
pub mod network;
pub mod nonsense;
pub mod open_shop;
pub mod pair;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod race;
pub mod raw;
pub mod replicated_shop;
pub mod replication;
pub mod sandbox;
pub mod says;
pub mod shop;
pub mod stage;
pub mod standby;
pub mod stripe;
pub mod wait;
