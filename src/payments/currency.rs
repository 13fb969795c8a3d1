//! The currencies that can be paid in: active ISO 4217 codes whose exponent is known.

use std::fmt;

/// An active ISO 4217 currency.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency(iso_currency::Currency);

impl Currency {
    /// Reads an upper-case alphabetic code.
    pub fn from_code(code: &str) -> Option<Self> {
        iso_currency::Currency::from_code(code).map(Self)
    }

    pub fn code(self) -> &'static str {
        self.0.code()
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}
