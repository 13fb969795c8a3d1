//! The runs of the checker.

use std::{collections::BTreeSet, thread, time::Instant};

use stateright::{Checker, HasDiscoveries, Model};

use super::{
    gateway::Delivery,
    invariants::{ALWAYS, I1, I2, I3, I4, I5, I8, I9, I10, I11, I12, I18, I20},
    protocol::{Action, Protocol},
    scenario::{Bug, Outage, Replication, Scenario},
};

#[test]
fn no_order_of_steps_and_faults_breaks_an_invariant() {
    let (states, depth) = explore(Scenario::BUILT);
    assert!(states > 0 && depth > 0);
}

#[test]
fn synchronous() {
    explore(Scenario {
        replication: Replication::Synchronous,
        ..Scenario::BUILT
    });
}

fn explore(scenario: Scenario) -> (usize, usize) {
    let started = Instant::now();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let checker = Protocol::new(scenario)
        .checker()
        .threads(threads)
        .spawn_bfs()
        .join();
    println!(
        "{scenario:?}: {} states, {} steps, depth {}, {:.1?}",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        started.elapsed()
    );
    for (name, path) in checker.discoveries() {
        if ALWAYS.contains(&name) {
            println!("{name}: {:#?}", path.into_actions());
        } else {
            println!("seen {name}");
        }
    }
    (checker.unique_state_count(), checker.max_depth())
}
