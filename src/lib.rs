//! oncepay: one idempotency key moves money once, and every retry of it gets the same bytes.
//!
//! # Reading line
//!
//! One payment from socket to row, in seven files: `main.rs` → [`cli::serve`] → [`http::router`] →
//! [`http::payments`] → [`idempotency::run`] → [`payments::create`] → [`payments::store`].
//!
//! # Words
//!
//! One word per idea, in code, tables, JSON, metrics and logs.
//!
//! | word | meaning |
//! | --- | --- |
//! | *merchant* | the tenant, owner of all rows |
//! | *API key* | a merchant's credential |
//! | *idempotency key* | the client's name for one logical operation |
//! | *record* | the row of an idempotency key in `idempotency_keys` |
//! | *operation* | `payments.create`, …; the same string is span, metric label and column |
//! | *claim* | winning the right to execute |
//! | *lease* | how long the holder of a claim is trusted; renewed by heartbeat |
//! | *fence* | a number that grows with every take-over of a record and never resets |
//! | *gateway* | whoever moves the money |
//! | *gateway key* | the idempotency key that we send to the gateway |
//! | *outcome* | what the gateway did |
//! | *settle* | write the outcome, the event and the finished record in one transaction |
//! | *park* | let a record whose outcome is unknown rest until the next look |
//! | *release* | give a key back whose work certainly was not executed |
//! | *rescuer* | finishes what a dead or stuck owner left |
//! | *cleaner* | deletes expired records |
//! | *event* | a fact in the outbox |

pub mod app;
pub mod audit;
pub mod cli;
pub mod clock;
pub mod config;
pub mod crash;
pub mod db;
pub mod gateways;
pub mod http;
pub mod idempotency;
pub mod ids;
pub mod lifecycle;
pub mod merchants;
pub mod payments;
pub mod seeded;
pub mod telemetry;
pub mod worker;
