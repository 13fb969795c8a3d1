//! Payments.

pub mod card_number;
pub mod command;
pub mod create;
pub mod currency;
pub mod field_error;
pub mod fields;
pub mod metadata;
pub mod model;
pub mod money;
pub mod state;
pub mod store;
pub mod text;
