//! The nemesis: does what the schedule says, undoes it, and counts what really struck.

mod day;
mod gateway;
mod network;
mod process;
mod statement;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use oncepay::clock::{Clock as _, SystemClock};
use tokio::time::{Instant, sleep};

pub use self::day::DAY;
use super::{
    cluster::Cluster,
    fault::Fault,
    history::History,
    schedule::{Day, Schedule, Step},
};
use crate::support::race::in_background;

/// How long the next fault waits for the end of the one before.
const RECOVERED_WITHIN: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(50);

/// How often each fault struck.
pub type Struck = BTreeMap<Fault, u32>;

/// One fault that was inflicted.
#[derive(Clone, Debug)]
pub struct Deed {
    pub step: Step,
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
    pub has_struck: bool,
}

/// What the nemesis did.
#[derive(Debug, Default)]
pub struct Deeds {
    pub all: Vec<Deed>,
    pub struck: Struck,
    /// When the day passed: what was asked before it is a day old after it.
    pub day: Option<DateTime<Utc>>,
}

/// All lanes beside one another, and then the day.
pub async fn act(cluster: &Arc<Cluster>, history: &Arc<History>, schedule: &Schedule) -> Deeds {
    let lanes: Vec<_> = schedule
        .lanes
        .iter()
        .map(|steps| {
            in_background(lane(
                Arc::clone(cluster),
                Arc::clone(history),
                steps.clone(),
            ))
        })
        .collect();
    let mut deeds = Deeds::default();
    for lane in lanes {
        deeds.all.extend(lane.await.unwrap());
    }
    deeds.all.sort_by_key(|deed| deed.from);
    for deed in deeds.all.iter().filter(|deed| deed.has_struck) {
        *deeds.struck.entry(deed.step.fault).or_default() += 1;
    }
    if schedule.day == Day::Passes {
        deeds.day = Some(day::pass(cluster).await);
        deeds.struck.insert(Fault::Day, 1);
    }
    deeds
}

/// One fault after the other.
async fn lane(cluster: Arc<Cluster>, history: Arc<History>, steps: Vec<Step>) -> Vec<Deed> {
    let mut deeds: Vec<Deed> = Vec::new();
    for step in steps {
        if let Some(before) = deeds.last() {
            recovered(&history, before.to).await;
        }
        sleep(step.after).await;
        let from = SystemClock.now();
        let has_struck = inflict(&cluster, step).await;
        deeds.push(Deed {
            step,
            from,
            to: SystemClock.now(),
            has_struck,
        });
    }
    deeds
}

/// Waits until somebody was served again: on a machine that is busy a second fault would only meet
/// what still recovers from the first. What does not recover is for the healing to find.
async fn recovered(history: &History, since: DateTime<Utc>) {
    let until = Instant::now() + RECOVERED_WITHIN;
    while !history.answered_since(since) && Instant::now() < until {
        sleep(POLL).await;
    }
}

/// Inflicts a fault, and heals it. Says whether anybody met it.
async fn inflict(cluster: &Cluster, step: Step) -> bool {
    match step.fault {
        Fault::Process(fault) => process::inflict(cluster, fault, step).await,
        Fault::Network(between, fault) => network::inflict(cluster, between, fault, step).await,
        Fault::Statement(statement, lost) => {
            statement::inflict(cluster, statement, lost, step).await
        }
        Fault::Gateway(fault, call) => gateway::inflict(cluster, fault, call, step).await,
        Fault::Day => unreachable!("the day comes after all lanes"),
    }
}
