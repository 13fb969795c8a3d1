//! Every bug that can be seeded is noticed: the judge names the invariant that it breaks, and finds
//! nothing in the same scenario without the bug.

mod scenarios;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write as _},
    time::Instant,
};

use clap::ValueEnum as _;
use futures_util::{StreamExt as _, stream};
use oncepay::seeded::Bug;

use self::scenarios::{Scenario, play};
use crate::support::{
    database::TestDatabase,
    judge::{Verdict, judge},
    process::Process,
    race::{MANY_PROCESSES, in_a_thread, panicked},
    stage::name,
};

/// Where a bug shows, and which invariant it breaks.
const CAUGHT: &[(Bug, Scenario, &str)] = &[
    (Bug::NoFenceInSettle, Scenario::Superseded, "I9"),
    (Bug::RandomGatewayKey, Scenario::LostAnswer, "I1"),
    (Bug::CallBeforeClaim, Scenario::KilledBeforeClaim, "I10"),
    (Bug::LeaseNotRenewed, Scenario::SlowCall, "I8"),
    (Bug::OwnerPerProcess, Scenario::SlowCall, "I8"),
    (Bug::UnknownIsFailed, Scenario::LostAnswer, "I4"),
    (Bug::UnknownIsReleased, Scenario::LostAnswer, "I20"),
    (
        Bug::RefusedSuccessorReleases,
        Scenario::RefusedSuccessor,
        "I20",
    ),
    (Bug::SendAfterWindow, Scenario::ForgottenKey, "I1"),
    (Bug::NewKeyAtTakeOver, Scenario::LostAnswer, "I1"),
    (Bug::AnswerBeforeCommit, Scenario::KilledBeforeSettle, "I15"),
    (Bug::ReplayRebuilt, Scenario::Declined, "I5"),
    (Bug::MismatchIgnored, Scenario::OtherRequest, "I6"),
    (Bug::CleanerIgnoresStatus, Scenario::CleanedMeanwhile, "I12"),
    (Bug::UsedKeysDeleted, Scenario::ComesBack, "I12"),
    (Bug::AmountNotCompared, Scenario::WrongAmount, "I2"),
];

/// Most of a scenario is waiting for rests and leases.
const SCENARIOS_AT_ONCE: usize = 6;

/// A scenario, with a bug or without.
type Trial = (Scenario, Option<Bug>);

/// What the judge found, or how the scenario broke down; and after how many milliseconds.
type Judged = (Result<Vec<Verdict>, String>, u128);

/// D16: a checker that a bug does not turn red proves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_seeded_bug_is_noticed_and_nothing_is_without_it() {
    let _alone = MANY_PROCESSES.lock().await;
    let scenarios: BTreeSet<Scenario> = CAUGHT.iter().map(|(_, scenario, _)| *scenario).collect();
    let with = CAUGHT
        .iter()
        .map(|(bug, scenario, _)| (*scenario, Some(*bug)));
    let without = scenarios.iter().map(|scenario| (*scenario, None));
    let trials: Vec<Trial> = with.chain(without).collect();

    let judged: BTreeMap<String, Judged> = stream::iter(trials)
        .map(|(scenario, bug)| async move { (told(scenario, bug), try_out(scenario, bug).await) })
        .buffer_unordered(SCENARIOS_AT_ONCE)
        .collect()
        .await;

    say("| bug | caught by | invariant | all that is broken | without it | ms |");
    say("| --- | --- | --- | --- | --- | --- |");
    let mut wrong = Vec::new();
    for (bug, scenario, invariant) in CAUGHT {
        let (with, took) = &judged[&told(*scenario, Some(*bug))];
        let (without, _) = &judged[&told(*scenario, None)];
        let (found, clean) = (invariants(with), invariants(without));
        let row = format!(
            "| {} | {scenario:?} | {invariant} | {found} | {clean} | {took} |",
            name(*bug)
        );
        say(&row);
        let caught = found.split(' ').any(|found| found == *invariant);
        if !caught || clean != NOTHING {
            wrong.push(format!("{row}\nwith: {with:?}\nwithout: {without:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const NOTHING: &str = "nothing";

fn invariants(judged: &Result<Vec<Verdict>, String>) -> String {
    match judged {
        Err(_) => "broke down".to_owned(),
        Ok(verdicts) if verdicts.is_empty() => NOTHING.to_owned(),
        Ok(verdicts) => {
            let names: BTreeSet<&str> = verdicts.iter().map(|verdict| verdict.invariant).collect();
            names.into_iter().collect::<Vec<_>>().join(" ")
        }
    }
}

async fn try_out(scenario: Scenario, bug: Option<Bug>) -> Judged {
    let started = Instant::now();
    let evidence = in_a_thread(move || play(scenario, bug)).await;
    let judged = evidence.map(|evidence| judge(&evidence)).map_err(panicked);
    (judged, started.elapsed().as_millis())
}

/// A process that is asked for a bug that does not exist must not start.
#[tokio::test]
async fn a_bug_that_does_not_exist_stops_the_start() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let service = Process::builder(&database, folder.path());

    let (status, said) = service.env("SEEDED_BUG", "no-fence-in-setle").fail();

    assert!(!status.success(), "{said}");
    assert!(said.contains("no-fence-in-setle"), "{said}");
}

#[test]
fn every_bug_has_its_row() {
    let rows: BTreeSet<String> = CAUGHT.iter().map(|(bug, ..)| name(*bug)).collect();
    let bugs: BTreeSet<String> = Bug::value_variants().iter().map(|bug| name(*bug)).collect();

    assert_eq!(rows, bugs);
}

fn told(scenario: Scenario, bug: Option<Bug>) -> String {
    format!("{scenario:?} {bug:?}")
}

fn say(text: &str) {
    drop(writeln!(io::stderr(), "{text}"));
}
