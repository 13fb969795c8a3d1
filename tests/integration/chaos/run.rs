//! One seed, from an empty folder to its report.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use serde_json::json;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{
    check::{CARD_NUMBER, check},
    client::{Clients, Pursued},
    cluster::Cluster,
    evidence::{Seen, gather},
    heal::heal,
    nemesis,
    report::Report,
    schedule::Schedule,
    watch::Watch,
    workload::Workload,
};
use crate::support::{
    client::Client,
    race::{PATIENCE, in_background},
};

/// How long clients go on after the last fault at the most; those of the healing do the rest.
const PURSUED_AFTER: Duration = Duration::from_secs(10);

/// Between two looks whether they know enough.
const POLL: Duration = Duration::from_millis(50);

/// Runs a seed, with a bug in both services where one is named (`SEEDED_BUG`); the report says what
/// was found.
pub async fn run(seed: u64, bug: Option<&str>) -> Report {
    let began_at = Instant::now();
    let Workload { orders, tries } = Workload::of(seed);
    let schedule = Schedule::of(seed);
    let cluster = Arc::new(Cluster::start(bug).await);
    let clients = Clients::new(&cluster, &orders);
    let watch = Watch::begin(&cluster);

    let start = Instant::now();
    let attempts = tries.into_iter().map(|attempt| {
        let clients = clients.clone();
        in_background(async move { clients.attempt(&attempt, start).await })
    });
    let attempts: Vec<_> = attempts.collect();
    let deeds = nemesis::act(&cluster, &clients.history, &schedule).await;
    most_have_ended(&attempts).await;
    clients.give_up();
    let pursued = join_all(attempts).await.into_iter().map(Result::unwrap);
    let pursued: Vec<Pursued> = pursued.collect();
    let open = heal(&cluster, &clients, orders.len()).await;
    send_card_number(&cluster).await;

    let witnessed = Seen {
        orders,
        requests: clients.history.requests(),
        open,
        seeing: watch.relieve().await,
        day: deeds.day,
    };
    let evidence = gather(&cluster, witnessed).await;
    cluster.stop().await;
    let breaches = check(&evidence);
    Report::new(
        seed,
        began_at.elapsed(),
        deeds,
        &pursued,
        (&evidence, breaches),
    )
}

/// Waits until four in five clients know what they wanted to know, which a busy machine may take a
/// while for after the last fault. It may never come: some outcomes are not known before the healing.
async fn most_have_ended(attempts: &[JoinHandle<Pursued>]) {
    let until = Instant::now() + PURSUED_AFTER;
    let ended = || {
        attempts
            .iter()
            .filter(|attempt| attempt.is_finished())
            .count()
    };
    while ended() * 5 < attempts.len() * 4 && Instant::now() < until {
        sleep(POLL).await;
    }
}

/// A client that sends what must never be logged.
async fn send_card_number(cluster: &Cluster) {
    let client = Client::new(&cluster.fronts[0].base(), &cluster.merchants[0].secret);
    let body = json!({
        "amount": 1, "currency": "EUR", "payment_method": "pm_card_visa", "reference": CARD_NUMBER,
    });
    let refused = timeout(PATIENCE, client.pay("card", &body)).await.unwrap();
    refused.assert_status(422);
}
