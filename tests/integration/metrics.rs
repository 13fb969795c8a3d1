//! What Prometheus reads, and that the alert rules ask for what is there.

use std::{collections::BTreeSet, time::Duration};

use crate::support::{
    client::{Client, payment, payment_with, send},
    database::TestDatabase,
    process::Process,
    wait::wait_until,
};

/// Every series whose labels are known beforehand, at zero from the start.
const SERIES: &[&str] = &[
    "http_requests_total{route=\"unmatched\",method=\"GET\",status=\"404\"}",
    "http_request_duration_seconds_count{route=\"unmatched\",method=\"GET\"}",
    "idempotency_requests_total{outcome=\"executed\"}",
    "idempotency_requests_total{outcome=\"replayed\"}",
    "idempotency_requests_total{outcome=\"in_progress\"}",
    "idempotency_requests_total{outcome=\"mismatch\"}",
    "idempotency_requests_total{outcome=\"expired\"}",
    "idempotency_requests_total{outcome=\"missing\"}",
    "idempotency_requests_total{outcome=\"invalid\"}",
    "idempotency_leases_expired_total",
    "idempotency_leases_lost_total",
    "idempotency_takeovers_total",
    "idempotency_processing",
    "idempotency_processing_oldest_seconds",
    "idempotency_unknown",
    "idempotency_unknown_oldest_seconds",
    "gateway_executions_total{call=\"authorize\",outcome=\"approved\"}",
    "gateway_executions_total{call=\"authorize\",outcome=\"unknown\"}",
    "gateway_executions_total{call=\"refund\",outcome=\"not_executed\"}",
    "gateway_call_duration_seconds_count{call=\"authorize\"}",
    "payments_settled_total{status=\"succeeded\"}",
    "payments_settled_total{status=\"failed\"}",
    "payments_settled_total{status=\"requires_review\"}",
    "cleaner_rows_deleted_total",
    "cleaner_run_duration_seconds_count",
    "cleaner_backlog_rows",
    "cleaner_failures_total",
    "database_connections_discarded_total",
    "database_retries_total{sqlstate=\"40001\"}",
    "database_retries_total{sqlstate=\"40P01\"}",
    "database_retries_total{sqlstate=\"55P03\"}",
    "worker_restarts_total{worker=\"cleaner\"}",
    "worker_restarts_total{worker=\"lease_keeper\"}",
    "worker_restarts_total{worker=\"gauges\"}",
    "worker_restarts_total{worker=\"upkeep\"}",
];

/// D11: a rate is right from the first event on, and an alert does not wait for a metric to appear.
#[tokio::test]
async fn a_fresh_process_shows_every_series_at_zero() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();

    let service = Process::builder(&database, folder.path()).start();

    for series in SERIES {
        let value = service.metric(series).await;
        assert!(value.abs() < f64::EPSILON, "{series} is {value}");
    }
}

/// D11: usage, hits and conflicts of keys, and expected against actual executions.
#[tokio::test]
async fn each_use_of_a_key_and_each_execution_is_counted_once() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let (_, secret) = database.merchant("T1").await;
    let service = Process::builder(&database, folder.path()).start();
    let client = Client::new(service.base(), &secret);
    let visa = payment();
    let refused = payment_with("pm_error_before_charge");
    let slow = payment_with("pm_slow_2s");

    for (key, body, status) in [
        ("paid", &visa, 201),
        ("paid", &visa, 201),
        ("paid", &visa, 201),
        ("paid", &slow, 422),
        ("declined", &payment_with("pm_card_declined"), 402),
        ("released", &refused, 503),
        ("bad\"key", &visa, 400),
    ] {
        client.pay(key, body).await.assert_status(status);
    }
    send(client.payment_request(visa.to_string()))
        .await
        .assert_status(400);
    let (first, second) = tokio::join!(client.pay("slow", &slow), async {
        wait_until(Duration::from_secs(2), async || {
            let claimed = "SELECT count(*) FROM idempotency_keys WHERE key = 'slow'";
            database.count(claimed).await == 1
        })
        .await;
        client.pay("slow", &slow).await
    });
    database.age("paid", chrono::TimeDelta::days(2)).await;
    let expired = client.pay("paid", &visa).await;

    assert_eq!((first.status.as_u16(), second.status.as_u16()), (201, 409));
    expired.assert_status(410);
    for (series, count) in COUNTED {
        let value = service.metric(series).await;
        assert!((value - count).abs() < f64::EPSILON, "{series}: {value}");
    }
}

