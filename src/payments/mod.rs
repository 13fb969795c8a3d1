//! Payments.

pub mod card_number;
pub mod create;
pub mod currency;
pub mod model;
pub mod money;
pub mod store;
