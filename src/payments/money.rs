//! An amount and its currency, never apart. Integers only: minor units (ISO 4217 exponent).

use super::currency::Currency;

/// The largest amount of one payment, in minor units. Far above any card payment, and small
/// enough that a sum over millions of them fits an `i64`.
pub const AMOUNT_MAX: i64 = 1_000_000_000_000;

/// An amount of money: `1999` and `EUR` is 19.99 euros; `500` and `JPY` is 500 yen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money {
    pub amount_minor: i64,
    pub currency: Currency,
}
