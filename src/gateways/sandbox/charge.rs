//! The money of one authorisation: what was authorised, taken and given back.
//!
//! It holds `refunded ≤ captured ≤ authorised`, one capture, and no capture after a cancel. What
//! would break that is refused with a stable code, and nothing changes.

use serde::{Deserialize, Serialize};

use super::{plan::Reason, request::Sum};

pub(super) const AMOUNT_INVALID: Reason =
    Reason::new("amount-invalid", "The amount must be at least 1.");
pub(super) const AUTHORIZATION_UNKNOWN: Reason =
    Reason::new("authorization-unknown", "There is no such authorisation.");
pub(super) const AUTHORIZATION_NOT_APPROVED: Reason = Reason::new(
    "authorization-not-approved",
    "The authorisation is not approved.",
);
pub(super) const AUTHORIZATION_CANCELED: Reason =
    Reason::new("authorization-canceled", "The authorisation was canceled.");
pub(super) const ALREADY_CAPTURED: Reason =
    Reason::new("already-captured", "It was captured before.");
const NOT_CAPTURED: Reason = Reason::new("not-captured", "It has not been captured.");
const AMOUNT_TOO_LARGE: Reason =
    Reason::new("amount-too-large", "That is more than there is left.");
const CURRENCY_DIFFERS: Reason =
    Reason::new("currency-differs", "It was authorised in another currency.");

/// Kept with the authorisation's gateway key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Charge {
    pub(super) authorized: Sum,
    pub(super) captured: i64,
    refunded: i64,
    pub(super) canceled: bool,
}

impl Charge {
    pub(super) const fn authorized(sum: Sum) -> Self {
        Self {
            authorized: sum,
            captured: 0,
            refunded: 0,
            canceled: false,
        }
    }

    /// Authorised and taken in one go.
    pub(super) const fn captured(sum: Sum) -> Self {
        let captured = sum.amount;
        let mut charge = Self::authorized(sum);
        charge.captured = captured;
        charge
    }

    pub(super) fn capture(&mut self, sum: &Sum) -> Result<(), Reason> {
        self.check(sum)?;
        self.check_uncaptured()?;
        if sum.amount > self.authorized.amount {
            return Err(AMOUNT_TOO_LARGE);
        }
        self.captured = sum.amount;
        Ok(())
    }

    pub(super) fn cancel(&mut self) -> Result<(), Reason> {
        self.check_uncaptured()?;
        self.canceled = true;
        Ok(())
    }

    pub(super) fn refund(&mut self, sum: &Sum) -> Result<(), Reason> {
        self.check(sum)?;
        if self.captured == 0 {
            return Err(NOT_CAPTURED);
        }
        // `refunded ≤ captured`, so the subtraction cannot wrap; comparing with the rest cannot
        // overflow either, whatever amount is asked for.
        if sum.amount > self.rest() {
            return Err(AMOUNT_TOO_LARGE);
        }
        self.refunded = self.refunded.saturating_add(sum.amount);
        Ok(())
    }

    /// What could still be given back.
    pub(super) const fn rest(&self) -> i64 {
        self.captured.saturating_sub(self.refunded)
    }

    fn check(&self, sum: &Sum) -> Result<(), Reason> {
        if sum.amount < 1 {
            Err(AMOUNT_INVALID)
        } else if sum.currency == self.authorized.currency {
            Ok(())
        } else {
            Err(CURRENCY_DIFFERS)
        }
    }

    const fn check_uncaptured(&self) -> Result<(), Reason> {
        if self.canceled {
            Err(AUTHORIZATION_CANCELED)
        } else if self.captured > 0 {
            Err(ALREADY_CAPTURED)
        } else {
            Ok(())
        }
    }
}
