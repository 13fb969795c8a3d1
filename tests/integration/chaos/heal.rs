//! The end of a run: every fault is lifted, time passes for what rests, and every order must come
//! to an end.

use std::{future::pending, time::Duration};

use chrono::TimeDelta;
use futures_util::future::join_all;
use sqlx::PgConnection;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    client::{Clients, Pursued},
    cluster::{Cluster, SERVICES},
    fault::Between,
    history::Body,
    nemesis::DAY,
};
use crate::support::{
    database::{age_in, poll_pending_in},
    proxy::Network,
};

/// The bound within which every record resolves or is in review (I18), with the time that passes
/// for what rests taken out.
const HEALED_WITHIN: Duration = Duration::from_secs(20);

/// Between two moves of time.
const STEP: Duration = Duration::from_secs(1);

/// A rest grows to this after five looks, which is more than a run has; shorter than the age after
/// which nobody sends any more.
const REST: TimeDelta = TimeDelta::seconds(40);

/// After so many moves only evidence is missing that will never come: a gateway that keeps a 500
/// replays it. The rest of the gateway's window passes.
const WINDOW_AFTER_STEPS: u32 = 3;

/// What rests for longer than any lease that is held.
const RESTS: &str = "status = 'processing' AND lease_expires_at > now() + interval '2 s'";

/// What is unknown, is not in front of a person, and is not at its window's end yet.
const UNKNOWN: &str = "status = 'processing' AND unknown_since IS NOT NULL
    AND first_sent_at > now() - interval '20 hours'
    AND EXISTS (SELECT FROM payments WHERE payments.merchant_id = idempotency_keys.merchant_id
        AND payments.id = resource_id AND payments.status = 'processing')";

/// What is not at its end: records that no person has in front of them, and payments that the
/// gateway still has to decide.
const OPEN: &str = "SELECT (SELECT count(*) FROM idempotency_keys AS record
        JOIN payments AS payment
            ON payment.merchant_id = record.merchant_id AND payment.id = record.resource_id
        WHERE record.status = 'processing' AND payment.status <> 'requires_review')
    + (SELECT count(*) FROM pending_payments)";

/// Heals, and gives the orders whose clients gave up.
pub async fn heal(cluster: &Cluster, clients: &Clients, orders: usize) -> Vec<usize> {
    lift(cluster).await;
    let clients = clients.anew();
    let until = Instant::now() + HEALED_WITHIN;
    let mut session = cluster.connect().await.unwrap();
    let limit = async {
        sleep_until(until).await;
        clients.give_up();
        // Whoever still waits for an answer ends with it.
        pending::<()>().await;
    };
    tokio::select! {
        () = time(cluster.connect().await.unwrap()) => unreachable!("time has no end"),
        () = limit => unreachable!("it waits for the end"),
        open = ends(&mut session, &clients, orders, until) => open,
    }
}

async fn lift(cluster: &Cluster) {
    for service in 0..SERVICES {
        for between in [Between::Clients, Between::Postgres, Between::Gateway] {
            cluster.wire(between, service).set(Network::Up);
        }
        cluster.proxies[service].disarm();
    }
    cluster.control.clear_faults().await;
    join_all((0..SERVICES).map(|number| cluster.start_service(number))).await;
}

/// Every order is pursued to its end, and then everything that no client waits for. At the end both
/// services are asked for every answer, which must be the same, and for another one under its key.
async fn ends(
    session: &mut PgConnection,
    clients: &Clients,
    orders: usize,
    until: Instant,
) -> Vec<usize> {
    let pursued = |body: Body, service: usize| {
        join_all((0..orders).map(move |order| {
            let service = (order + service) % SERVICES;
            clients.pursue(order, body, service)
        }))
    };
    let first = pursued(Body::Own, 0).await;
    while Instant::now() < until {
        let left: i64 = sqlx::query_scalar(OPEN)
            .fetch_one(&mut *session)
            .await
            .unwrap();
        if left == 0 {
            break;
        }
        sleep(STEP / 8).await;
    }
    let again = pursued(Body::Own, 1).await;
    pursued(Body::Other, 0).await;
    let open = |order: &usize| [first[*order], again[*order]].contains(&Pursued::Open);
    (0..orders).filter(open).collect()
}

/// Rests come to their end sooner than by waiting for it. Whoever holds a lease is left alone.
async fn time(mut session: PgConnection) {
    for step in 0.. {
        sleep(STEP).await;
        age_in(&mut session, RESTS, REST).await;
        poll_pending_in(&mut session).await;
        if step >= WINDOW_AFTER_STEPS {
            age_in(&mut session, UNKNOWN, DAY).await;
        }
    }
}
