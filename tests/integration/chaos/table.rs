//! How often each fault struck over many runs.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    fault::{self, Fault},
    report::Report,
};

/// A line for each fault, and one for all runs.
pub fn table(reports: &[Report]) -> String {
    let mut struck: BTreeMap<Fault, u32> = BTreeMap::new();
    for (fault, times) in reports.iter().flat_map(|report| &report.struck) {
        *struck.entry(*fault).or_default() += times;
    }
    let mut table = String::from("fault                                     struck\n");
    for fault in fault::all() {
        let times = struck.get(&fault).copied().unwrap_or_default();
        writeln!(table, "{:<40} {times:>7}", fault.name()).unwrap();
    }
    let sum = |count: fn(&Report) -> usize| -> usize { reports.iter().map(count).sum() };
    let slowest = reports.iter().map(|report| report.took).max();
    writeln!(
        table,
        "{} runs, {} payments in {} requests, {} of {} definite, {} breaches; the slowest took {:.1} s",
        reports.len(),
        sum(|report| report.payments),
        sum(|report| report.requests),
        sum(|report| report.definite),
        sum(|report| report.wanted),
        sum(|report| report.breaches.len()),
        slowest.unwrap_or_default().as_secs_f64(),
    )
    .unwrap();
    table
}
