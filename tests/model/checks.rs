//! The runs of the checker: the protocol as it is built, its known limit, and its seeded bugs.

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

use stateright::{Checker, HasDiscoveries, Model};

use super::{
    gateway::Delivery,
    invariants::{ALWAYS, I1, I2, I3, I4, I5, I8, I9, I10, I11, I12, I18, I20},
    protocol::{Action, Protocol},
    scenario::{Bug, Numbering, Outage, Replication, Scenario},
};

/// A bound by count and not by time, so that a busy machine does not fail the test. Whoever makes
/// the model larger than this has to make it smaller somewhere else.
const STATES_MAX: usize = 1_500_000;

/// A bug that is not found in so long is not found.
const SEARCH_MAX: Duration = Duration::from_mins(2);

#[test]
fn no_order_of_steps_and_faults_breaks_an_invariant() {
    explore(Scenario::BUILT);
}

#[test]
fn no_order_of_steps_and_faults_breaks_an_invariant_on_a_synchronous_standby() {
    explore(Scenario {
        replication: Replication::Synchronous,
        ..Scenario::BUILT
    });
}

/// The limit that the module's page names: whoever fails over to a standby that lost the record of
/// an effect, and lets the key rest until the gateway has forgotten it too, pays twice.
#[test]
fn a_lost_record_that_outlasts_the_key_window_is_paid_twice() {
    let limit = Scenario {
        outage: Outage::OutlastsKeyWindow,
        numbering: Numbering::Kept,
        ..Scenario::BUILT
    };

    let path = counterexample(limit, I1);

    assert!(
        path.contains(&Action::FailOver),
        "without a failover nothing is lost"
    );
    assert!(
        path.contains(&Action::GatewayForgets),
        "a gateway that remembers pays once"
    );
}

#[test]
fn writes_without_a_fence_are_found() {
    for invariant in [I8, I9] {
        counterexample(Scenario::with(Bug::NoFence), invariant);
    }
}

#[test]
fn a_random_gateway_key_is_found() {
    for invariant in [I1, I11] {
        counterexample(Scenario::with(Bug::RandomGatewayKey), invariant);
    }
}

#[test]
fn a_release_after_an_unknown_outcome_is_found() {
    for invariant in [I4, I20] {
        let path = counterexample(Scenario::with(Bug::ReleaseAfterUnknown), invariant);

        assert!(
            path.iter().any(refused),
            "{invariant} without a refused send"
        );
    }
}

#[test]
fn a_send_after_the_key_window_is_found() {
    let path = counterexample(Scenario::with(Bug::SendAfterWindow), I1);

    assert!(
        path.contains(&Action::GatewayForgets),
        "a gateway that remembers pays once"
    );
}

#[test]
fn every_other_invariant_is_broken_by_a_bug() {
    for (bug, invariant) in [
        (Bug::ClaimAfterCall, I10),
        (Bug::UnknownIsApproved, I2),
        (Bug::UnknownIsDeclined, I3),
        (Bug::UnknownIsDeclined, I4),
        (Bug::NoTakeOver, I18),
        (Bug::CleanerIgnoresStatus, I12),
    ] {
        counterexample(Scenario::with(bug), invariant);
    }
    let contradicted = Scenario {
        replication: Replication::Asynchronous,
        ..Scenario::with(Bug::UnknownIsDeclined)
    };
    counterexample(contradicted, I5);
}

/// Explores every state of `scenario`: all that must hold holds, all that must be seen is seen.
fn explore(scenario: Scenario) {
    let started = Instant::now();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let checker = Protocol::new(scenario).checker().threads(threads);
    let checker = checker.spawn_bfs().join();
    let elapsed = started.elapsed();

    println!(
        "{:?} replication: {} states, {} steps, {} deep, {elapsed:.1?}",
        scenario.replication,
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
    );
    let broken: Vec<_> = checker
        .discoveries()
        .into_iter()
        .filter(|(name, _)| ALWAYS.contains(name))
        .map(|(name, path)| (name, path.into_actions()))
        .collect();
    assert!(broken.is_empty(), "{broken:?}");
    let seen: BTreeSet<_> = checker.discoveries().into_keys().collect();
    for property in checker.model().properties() {
        let expected = !ALWAYS.contains(&property.name) && may_happen(scenario, property.name);
        assert_eq!(
            seen.contains(property.name),
            expected,
            "seen: {}",
            property.name
        );
    }
    assert!(
        checker.unique_state_count() <= STATES_MAX,
        "the model has grown too large"
    );
}

fn may_happen(scenario: Scenario, name: &str) -> bool {
    scenario.replication == Replication::Asynchronous || !name.contains("failover")
}

/// A short way to break `invariant`; prints it.
fn counterexample(scenario: Scenario, invariant: &'static str) -> Vec<Action> {
    let checker = Protocol::new(scenario)
        .checker()
        .finish_when(HasDiscoveries::AllOf([invariant].into()))
        .timeout(SEARCH_MAX)
        .spawn_bfs()
        .join();
    let path = checker.discovery(invariant);
    let Some(path) = path.map(stateright::Path::into_actions) else {
        panic!("{:?} does not break {invariant}", scenario.bug);
    };
    println!(
        "{:?}, {:?} breaks {invariant}:",
        scenario.bug, scenario.outage
    );
    for action in &path {
        println!("    {action:?}");
    }
    path
}

fn refused(action: &Action) -> bool {
    matches!(
        action,
        Action::Send {
            delivery: Delivery::Refused,
            ..
        }
    )
}