const COUNTED: [(&str, f64); 12] = [
    ("idempotency_requests_total{outcome=\"executed\"}", 4.0),
    ("idempotency_requests_total{outcome=\"replayed\"}", 2.0),
    ("idempotency_requests_total{outcome=\"mismatch\"}", 1.0),
    ("idempotency_requests_total{outcome=\"in_progress\"}", 1.0),
    ("idempotency_requests_total{outcome=\"expired\"}", 1.0),
    ("idempotency_requests_total{outcome=\"missing\"}", 1.0),
    ("idempotency_requests_total{outcome=\"invalid\"}", 1.0),
    (
        "gateway_executions_total{call=\"authorize\",outcome=\"approved\"}",
        2.0,
    ),
    (
        "gateway_executions_total{call=\"authorize\",outcome=\"declined\"}",
        1.0,
    ),
    // Three sends of the one that was released.
    (
        "gateway_executions_total{call=\"authorize\",outcome=\"not_executed\"}",
        3.0,
    ),
    ("payments_settled_total{status=\"succeeded\"}", 2.0),
    ("payments_settled_total{status=\"failed\"}", 1.0),
];

#[tokio::test]
async fn a_take_over_from_a_killed_owner_is_counted_by_who_took_over() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let (_, secret) = database.merchant("T1").await;
    let start = || {
        Process::builder(&database, folder.path())
            .env("IDEMPOTENCY_LEASE_TTL", "2s")
            .start()
    };
    let (mut doomed, survivor) = (start(), start());
    let client = Client::new(survivor.base(), &secret);
    let body = payment_with("pm_slow_8s");
    let at_doomed = client.at(doomed.base());
    let claimed = wait_until(Duration::from_secs(5), async || {
        database
            .count("SELECT count(*) FROM idempotency_keys")
            .await
            == 1
    });
    tokio::select! {
        reply = at_doomed.pay("K", &body) => panic!("{reply:?}"),
        () = claimed => doomed.kill(),
    }

    let patience = Duration::from_secs(10);
    wait_until(patience, async || {
        client.pay("K", &body).await.status == 201
    })
    .await;

    for series in [
        "idempotency_takeovers_total",
        "idempotency_leases_expired_total",
    ] {
        let value = survivor.metric(series).await;
        assert!((value - 1.0).abs() < f64::EPSILON, "{series}: {value}");
    }
    let text = survivor.metrics().await;
    assert!(!text.contains(&secret) && !text.contains("key=\"K\""));
}

/// D7, D11: the pool is counted without a request for it.
#[tokio::test]
async fn the_connections_of_the_pool_are_counted() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();

    let service = Process::builder(&database, folder.path()).start();

    wait_until(Duration::from_secs(10), async || {
        service.metric("database_connections{state=\"idle\"}").await >= 1.0
    })
    .await;
}

/// An alert on a metric that nobody has never fires.
#[tokio::test]
async fn every_metric_of_the_alert_rules_exists() {
    let rules = include_str!("../../deploy/alerts.yml");
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let service = Process::builder(&database, folder.path()).start();

    let shown = service.metrics().await;
    let known: BTreeSet<&str> = shown
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let named: BTreeSet<&str> = rules.lines().flat_map(metrics_of).collect();

    assert!(named.len() >= 9, "{named:?}");
    let unknown: Vec<_> = named.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?} are not among {known:?}");
    for must in [
        "cleaner_last_success_timestamp_seconds",
        "cleaner_backlog_rows",
        "idempotency_unknown_oldest_seconds",
        "idempotency_processing_oldest_seconds",
        "payments_settled_total",
        "database_connections_discarded_total",
        "worker_restarts_total",
    ] {
        assert!(named.contains(must), "no alert on {must}");
    }
}

/// The metrics of an `expr:` line: words with an underscore, outside of braces.
fn metrics_of(line: &str) -> Vec<&str> {
    let Some(expression) = line.trim_start().strip_prefix("expr:") else {
        return Vec::new();
    };
    let outside = expression.split('{').flat_map(|part| {
        let rest = part.split_once('}').map_or(part, |(_, rest)| rest);
        rest.split(|char: char| !char.is_ascii_alphanumeric() && char != '_')
    });
    outside.filter(|word| word.contains('_')).collect()
}
