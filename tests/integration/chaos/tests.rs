//! The short run, which every build makes, and the long ones by command.

use std::io::{self, Write as _};

use futures_util::{StreamExt as _, stream};

use super::{report::Report, run::run, table::table};
use crate::support::postgres::variable;

/// Chosen so that the faults of many kinds strike, and a day passes.
const SHORT: [u64; 4] = [0, 1, 2, 3];

/// D16, I1–I20: whatever is killed, stopped, cut and lost, one key moves money once, and every
/// order ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn chaos_breaks_no_promise() {
    for seed in SHORT {
        let report = run(seed, None).await;

        say(&report.line());
        report.assert_kept();
    }
}

/// The same for many seeds: `ONCEPAY_CHAOS_SEEDS` from `ONCEPAY_CHAOS_FIRST_SEED`, so many at a time
/// as `ONCEPAY_CHAOS_JOBS` says.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "takes half an hour; by command"]
async fn long_chaos_breaks_no_promise() {
    let first = number("ONCEPAY_CHAOS_FIRST_SEED", 0);
    let seeds = first..first + number("ONCEPAY_CHAOS_SEEDS", 100);
    let jobs = usize::try_from(number("ONCEPAY_CHAOS_JOBS", 1)).unwrap();

    let reports: Vec<Report> = stream::iter(seeds)
        .map(|seed| async move {
            let report = run(seed, None).await;
            say(&report.line());
            say(&format!("{:?}", report.answers));
            for failure in report.failures() {
                say(&format!("  {failure}"));
            }
            if !report.breaches.is_empty() {
                say(&report.deeds);
                say(&report.stories);
            }
            report
        })
        .buffer_unordered(jobs)
        .collect()
        .await;

    say(&table(&reports));
    for report in &reports {
        report.assert_kept();
    }
}

/// One seed again: `ONCEPAY_CHAOS_SEED`.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "by command, for a seed that found something"]
async fn chaos_again_breaks_no_promise() {
    let seed = number("ONCEPAY_CHAOS_SEED", 0);

    let report = run(seed, variable("ONCEPAY_CHAOS_BUG").as_deref()).await;

    say(&report.line());
    say(&report.deeds);
    say(&format!("answers: {:#?}", report.answers));
    say(&table(std::slice::from_ref(&report)));
    report.assert_kept();
}

fn number(name: &str, default: u64) -> u64 {
    variable(name).map_or(default, |text| text.parse().expect(name))
}

/// Past the capture of test output: whoever waits for long sees how far it is.
fn say(text: &str) {
    if !text.is_empty() {
        drop(writeln!(io::stderr(), "{text}"));
    }
}
