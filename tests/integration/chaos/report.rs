//! What a run has to show, and whether it proves anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    check::Breach,
    client::Pursued,
    evidence::Evidence,
    history::{End, Meaning},
    nemesis::{Deed, Deeds, Struck},
    story::story,
};

/// Fewer kinds of fault are no chaos.
const KINDS_MIN: usize = 5;

/// Fewer payments are no load, nor are fewer keys.
const PAYMENTS_MIN: usize = 200;
const KEYS_MIN: usize = 50;

/// What came of a seed.
#[derive(Debug)]
pub struct Report {
    pub seed: u64,
    pub took: Duration,
    pub struck: Struck,
    /// What the nemesis did, in the order of time.
    pub deeds: String,
    pub requests: usize,
    pub keys: usize,
    /// What clients wanted while faults went on, each with as many requests as it took.
    pub payments: usize,
    /// Those of them that wanted an answer and did not hang up.
    pub wanted: usize,
    /// Those of them that got one for good, before anything was healed.
    pub definite: usize,
    /// Answers 201.
    pub paid: usize,
    /// How often what was answered.
    pub answers: BTreeMap<String, usize>,
    pub breaches: Vec<Breach>,
    /// The whole story of each order that a breach is about.
    pub stories: String,
}

impl Report {
    pub fn new(
        seed: u64,
        took: Duration,
        deeds: Deeds,
        pursued: &[Pursued],
        (evidence, breaches): (&Evidence, Vec<Breach>),
    ) -> Self {
        let concerned: BTreeSet<usize> =
            breaches.iter().filter_map(|breach| breach.order).collect();
        let requests = &evidence.requests;
        let asked: BTreeSet<usize> = requests.iter().map(|request| request.order).collect();
        let answers = || requests.iter().filter_map(|request| request.answer());
        Self {
            seed,
            took,
            deeds: deeds.all.iter().map(deed).collect(),
            struck: deeds.struck,
            requests: requests.len(),
            keys: asked.len(),
            payments: pursued.len(),
            wanted: count(pursued, |it| it != Pursued::GivenUp),
            definite: count(pursued, |it| it == Pursued::Definite),
            paid: answers()
                .filter(|answer| answer.status == 201 && answer.meaning() == Meaning::Final)
                .count(),
            answers: requests
                .iter()
                .fold(BTreeMap::new(), |mut counts, request| {
                    *counts.entry(told(&request.end)).or_default() += 1;
                    counts
                }),
            stories: concerned
                .into_iter()
                .map(|order| story(evidence, order))
                .collect(),
            breaches,
        }
    }

    /// Why the run fails; nothing where it proves that promises were kept.
    pub fn failures(&self) -> Vec<String> {
        let mut failures: Vec<String> = self
            .breaches
            .iter()
            .map(|breach| format!("{}: {}", breach.invariant, breach.detail))
            .collect();
        if self.struck.len() < KINDS_MIN {
            failures.push(format!("only {} kinds of fault struck", self.struck.len()));
        }
        if self.payments < PAYMENTS_MIN || self.keys < KEYS_MIN {
            failures.push("too few payments or keys".to_owned());
        }
        if self.paid == 0 {
            failures.push("nothing was paid".to_owned());
        }
        if self.definite * 2 < self.wanted {
            failures.push(format!(
                "{} of {} payments got a definite answer",
                self.definite, self.wanted
            ));
        }
        failures
    }

    /// One line for a run.
    pub fn line(&self) -> String {
        let percent = (self.definite * 100)
            .checked_div(self.wanted)
            .unwrap_or_default();
        format!(
            "seed {:>4}: {:>4.1} s, {:>2} kinds of fault, {} payments on {} keys in \
             {:>3} requests, {percent:>2} % definite, {} breaches",
            self.seed,
            self.took.as_secs_f64(),
            self.struck.len(),
            self.payments,
            self.keys,
            self.requests,
            self.breaches.len(),
        )
    }

    /// Fails the test where the run does.
    pub fn assert_kept(&self) {
        let failures = self.failures();
        assert!(
            failures.is_empty(),
            "seed {}: {failures:#?}\n{}{}",
            self.seed,
            self.deeds,
            self.stories
        );
    }
}

fn deed(deed: &Deed) -> String {
    format!(
        "  {} to {} {}{}, {:?}, service {}\n",
        deed.from.format("%H:%M:%S%.3f"),
        deed.to.format("%S%.3f"),
        deed.step.fault.name(),
        if deed.has_struck { "" } else { " (in vain)" },
        deed.step.manner,
        deed.step.service,
    )
}

/// What a client was told, in a word.
fn told(end: &End) -> String {
    match end {
        End::HungUp => "hung up".to_owned(),
        End::Silent => "nothing".to_owned(),
        End::Answered(answer) => {
            let code = answer.code().unwrap_or_default();
            format!("{} {code}", answer.status)
        }
    }
}

fn count(pursued: &[Pursued], which: fn(Pursued) -> bool) -> usize {
    pursued.iter().filter(|it| which(**it)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::fault;

    fn convincing() -> Report {
        Report {
            seed: 1,
            took: Duration::ZERO,
            struck: fault::PROCESS.iter().map(|fault| (*fault, 1)).collect(),
            deeds: String::new(),
            requests: 400,
            payments: PAYMENTS_MIN,
            keys: KEYS_MIN,
            definite: 100,
            wanted: 200,
            paid: 1,
            answers: BTreeMap::new(),
            breaches: Vec::new(),
            stories: String::new(),
        }
    }

    #[test]
    fn a_run_that_proves_nothing_fails() {
        let unconvincing: [fn(&mut Report); 6] = [
            |report| report.struck.clear(),
            |report| report.payments -= 1,
            |report| report.keys -= 1,
            |report| report.paid = 0,
            |report| report.definite -= 1,
            |report| {
                report.breaches.push(Breach {
                    invariant: "I1",
                    order: None,
                    detail: String::new(),
                });
            },
        ];

        assert_eq!(convincing().failures(), [""; 0]);
        for spoil in unconvincing {
            let mut report = convincing();
            spoil(&mut report);

            assert_eq!(report.failures().len(), 1, "{report:?}");
        }
    }
}
