//! Losing exactly one statement, or exactly the answer to it.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::{
    chaos::{
        cluster::Cluster,
        fault::{Lost, Statement},
        schedule::{Manner, Step},
    },
    support::proxy::{Fault, Network, Proxy},
};

/// How often is looked whether it has struck.
const POLL: Duration = Duration::from_millis(20);

/// For how long the database then stays away, in the rough manner.
const AWAY: Duration = Duration::from_millis(250);

/// Waits at both services for the next execution of the statement. In the rough manner the
/// database is away after it, so that nobody can ask at once what became of it.
pub async fn inflict(cluster: &Cluster, statement: Statement, lost: Lost, step: Step) -> bool {
    let fault = match (lost, step.manner) {
        (Lost::Statement, Manner::Gentle) => Fault::StatementLost,
        (Lost::Statement, Manner::Rough) => Fault::StatementLostAndCut,
        (Lost::Answer, Manner::Gentle) => Fault::AnswerLost,
        (Lost::Answer, Manner::Rough) => Fault::AnswerLostAndCut,
    };
    for proxy in &cluster.proxies {
        proxy.arm(statement.marker(), fault);
    }
    let until = Instant::now() + step.lasts;
    let struck = || cluster.proxies.iter().any(Proxy::struck);
    while !struck() && Instant::now() < until {
        sleep(POLL).await;
    }
    let has_struck = struck();
    for proxy in &cluster.proxies {
        proxy.disarm();
    }
    if has_struck && step.manner == Manner::Rough {
        sleep(AWAY).await;
        for proxy in &cluster.proxies {
            proxy.set(Network::Up);
        }
    }
    has_struck
}
