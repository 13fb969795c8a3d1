//! Faults of the gateway, asked for at the sandbox, which says whether they struck.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::chaos::{
    cluster::Cluster,
    fault::{GatewayCall, GatewayFault},
    schedule::{Manner, Step},
};

/// How often is looked whether it has struck.
const POLL: Duration = Duration::from_millis(40);

/// Longer than the service waits for the gateway, or just not.
const DELAY_LONG_MS: u64 = 1_000;
const DELAY_SHORT_MS: u64 = 600;

/// So many refusals in a row are more than a request repeats: its key is released.
const REFUSALS: u32 = 3;

/// Waits for the next call that meets the fault. A sandbox that is away, or restarts meanwhile, has
/// had none.
pub async fn inflict(
    cluster: &Cluster,
    fault: GatewayFault,
    call: GatewayCall,
    step: Step,
) -> bool {
    let struck = async || cluster.control.try_struck(fault.name()).await.ok();
    let Some(before) = struck().await else {
        return false;
    };
    if cluster
        .control
        .ask(&wish(fault, call, step.manner))
        .await
        .is_err()
    {
        return false;
    }
    let until = Instant::now() + step.lasts;
    let mut has_struck = false;
    while !has_struck && Instant::now() < until {
        sleep(POLL).await;
        has_struck = struck().await.is_some_and(|now| now > before);
    }
    // One that is away has forgotten them by itself.
    drop(cluster.control.try_clear_faults().await);
    has_struck
}

fn wish(fault: GatewayFault, call: GatewayCall, manner: Manner) -> Value {
    let call = match call {
        GatewayCall::Authorize => "authorize",
        GatewayCall::Find => "find",
    };
    let rough = manner == Manner::Rough;
    let mut wish = json!({"fault": fault.name(), "call": call});
    match fault {
        GatewayFault::Delay => {
            wish["delay_ms"] = if rough { DELAY_LONG_MS } else { DELAY_SHORT_MS }.into();
        }
        GatewayFault::TooMany => wish["status"] = 429.into(),
        // Stripe keeps a 500 under the key, and replays it; a 503 it does not.
        GatewayFault::ErrorBefore | GatewayFault::ErrorAfter => {
            wish["status"] = if rough { 500 } else { 503 }.into();
        }
        GatewayFault::Refuse
        | GatewayFault::DropAfterEffect
        | GatewayFault::HangBefore
        | GatewayFault::HangAfterEffect
        | GatewayFault::WrongAmount => {}
    }
    if rough && matches!(fault, GatewayFault::Refuse | GatewayFault::TooMany) {
        wish["times"] = REFUSALS.into();
    }
    wish
}
