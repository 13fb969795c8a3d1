//! What clients do in a run: a pure function of the seed.

use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

use super::history::{Body, Order};

/// Orders of a run, each with a key.
pub const ORDERS: usize = 64;

/// Requests of a run before any is repeated.
pub const TRIES_MIN: usize = 240;

/// Merchants; they use the same keys, which are nothing to each other.
pub const MERCHANTS: usize = 2;

/// The time over which orders come up.
const SPREAD: Duration = Duration::from_millis(6_500);

/// Everything that clients want in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    pub orders: Vec<Order>,
    pub tries: Vec<Try>,
}

/// One client's attempt at an order; it repeats its request until that is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Try {
    pub at: Duration,
    pub order: usize,
    pub body: Body,
    pub service: usize,
    pub patience: Patience,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Waits for the answer and repeats the request as it is told to.
    Persistent,
    /// Asks the service to wait for another request under the key, and is persistent.
    Prefers,
    /// Hangs up after a while, and does not come back.
    HangsUp(Duration),
}

/// Payment methods and how many of a hundred orders have them.
const METHODS: &[(&str, u32)] = &[
    ("pm_card_visa", 46),
    ("pm_card_mastercard", 10),
    ("pm_card_declined", 5),
    ("pm_card_insufficient_funds", 3),
    ("pm_pending_then_succeeds", 4),
    ("pm_pending_then_fails", 3),
    ("pm_slow_250ms", 5),
    ("pm_slow_650ms", 6),
    ("pm_slow_2s", 3),
    ("pm_slow_after_charge_2s", 3),
    ("pm_timeout_before_charge", 3),
    ("pm_timeout_after_charge", 3),
    ("pm_error_after_charge", 2),
    ("pm_error_before_charge_2", 2),
    ("pm_error_before_charge_4", 1),
    ("pm_unknown", 1),
];

impl Workload {
    pub fn of(seed: u64) -> Self {
        // Another stream than the schedule's.
        let mut rng = StdRng::seed_from_u64(!seed);
        let orders: Vec<Order> = (0..ORDERS)
            .map(|number| order(seed, number, &mut rng))
            .collect();
        let mut tries: Vec<Try> = (0..ORDERS)
            .flat_map(|order| tries(order, &mut rng))
            .collect();
        while tries.len() < TRIES_MIN {
            let order = rng.random_range(0..ORDERS);
            tries.push(later(order, &mut rng));
        }
        tries.sort_by_key(|attempt| attempt.at);
        Self { orders, tries }
    }
}

fn order(seed: u64, number: usize, rng: &mut StdRng) -> Order {
    let currency = *["EUR", "USD", "JPY"].choose(rng).unwrap();
    // Neighbours share a key, as different merchants.
    Order {
        merchant: number % MERCHANTS,
        key: format!("chaos-{seed}-key-{:03}", number / MERCHANTS),
        amount: 1_000 + i64::try_from(number).unwrap(),
        currency,
        method: method(rng.random_range(0..100)).to_owned(),
        capture: if rng.random_bool(0.85) {
            "automatic"
        } else {
            "manual"
        },
    }
}

fn method(mut point: u32) -> &'static str {
    for (method, share) in METHODS {
        if point < *share {
            return method;
        }
        point -= share;
    }
    "pm_card_visa"
}

/// The first attempts at an order: one in four is a storm of duplicates at both services.
fn tries(order: usize, rng: &mut StdRng) -> Vec<Try> {
    let at = rng.random_range(Duration::ZERO..SPREAD);
    let storm = rng.random_bool(0.25);
    let count = if storm {
        rng.random_range(5..9)
    } else {
        rng.random_range(1..4)
    };
    let gap = if storm { 30 } else { 900 };
    (0..count)
        .map(|number| Try {
            at: at
                + Duration::from_millis(if number == 0 {
                    0
                } else {
                    rng.random_range(0..gap)
                }),
            order,
            body: if number > 0 && rng.random_bool(0.08) {
                Body::Other
            } else {
                Body::Own
            },
            service: rng.random_range(0..2),
            patience: patience(rng),
        })
        .collect()
}

/// Somebody comes back to an order at any time.
fn later(order: usize, rng: &mut StdRng) -> Try {
    Try {
        at: rng.random_range(Duration::ZERO..SPREAD),
        order,
        body: Body::Own,
        service: rng.random_range(0..2),
        patience: patience(rng),
    }
}

fn patience(rng: &mut StdRng) -> Patience {
    match rng.random_range(0..20) {
        0 | 1 => Patience::HangsUp(Duration::from_millis(rng.random_range(1..200))),
        2 | 3 => Patience::Prefers,
        _ => Patience::Persistent,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_always_has_the_same_workload() {
        assert_eq!(Workload::of(7), Workload::of(7));
        assert_ne!(Workload::of(7), Workload::of(8));
    }

    #[test]
    fn every_seed_has_enough_requests_keys_duplicates_and_mismatches() {
        for seed in 0..100 {
            let Workload { orders, tries } = Workload::of(seed);

            let keys: BTreeSet<_> = orders
                .iter()
                .map(|order| (order.merchant, &order.key))
                .collect();
            assert!(tries.len() >= TRIES_MIN && keys.len() == ORDERS);
            assert!(tries.iter().any(|attempt| attempt.body == Body::Other));
            for order in 0..ORDERS {
                assert!(tries.iter().any(|attempt| attempt.order == order));
            }
        }
    }

    #[test]
    fn shares_of_methods_add_up() {
        let sum: u32 = METHODS.iter().map(|(_, share)| share).sum();

        assert_eq!(sum, 100);
    }
}
