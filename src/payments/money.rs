//! An amount and its currency, never apart. Integers only: minor units (ISO 4217 exponent).

use super::{currency::Currency, field_error::FieldFault};
use crate::idempotency::document::Value;

/// The smallest amount: a payment of nothing moves no money.
pub const AMOUNT_MIN: i64 = 1;

/// The largest amount of one payment, in minor units. Far above any card payment, and small
/// enough that a sum over millions of them fits an `i64`.
pub const AMOUNT_MAX: i64 = 1_000_000_000_000;

/// An amount of money: `1999` and `EUR` is 19.99 euros; `500` and `JPY` is 500 yen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money {
    pub amount_minor: i64,
    pub currency: Currency,
}

/// Reads an amount in minor units from a request.
pub fn read_amount(value: &Value) -> Result<i64, FieldFault> {
    match value {
        Value::Integer(amount) if (AMOUNT_MIN..=AMOUNT_MAX).contains(amount) => Ok(*amount),
        Value::Integer(_) => Err(FieldFault::OutOfRange {
            min: AMOUNT_MIN,
            max: AMOUNT_MAX,
        }),
        Value::NotAnInteger(_) => Err(FieldFault::NotAnInteger),
        _ => Err(FieldFault::WrongType {
            expected: "an integer, in minor units",
        }),
    }
}
