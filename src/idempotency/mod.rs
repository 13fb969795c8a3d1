//! The idempotency protocol: one key has at most one effect at the gateway, for ever, and every
//! retry of it is answered with the same bytes.
//!
//! ```text
//! claim    one statement, committed before the gateway hears anything:
//!          used key + record (processing, leased) + payment
//!            won  → perform
//!            lost → a second statement reads the record, and `decide` says what may be done:
//!                   expired 410 > other request 422 > replay > claim again > take over > 409 / 202
//! perform  no transaction is open: the gateway is called with the record's gateway key
//! settle   one statement, fenced: payment + event + record with the answer
//! ```
//!
//! What an owner leaves, by dying or by not knowing, is taken over with a higher fence: by the next
//! request under the key, or by the [`rescuer`], so that no record needs its client.
//!
//! # Who decides
//!
//! PostgreSQL decides who owns a record, by its primary key, and whether an owner still does, by
//! `fence` and `owner`. The clock of the database decides when a lease or an answer is over. A
//! process trusts itself no longer than [`lease`] says. The gateway decides what happened to the
//! money; where nobody knows, that is a state of the record and not a failure of the request.
//!
//! # Invariants
//!
//! 1. The claim is committed before the gateway is called.
//! 2. Every call for a record carries the same gateway key, a pure function of merchant, key,
//!    operation and step ([`gateway_key`]).
//! 3. Whoever is superseded writes nothing: every write of a holder names its fence and owner, and
//!    meeting no row is an answer (*the lease is lost*), not an error.
//! 4. A finished record does not change until it is deleted.
//! 5. A record is released only by an owner that got it by a claim and whose every send ended
//!    `NotExecuted`. A successor never releases: its predecessor may have sent.
//! 6. What may have been executed is never executed under another gateway key, and not sent again
//!    once the gateway may have forgotten the key.
//! 7. A key that was used stays used when its record is deleted.
//! 8. The work is not cancelled by the client that asked for it.
//!
//! # What it refuses
//!
//! It holds no transaction and no connection while it talks to the gateway, it guesses nothing
//! about a call that was not answered, and it has no timer that turns "not known" into "failed".

#![deny(
    clippy::as_conversions,
    clippy::expect_used,
    clippy::float_arithmetic,
    clippy::get_unwrap,
    clippy::indexing_slicing,
    clippy::let_underscore_must_use,
    clippy::map_err_ignore,
    clippy::panic,
    clippy::string_slice,
    clippy::todo,
    clippy::unimplemented,
    clippy::unused_result_ok,
    clippy::unwrap_in_result,
    clippy::unwrap_used
)]

pub mod acquire;
pub mod canonical;
pub mod cleaner;
pub mod decide;
pub mod difference;
pub mod document;
pub mod fingerprint;
pub mod finish;
pub mod gateway_key;
pub mod key;
pub mod lease;
pub mod operation;
pub mod perform;
pub mod pointer;
pub mod record;
pub mod rescuer;
pub mod run;
pub mod store;
pub mod waiting;
