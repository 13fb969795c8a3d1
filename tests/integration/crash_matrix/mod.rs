//! The crash matrix: `kill -9` at every point of the protocol, under a fresh key, under one with a
//! history, and in a storm of duplicates.
//!
//! Each cell has a database, a gateway and services of its own, as processes. One service dies at
//! the point; another one and the clients' retries finish. In every cell: one effect, 201 for
//! everybody with the same bytes, one gateway key, nothing left in processing, a clean audit, and
//! all of that within a lease and two seconds of the death, plus what the successor takes to start.

mod cell;
mod table;

use std::{
    collections::BTreeSet,
    io::{self, Write as _},
    path::Path,
    time::Instant,
};

use futures_util::{StreamExt as _, stream};
use oncepay::crash::{Moment, STEPS};

use self::table::{Cell, MODES, ROWS};
pub(crate) use self::{
    cell::run,
    table::{Mode, Plan, Strike},
};
use crate::support::{
    judge::judge,
    race::{MANY_PROCESSES, in_a_thread, panicked},
};

/// Cells at a time. Most of them wait for a lease to run out.
const CELLS_AT_ONCE: usize = 6;

/// What came of a cell: how many milliseconds after the death everybody had the answer, or what is
/// wrong.
type Outcome = Result<u128, String>;

/// I1–I5, I8–I11, I15, I18, B10–B13, B76: whoever dies wherever, the key has one effect and one
/// answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_is_killed_at_any_point_leaves_one_effect_and_one_answer() {
    let _alone = MANY_PROCESSES.lock().await;
    let started = Instant::now();
    let cells = cells();
    let runs = cells
        .iter()
        .filter_map(|(place, cell)| Some((*place, (*cell).ok()?)));
    let outcomes: Vec<_> = stream::iter(runs.collect::<Vec<_>>())
        .map(|(place, plan)| async move { (place, outcome(place, plan).await) })
        .buffer_unordered(CELLS_AT_ONCE)
        .collect()
        .await;

    let told = |place| outcomes.iter().find(|(at, _)| *at == place);
    print(&cells, |place| {
        told(place).map(|(_, outcome)| outcome.clone())
    });
    let took = started.elapsed();
    say(&format!("{} cells in {} s", outcomes.len(), took.as_secs()));
    let wrong: Vec<_> = outcomes
        .iter()
        .filter_map(|(place, outcome)| Some((place, outcome.as_ref().err()?)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A row's strike, and a mode.
type Place = (Strike, Mode);

fn cells() -> Vec<(Place, Cell)> {
    let mut cells = Vec::new();
    for row in ROWS {
        for strike in row.strikes {
            for (mode, cell) in MODES.into_iter().zip(row.cells) {
                cells.push(((*strike, mode), cell));
            }
        }
    }
    cells
}

/// In a thread of its own, so that a cell that panics is a cell that is wrong.
async fn outcome((strike, mode): Place, plan: Plan) -> Outcome {
    let cell = in_a_thread(move || run(strike, mode, plan, None));
    let evidence = cell.await.map_err(panicked)?;
    let verdicts = judge(&evidence);
    let Some((took, _)) = evidence.took else {
        return Err("it has no time".to_owned());
    };
    if verdicts.is_empty() {
        return Ok(took.as_millis());
    }
    let verdicts: Vec<String> = verdicts.iter().map(ToString::to_string).collect();
    Err(verdicts.join("; "))
}

/// The matrix as a table, past the capture of a test's output.
fn print(cells: &[(Place, Cell)], outcome: impl Fn(Place) -> Option<Outcome>) {
    say("| killed | fresh | retried | duplicated |\n| --- | --- | --- | --- |");
    for row in cells.chunks(MODES.len()) {
        let shown = row
            .iter()
            .map(|(place, cell)| match (cell, outcome(*place)) {
                (Err(reason), _) => format!("cannot: {reason}"),
                (Ok(plan), Some(Ok(ms))) => {
                    format!(
                        "1 effect, 201 after {ms} ms (≤ {} s)",
                        plan.within.as_secs()
                    )
                }
                (Ok(_), Some(Err(_))) => "**wrong**".to_owned(),
                (Ok(_), None) => "not run".to_owned(),
            });
        let shown: Vec<String> = shown.collect();
        let ((strike, _), _) = row[0];
        say(&format!("| {} | {} |", name(strike), shown.join(" | ")));
    }
}

fn name(strike: Strike) -> String {
    match strike {
        Strike::Point(step, moment) => format!("{step}.{moment}"),
        Strike::Heard => "send, heard and not charged".to_owned(),
        Strike::Charged => "send, charged and not answered".to_owned(),
    }
}

fn say(text: &str) {
    drop(writeln!(io::stderr(), "{text}"));
}

/// Steps that no cell needs: they write nothing.
const READING: &[&str] = &[
    "find_credential",
    "find_payments",
    "list_payments",
    "list_reviews",
    "measure",
    "ping",
    "read",
    // Deletes reminders of payments that somebody else has decided: of a webhook, which this
    // version does not have. It changes no record and no payment.
    "drop_pending",
];

/// T5 of the style: a step that is added and forgotten here would never be killed.
#[test]
fn every_step_of_the_database_has_a_row_or_writes_nothing() {
    let mut named = BTreeSet::new();
    collect_names(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut named,
    );
    let struck: BTreeSet<String> = ROWS
        .iter()
        .flat_map(|row| row.strikes)
        .filter_map(|strike| match strike {
            Strike::Point(step, Moment::Before) => Some((*step).to_owned()),
            Strike::Point(_, Moment::After) | Strike::Heard | Strike::Charged => None,
        })
        .collect();

    let steps: BTreeSet<String> = STEPS.iter().map(ToString::to_string).collect();
    assert_eq!(struck, steps, "each step has a row, and each row a step");
    let reading: BTreeSet<String> = READING.iter().map(ToString::to_string).collect();
    let outside: BTreeSet<_> = named.difference(&steps).cloned().collect();
    assert_eq!(outside, reading, "a step that writes must have a row");
}

/// The names of all steps: `const NAME: &'static str = "…";`.
fn collect_names(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_names(&path, names);
        } else {
            let source = std::fs::read_to_string(&path).unwrap();
            let told = source.lines().filter_map(|line| {
                let rest = line.trim().strip_prefix("const NAME: &'static str = \"")?;
                rest.strip_suffix("\";").map(str::to_owned)
            });
            names.extend(told);
        }
    }
}
