//! The judge: pure functions from evidence to breaches. Each is shown in its own tests what it must
//! find, because a checker that cannot go red proves nothing.

mod answers;
mod effects;
mod limits;
mod records;
#[cfg(test)]
mod sample;
mod stranger;

pub use self::limits::CARD_NUMBER;
use super::evidence::Evidence;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// I1 … I20.
    pub invariant: &'static str,
    pub order: Option<usize>,
    pub detail: String,
}

type Check = fn(&Evidence) -> Vec<Breach>;

const CHECKS: &[Check] = &[
    effects::at_most_one,
    effects::of_orders_only,
    effects::paid_for,
    effects::settled,
    effects::of_one_body,
    effects::never_after_the_window,
    answers::sensible,
    answers::never_failed_with_an_effect,
    answers::equal_for_ever,
    answers::to_one_body,
    answers::expired_only_after_a_day,
    records::fences_grow,
    records::finished_stays,
    records::claimed_before_the_call,
    records::answers_are_kept,
    records::nothing_is_left,
    limits::nothing_secret_is_logged,
    limits::bounded,
    stranger::merchants_are_isolated,
    stranger::audited,
];

/// Every check over everything that is known.
pub fn check(evidence: &Evidence) -> Vec<Breach> {
    CHECKS.iter().flat_map(|check| check(evidence)).collect()
}

fn breach(invariant: &'static str, order: usize, detail: impl Into<String>) -> Breach {
    Breach {
        invariant,
        order: Some(order),
        detail: detail.into(),
    }
}

/// Runs a check of one order over all.
fn each(evidence: &Evidence, check: impl Fn(&Evidence, usize) -> Option<Breach>) -> Vec<Breach> {
    (0..evidence.orders.len())
        .filter_map(|order| check(evidence, order))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{sample::paid, *};

    #[test]
    fn a_payment_as_it_should_be_breaks_nothing() {
        assert_eq!(check(&paid()), []);
    }
}
