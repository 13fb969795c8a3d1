//! Declared, registered at zero, and recorded under the declared labels.

use std::{collections::BTreeSet, time::Duration};

use chrono::DateTime;

use super::*;
use crate::gateways::{Call, NotExecuted, Outcome};

/// What `/metrics` shows after `act`, in a recorder of its own.
fn rendered(act: impl FnOnce()) -> String {
    let recorder = build().unwrap();
    let handle = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        register();
        act();
    });
    handle.render()
}

fn record_everything() {
    let second = Duration::from_secs(1);
    http_request(Some("/v1/payments/{id}"), "GET", 200, second);
    key_used(KeyUse::Executed);
    lease_expired();
    lease_lost();
    taken_over();
    processing_measured(2, second);
    unknown_measured(3, second);
    gateway_called(Call::Authorize, GatewayOutcome::Approved, second);
    payment_settled(SettledStatus::Succeeded);
    cleaner_batch(1000);
    cleaner_finished(DateTime::from_timestamp(1_800_000_000, 0).unwrap(), second);
    cleaner_failed();
    cleaner_measured(7, 8192);
    connections(4, 16);
    connection_discarded();
    database_retried(Retried::DeadlockDetected);
    worker_registered("heartbeat");
    worker_restarted("cleaner");
}

/// Every sample line: the series, and its value.
fn samples(text: &str) -> Vec<(&str, &str)> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(' '))
        .collect()
}

#[test]
fn every_metric_whose_labels_are_known_is_there_at_zero_with_its_description() {
    let text = rendered(|| ());

    for metric in METRICS.iter().filter(|metric| !metric.series().is_empty()) {
        let help = format!("# HELP {} {}", metric.name, metric.description);
        assert!(text.contains(&help), "{help} is missing in\n{text}");
    }
    for (series, value) in samples(&text) {
        assert_eq!(value, "0", "{series} does not start at zero");
    }
    for series in [
        r#"idempotency_requests_total{outcome="in_progress"} 0"#,
        r#"gateway_executions_total{call="refund",outcome="not_executed"} 0"#,
        r#"payments_settled_total{status="requires_review"} 0"#,
        r#"database_retries_total{sqlstate="40P01"} 0"#,
        r#"gateway_call_duration_seconds_bucket{call="capture",le="30"} 0"#,
        "cleaner_last_success_timestamp_seconds 0",
    ] {
        assert!(text.contains(series), "{series} is missing in\n{text}");
    }
}

#[test]
fn everything_that_is_recorded_changes_what_is_shown() {
    let text = rendered(record_everything);

    for series in [
        r#"http_requests_total{route="/v1/payments/{id}",method="GET",status="200"} 1"#,
        r#"http_request_duration_seconds_count{route="/v1/payments/{id}",method="GET"} 1"#,
        r#"idempotency_requests_total{outcome="executed"} 1"#,
        "idempotency_leases_expired_total 1",
        "idempotency_leases_lost_total 1",
        "idempotency_takeovers_total 1",
        "idempotency_processing 2",
        "idempotency_processing_oldest_seconds 1",
        "idempotency_unknown 3",
        "idempotency_unknown_oldest_seconds 1",
        r#"gateway_executions_total{call="authorize",outcome="approved"} 1"#,
        r#"gateway_call_duration_seconds_count{call="authorize"} 1"#,
        r#"payments_settled_total{status="succeeded"} 1"#,
        "cleaner_rows_deleted_total 1000",
        "cleaner_batches_total 1",
        r#"cleaner_run_duration_seconds_bucket{le="600"} 1"#,
        "cleaner_last_success_timestamp_seconds 1800000000",
        "cleaner_backlog_rows 7",
        "cleaner_table_bytes 8192",
        "cleaner_failures_total 1",
        r#"database_connections{state="idle"} 4"#,
        r#"database_connections{state="used"} 16"#,
        "database_connections_discarded_total 1",
        r#"database_retries_total{sqlstate="40P01"} 1"#,
        r#"worker_restarts_total{worker="heartbeat"} 0"#,
        r#"worker_restarts_total{worker="cleaner"} 1"#,
    ] {
        assert!(text.contains(series), "{series} is missing in\n{text}");
    }
}

#[test]
fn recording_uses_no_label_that_is_not_declared() {
    let text = rendered(record_everything);
    let declared: BTreeSet<_> = METRICS
        .iter()
        .flat_map(|metric| metric.labels.iter().map(|(label, _)| *label))
        .chain(["le"])
        .collect();

    for (series, _) in samples(&text) {
        let known = METRICS.iter().any(|metric| series.starts_with(metric.name));
        assert!(known, "{series} is not declared");
        let labels = series.split_once('{').map_or("", |(_, labels)| labels);
        for label in labels
            .split("\",")
            .filter_map(|label| label.split_once("=\""))
        {
            assert!(declared.contains(label.0), "{} is not declared", label.0);
        }
    }
}

#[test]
fn routes_and_methods_that_clients_make_up_share_one_series() {
    let text = rendered(|| {
        for method in ["BREW", "WHEN", "PROPFIND"] {
            http_request(None, method, 404, Duration::ZERO);
        }
    });

    let series = r#"http_requests_total{route="unmatched",method="other",status="404"} 3"#;
    assert!(text.contains(series), "{text}");
}

#[test]
fn a_gateway_outcome_keeps_its_name() {
    let refused = Outcome::NotExecuted(NotExecuted::Refused);

    assert_eq!(GatewayOutcome::from(&refused).as_str(), "not_executed");
}

#[test]
fn installing_twice_gives_the_same_metrics() {
    let first = install().unwrap();
    let second = install().unwrap();

    key_used(KeyUse::Invalid);

    let series = r#"idempotency_requests_total{outcome="invalid"}"#;
    for handle in [first, second] {
        let text = handle.render();
        let (_, value) = *samples(&text)
            .iter()
            .find(|(name, _)| *name == series)
            .unwrap();
        assert_ne!(value, "0", "the recording did not arrive");
    }
}
