//! What the nemesis does in a run: a pure function of the seed.
//!
//! Faults are dealt from shuffled decks, one for each lane. A run takes the next few cards, and a
//! deck is shuffled anew when it is used up; so every fault comes up equally often over many
//! seeds, also the rare ones, and a run gets what no other near it gets. The lanes go on beside one
//! another: a gateway that hangs while PostgreSQL crashes is what is looked for.

use std::time::Duration;

use rand::{Rng, RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

use super::fault::{self, Fault};

/// A run in so many has a day pass at its end.
const DAY_EVERY: u64 = 4;

/// Everything that is planned for a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Each lane goes step by step, beside the others.
    pub lanes: Vec<Vec<Step>>,
    pub day: Day,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Day {
    Passes,
    Stays,
}

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The calm before it.
    pub after: Duration,
    pub fault: Fault,
    /// How long it lasts, or may wait for its moment.
    pub lasts: Duration,
    /// Which of the two services, where it is about one.
    pub service: usize,
    pub manner: Manner,
}

/// Many faults come in two forms: with an end that is gentle, or one that is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Gentle,
    Rough,
}

/// How many cards of a lane's deck a run gets, and how long they last in milliseconds.
struct Lane {
    salt: u64,
    deck: Vec<Fault>,
    cards: usize,
    after: std::ops::Range<u64>,
    lasts: std::ops::Range<u64>,
}

fn lanes() -> [Lane; 4] {
    [
        Lane {
            salt: 1,
            deck: fault::PROCESS.to_vec(),
            cards: 2,
            after: 400..1_200,
            // Past the lease, for the process that is paused.
            lasts: 2_300..3_000,
        },
        Lane {
            salt: 2,
            deck: fault::network(),
            cards: 3,
            after: 500..1_200,
            lasts: 300..1_200,
        },
        Lane {
            salt: 3,
            deck: fault::statements(),
            cards: 4,
            after: 200..600,
            lasts: 1_500..2_000,
        },
        Lane {
            salt: 4,
            deck: fault::gateway(),
            cards: 5,
            after: 200..500,
            lasts: 1_300..1_600,
        },
    ]
}

impl Schedule {
    pub fn of(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        Self {
            lanes: lanes()
                .iter()
                .map(|lane| lane.steps(seed, &mut rng))
                .collect(),
            day: if seed % DAY_EVERY == DAY_EVERY - 1 {
                Day::Passes
            } else {
                Day::Stays
            },
        }
    }
}

impl Lane {
    fn steps(&self, seed: u64, rng: &mut StdRng) -> Vec<Step> {
        let cards = u64::try_from(self.cards).unwrap();
        (0..cards)
            .map(|card| Step {
                after: millis(rng, &self.after),
                fault: self.dealt(seed * cards + card),
                lasts: millis(rng, &self.lasts),
                service: rng.random_range(0..2),
                manner: if rng.random_bool(0.5) {
                    Manner::Rough
                } else {
                    Manner::Gentle
                },
            })
            .collect()
    }

    /// The card at a place of the endless row of decks.
    fn dealt(&self, place: u64) -> Fault {
        let size = u64::try_from(self.deck.len()).unwrap();
        let mut deck = self.deck.clone();
        let shuffle = (place / size) << 8 | self.salt;
        deck.shuffle(&mut StdRng::seed_from_u64(shuffle));
        deck[usize::try_from(place % size).unwrap()]
    }
}

fn millis(rng: &mut impl Rng, range: &std::ops::Range<u64>) -> Duration {
    Duration::from_millis(rng.random_range(range.clone()))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn a_seed_always_has_the_same_schedule() {
        assert_eq!(Schedule::of(7), Schedule::of(7));
        assert_ne!(Schedule::of(7), Schedule::of(8));
    }

    /// Not every fault that is asked for meets its moment; four times what is demanded is dealt.
    #[test]
    fn a_hundred_seeds_deal_every_fault_often_enough() {
        let mut dealt: BTreeMap<Fault, u32> = BTreeMap::new();
        for seed in 0..100 {
            let schedule = Schedule::of(seed);
            let faults = schedule.lanes.into_iter().flatten().map(|step| step.fault);
            for fault in faults.chain((schedule.day == Day::Passes).then_some(Fault::Day)) {
                *dealt.entry(fault).or_default() += 1;
            }
        }

        for fault in fault::all() {
            let times = dealt.get(&fault).copied().unwrap_or_default();
            assert!(times >= 20, "{} is dealt {times} times", fault.name());
        }
    }

    #[test]
    fn faults_have_names_of_their_own() {
        let names: BTreeSet<String> = fault::all().into_iter().map(Fault::name).collect();

        assert_eq!(names.len(), fault::all().len());
    }
}
