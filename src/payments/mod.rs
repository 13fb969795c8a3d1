//! Payments: what is asked for, where it stands, and the rows that say so.
//!
//! ```text
//!                    ┌──────────────► succeeded
//!                    │                    ▲
//! processing ────────┼──► failed ◄────────┤
//!  ▲     │           │                    │
//!  │     └───────────┼──► requires_review ┤
//!  │                 │                    │
//!  └─ requires_capture ◄──────────────────┤
//!            │                            │
//!            └──────► canceled ◄──────────┘
//! ```
//!
//! It promises that a payment only goes along these edges ([`state`]), whatever writes it: each
//! UPDATE names the status and version that it expects, and a trigger refuses the rest. Terminal
//! states never regress. Money is an integer of minor units with its currency ([`money`]); there is
//! no float on its way. What a client sends is validated before a key is claimed ([`command`]), and
//! card data is refused wherever it stands ([`card_number`]).
//!
//! It knows no HTTP: how a payment is shown is handed in ([`create::Presenter`]).

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

pub mod card_number;
pub mod command;
pub mod create;
pub mod currency;
pub mod field_error;
pub mod fields;
pub mod metadata;
pub mod model;
pub mod money;
pub mod pending;
pub mod review;
pub mod state;
pub mod store;
pub mod text;
