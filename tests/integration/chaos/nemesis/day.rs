//! A day passes while nobody works: what was unknown before can never be sent again.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use oncepay::clock::{Clock as _, SystemClock};
use serde_json::json;

use crate::{
    chaos::{
        cluster::{Cluster, End, SERVICES},
        fault::Between,
    },
    support::{database::age_in, proxy::Network, wait::wait_until},
};

/// Past the gateway's window and past every answer's life.
pub const DAY: TimeDelta = TimeDelta::hours(25);

/// What was on its way to the sandbox has ended by then.
const IDLE_WITHIN: Duration = Duration::from_secs(10);

/// Gives the moment before which everything is a day old.
///
/// The network to the gateway is cut first, so that no packet of before arrives after. The sandbox
/// refuses to forget its keys as long as a request is under way.
pub async fn pass(cluster: &Cluster) -> DateTime<Utc> {
    for service in 0..SERVICES {
        cluster.wire(Between::Gateway, service).set(Network::Cut);
    }
    for service in &cluster.services {
        service.lock().await.end(End::Killed).await;
    }
    let forget = json!({"fault": "forget_keys"});
    wait_until(IDLE_WITHIN, async || {
        let told = cluster.control.ask(&forget).await;
        told.is_ok_and(|reply| reply.status == 201)
    })
    .await;
    let mut session = cluster.connect().await.unwrap();
    let aged = age_in(&mut session, "true", DAY).await;
    assert!(aged > 0, "a run has records by then");
    let passed_at = SystemClock.now();
    for number in 0..SERVICES {
        cluster.wire(Between::Gateway, number).set(Network::Up);
        cluster.start_service(number).await;
    }
    passed_at
}
