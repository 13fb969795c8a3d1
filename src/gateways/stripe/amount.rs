//! Amounts as Stripe counts them, which is not always in the minor unit of ISO 4217.
//!
//! Two currencies without a minor unit are counted in hundredths all the same (ISK, UGX), and one
//! with a minor unit is counted without it (MGA). Sent unchanged, 500 krónur would be charged as
//! 5, and 500 ariary as 50,000: so both directions go through this table.

use crate::payments::{currency::Currency, money::Money};

/// How much a unit of Stripe's is.
enum Unit {
    /// The ISO minor unit.
    Same,
    /// A hundredth of the ISO minor unit.
    Hundredth,
    /// A hundred ISO minor units.
    Hundred,
}

fn unit(currency: Currency) -> Unit {
    match currency.code() {
        "ISK" | "UGX" => Unit::Hundredth,
        "MGA" => Unit::Hundred,
        _ => Unit::Same,
    }
}

/// What is sent; nothing for an amount that Stripe cannot express.
pub(in crate::gateways) fn to_wire(money: Money) -> Option<i64> {
    let amount = money.amount_minor;
    match unit(money.currency) {
        Unit::Same => Some(amount),
        Unit::Hundredth => amount.checked_mul(100),
        Unit::Hundred => (amount % 100 == 0).then_some(amount / 100),
    }
}

/// ISO minor units; nothing for an amount that has none.
pub(in crate::gateways) fn from_wire(amount: i64, currency: Currency) -> Option<i64> {
    match unit(currency) {
        Unit::Same => Some(amount),
        Unit::Hundredth => (amount % 100 == 0).then_some(amount / 100),
        Unit::Hundred => amount.checked_mul(100),
    }
}

/// The code as Stripe writes it.
pub(in crate::gateways) fn currency_to_wire(currency: Currency) -> String {
    currency.code().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(amount_minor: i64, code: &str) -> Money {
        let currency = Currency::from_code(code).unwrap();
        Money {
            amount_minor,
            currency,
        }
    }

    #[test]
    fn an_amount_is_sent_in_stripes_unit_and_comes_back_the_same() {
        for (amount, code, wire) in [
            (1999, "EUR", 1999),
            (500, "JPY", 500),
            (12340, "KWD", 12340),
            (500, "ISK", 50_000),
            (500, "UGX", 50_000),
            (50_000, "MGA", 500),
        ] {
            let money = money(amount, code);

            assert_eq!(to_wire(money), Some(wire), "{amount} {code}");
            assert_eq!(from_wire(wire, money.currency), Some(amount), "{code}");
        }
    }

    #[test]
    fn what_cannot_be_expressed_is_nothing() {
        assert_eq!(to_wire(money(1999, "MGA")), None);
        assert_eq!(to_wire(money(i64::MAX, "ISK")), None);
        assert_eq!(from_wire(50, money(1, "ISK").currency), None);
        assert_eq!(from_wire(i64::MAX, money(1, "MGA").currency), None);
    }
}
