//! The statements of the audit: each finds what should not be there, a thousand rows at most.
//!
//! All of them run in the audit's one snapshot, so `now()` is when it was taken.

mod charged;
mod events;
mod payments;
mod recorded;
mod records;

pub(super) use charged::{Charged, list_charged};
pub(super) use events::{event_without_payment, feed_has_gaps, payment_without_its_events};
pub(super) use payments::{
    amounts_out_of_bounds, payment_forgotten, payment_of_other_request, table_not_durable,
};
pub(super) use recorded::{Recorded, Sought, list_recorded};
pub(super) use records::{
    answer_contradicts_payment, answer_of_other_payment, gateway_key_shared, key_not_used,
    outcome_unknown_for_too_long, record_of_decided_payment, record_unattended,
    record_without_payment, released_with_payment,
};
