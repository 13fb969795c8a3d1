//! Chaos: real processes, real faults, and a judge who was not there.
//!
//! A run is one seed. It starts a PostgreSQL of its own, durable as in production, one
//! `oncepay sandbox`, two `oncepay serve`, and puts a network that can fail between each pair
//! ([`cluster`]). Clients pay, many at once under one key ([`workload`]), while the nemesis kills,
//! stops, cuts and loses ([`nemesis`]). Then everything is healed, time passes for what rests, and
//! every order must come to a definite answer or in front of a person ([`heal`]). What was seen
//! ([`evidence`]) is held against I1–I20 by pure functions ([`check`]), each of which has been seen
//! to go red.
//!
//! The seed decides what is asked when, and which fault comes after which; it does not decide how
//! the machine interleaves them. So a seed that found something may have to be run a few times.
//!
//! A fault counts when it struck, and not when it was asked for. A run without faults, or without
//! payments, proves nothing and fails ([`report`]).
//!
//! ```text
//! cargo test chaos                                        the short run
//! ONCEPAY_CHAOS_SEED=7 cargo test chaos_again -- --ignored    one seed again
//! ONCEPAY_CHAOS_SEEDS=100 ONCEPAY_CHAOS_FIRST_SEED=0 ONCEPAY_CHAOS_JOBS=2 \
//!     cargo test long_chaos -- --ignored --nocapture      the long run
//! ```

mod check;
mod client;
mod cluster;
mod evidence;
mod fault;
mod heal;
mod history;
mod nemesis;
mod report;
mod run;
mod schedule;
mod story;
mod table;
mod tests;
mod watch;
mod workload;
