//! B16: an application whose clock is wrong neither steals a lease nor waits too long for one. The
//! clock of the database alone says when a lease, or an answer, is over.

use std::{
    fs,
    io::{self, Write as _},
    path::PathBuf,
    sync::Arc,
};

use chrono::{DateTime, TimeDelta, Utc};
use oncepay::{
    clock::{Clock as _, MockClock, SystemClock},
    gateways::Finding,
};
use serde_json::json;

use crate::support::{
    app::TestApp,
    client::{Client, Reply, payment},
    gateway::{Act, Scripted, approved},
    race::{PATIENCE, in_background},
    shop::Shop,
    wait::wait_until,
};

/// I8. The clock that the program can be given is five minutes off, in either direction. A retry
/// meets a lease that is good and waits; when it is over by the database's clock, however the
/// program's own is, the retry takes over at once.
#[tokio::test]
async fn a_service_with_a_wrong_clock_judges_leases_by_the_database() {
    for off in [TimeDelta::minutes(5), TimeDelta::minutes(-5)] {
        let found = Finding::Known(approved());
        let gateway = Arc::new(Scripted::new([Act::Hang]).finding([found]));
        let right = TestApp::builder().gateway(&gateway).start().await;
        let clock = Arc::new(MockClock::at(SystemClock.now() + off));
        let wrong = TestApp::builder().beside(&right).gateway(&gateway);
        let wrong = wrong.clock(clock).start().await;
        let client = right.client.at(wrong.client.base());
        let asking = right.client.clone();
        let hanging = in_background(async move { asking.pay("K", &payment()).await });
        gateway.called(1).await;

        let early = client.pay("K", &payment()).await;
        right.database.age("K", TimeDelta::minutes(1)).await;
        let late = client.pay("K", &payment()).await;
        hanging.abort();

        early.assert_problem(409, "idempotency-key-in-progress");
        late.assert_status(201);
        assert_eq!((gateway.sent().len(), gateway.asked().len()), (1, 1));
        let ttl = "SELECT count(*) FROM idempotency_keys
            WHERE expires_at - now() BETWEEN interval '23:59' AND interval '24:00'";
        assert_eq!(right.database.count(ttl).await, 1, "{off}");
    }
}

/// The library that gives a process another clock, where it is installed (Debian's `faketime`).
fn libfaketime() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten();
    folders
        .map(|folder| folder.path().join("faketime/libfaketime.so.1"))
        .find(|library| library.exists())
}

/// How far a service's clock is ahead, by the date of an answer.
fn ahead(reply: &Reply) -> TimeDelta {
    let date = DateTime::parse_from_rfc2822(reply.header("date").unwrap()).unwrap();
    date.with_timezone(&Utc) - SystemClock.now()
}

/// B16 to the letter: the whole process has another time. Each of the two services owns a payment
/// that is slow, for longer than a lease, and the other one is asked for it.
#[tokio::test]
async fn services_whose_clocks_differ_by_minutes_respect_each_others_leases() {
    let Some(library) = libfaketime() else {
        let why = "no libfaketime on this machine: one test of clocks is left out";
        drop(writeln!(io::stderr(), "{why}"));
        return;
    };
    for off in ["+300s", "-300s"] {
        let shop = Shop::open().await;
        let service = || shop.service().env("IDEMPOTENCY_LEASE_TTL", "2s");
        let right = service().start();
        let wrong = service()
            .env("LD_PRELOAD", library.to_str().unwrap())
            .env("FAKETIME", off)
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .start();
        let (right, wrong) = (shop.client(&right), shop.client(&wrong));

        let by_right = own_and_ask(&shop, "R", &right, &wrong).await;
        let by_wrong = own_and_ask(&shop, "W", &wrong, &right).await;

        let ahead = ahead(&by_wrong).num_seconds().abs();
        assert!((290..=310).contains(&ahead), "it must be wrong: {ahead}");
        by_right.assert_status(201);
        by_wrong.assert_status(201);
        let taken = "SELECT count(*) FROM idempotency_keys WHERE fence <> 1";
        assert_eq!(shop.database.count(taken).await, 0, "{off}");
        assert_eq!((shop.sends(), shop.effects()), (2, 2), "{off}");
    }
}

/// Pays slowly at `owner`, and asks `other` for the same until that is done: each time it is told
/// to wait.
async fn own_and_ask(shop: &Shop, key: &'static str, owner: &Client, other: &Client) -> Reply {
    let slow = json!({"fault": "delay", "delay_ms": 2500});
    shop.sandbox.control.fault(slow).await;
    let (sends, asking) = (shop.sends(), owner.clone());
    let paying = in_background(async move { asking.pay(key, &payment()).await });
    wait_until(PATIENCE, async || shop.sends() > sends).await;
    let mut told = Vec::new();
    wait_until(PATIENCE, async || {
        told.push(other.pay(key, &payment()).await);
        paying.is_finished()
    })
    .await;
    let made = paying.await.unwrap();
    // The last one may have come when it was done.
    assert!(told.len() > 1, "the other one must have been asked");
    for reply in told.iter().filter(|reply| reply.status != 201) {
        reply.assert_problem(409, "idempotency-key-in-progress");
    }
    made
}
