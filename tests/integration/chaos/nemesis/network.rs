//! Cutting, swallowing and slowing what is sent.

use std::time::Duration;

use tokio::time::sleep;

use crate::{
    chaos::{
        cluster::{Cluster, SERVICES},
        fault::{Between, NetworkFault},
        schedule::{Manner, Step},
    },
    support::{network::Wire, proxy::Network},
};

/// For each piece that is sent. A statement is several, so it adds up to a noticeable part of a
/// lease without being the end of every one.
const DELAY: Duration = Duration::from_millis(60);

/// The moment for which connections are closed that a black hole had swallowed.
const RESET: Duration = Duration::from_millis(50);

/// The rough manner strikes both services, and closes what a black hole swallowed; the gentle one
/// strikes one, and what was swallowed arrives late.
pub async fn inflict(cluster: &Cluster, between: Between, fault: NetworkFault, step: Step) -> bool {
    let wires: Vec<&Wire> = (0..SERVICES)
        .filter(|number| step.manner == Manner::Rough || *number == step.service)
        .map(|number| cluster.wire(between, number))
        .collect();
    let felt = || -> u64 { wires.iter().map(|wire| wire.felt()).sum() };
    let set = |network| wires.iter().for_each(|wire| wire.set(network));
    let before = felt();
    set(match fault {
        NetworkFault::Cut => Network::Cut,
        NetworkFault::BlackHole => Network::BlackHole,
        NetworkFault::Slow => Network::Slow(DELAY),
    });
    sleep(step.lasts).await;
    let struck = felt() > before;
    if fault == NetworkFault::BlackHole && step.manner == Manner::Rough {
        set(Network::Cut);
        sleep(RESET).await;
    }
    set(Network::Up);
    struck
}
