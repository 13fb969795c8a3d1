//! One function per thing that happens.

use std::time::Duration;

use chrono::{DateTime, Utc};
use metrics::{counter, gauge, histogram};

use super::{
    GatewayOutcome, KeyUse, Retried, SettledStatus,
    declared::{
        CLEANER_BACKLOG, CLEANER_BATCHES, CLEANER_FAILURES, CLEANER_LAST_SUCCESS,
        CLEANER_ROWS_DELETED, CLEANER_RUN_DURATION, CLEANER_TABLE_BYTES, CONNECTIONS,
        CONNECTIONS_DISCARDED, DATABASE_RETRIES, GATEWAY_CALL_DURATION, GATEWAY_EXECUTIONS,
        HTTP_REQUEST_DURATION, HTTP_REQUESTS, IDEMPOTENCY_REQUESTS, LEASES_EXPIRED, LEASES_LOST,
        PAYMENTS_SETTLED, PROCESSING, PROCESSING_OLDEST, TAKEOVERS, UNKNOWN, UNKNOWN_OLDEST,
        WORKER_RESTARTS,
    },
    labels,
};
use crate::gateways::Call;

/// An answer. `route` is the template that matched (`/v1/payments/{id}`), never the path.
pub fn http_request(route: Option<&str>, method: &str, status: u16, duration: Duration) {
    let route = route.unwrap_or(labels::ROUTE_UNMATCHED).to_owned();
    let method = labels::method(method);
    counter!(
        HTTP_REQUESTS.name,
        "route" => route.clone(), "method" => method, "status" => status.to_string()
    )
    .increment(1);
    histogram!(HTTP_REQUEST_DURATION.name, "route" => route, "method" => method).record(duration);
}

pub fn key_used(key_use: KeyUse) {
    counter!(IDEMPOTENCY_REQUESTS.name, "outcome" => key_use.as_str()).increment(1);
}

/// A lease was found expired, by whoever found it.
pub fn lease_expired() {
    counter!(LEASES_EXPIRED.name).increment(1);
}

/// An owner noticed that it is none any more.
pub fn lease_lost() {
    counter!(LEASES_LOST.name).increment(1);
}

pub fn taken_over() {
    counter!(TAKEOVERS.name).increment(1);
}

/// What is in progress, as the database sees it; `oldest` is zero when nothing is.
pub fn processing_measured(records: u64, oldest: Duration) {
    gauge!(PROCESSING.name).set(float(records));
    gauge!(PROCESSING_OLDEST.name).set(oldest);
}

/// What is unknown, as the database sees it; `oldest` is zero when nothing is.
pub fn unknown_measured(records: u64, oldest: Duration) {
    gauge!(UNKNOWN.name).set(float(records));
    gauge!(UNKNOWN_OLDEST.name).set(oldest);
}

pub fn gateway_called(call: Call, outcome: GatewayOutcome, duration: Duration) {
    counter!(
        GATEWAY_EXECUTIONS.name,
        "call" => call.as_str(), "outcome" => outcome.as_str()
    )
    .increment(1);
    histogram!(GATEWAY_CALL_DURATION.name, "call" => call.as_str()).record(duration);
}

pub fn payment_settled(status: SettledStatus) {
    counter!(PAYMENTS_SETTLED.name, "status" => status.as_str()).increment(1);
}

/// A batch was deleted and committed.
pub fn cleaner_batch(rows: u64) {
    counter!(CLEANER_BATCHES.name).increment(1);
    counter!(CLEANER_ROWS_DELETED.name).increment(rows);
}

/// A round succeeded, also when it found nothing: the alert is about the time since then.
pub fn cleaner_finished(at: DateTime<Utc>, duration: Duration) {
    let at = u64::try_from(at.timestamp()).unwrap_or(0);
    gauge!(CLEANER_LAST_SUCCESS.name).set(float(at));
    histogram!(CLEANER_RUN_DURATION.name).record(duration);
}

pub fn cleaner_failed() {
    counter!(CLEANER_FAILURES.name).increment(1);
}

/// What is left to delete, and how large the table is.
pub fn cleaner_measured(backlog_rows: u64, table_bytes: u64) {
    gauge!(CLEANER_BACKLOG.name).set(float(backlog_rows));
    gauge!(CLEANER_TABLE_BYTES.name).set(float(table_bytes));
}

/// The pool as it is now.
pub fn connections(idle: u32, used: u32) {
    gauge!(CONNECTIONS.name, "state" => "idle").set(idle);
    gauge!(CONNECTIONS.name, "state" => "used").set(used);
}

pub fn connection_discarded() {
    counter!(CONNECTIONS_DISCARDED.name).increment(1);
}

pub fn database_retried(why: Retried) {
    counter!(DATABASE_RETRIES.name, "sqlstate" => why.as_str()).increment(1);
}

/// Called when a worker starts, so that its restarts are counted from zero. `worker` is a name in
/// the code.
pub fn worker_registered(worker: &'static str) {
    counter!(WORKER_RESTARTS.name, "worker" => worker).increment(0);
}

pub fn worker_restarted(worker: &'static str) {
    counter!(WORKER_RESTARTS.name, "worker" => worker).increment(1);
}

/// Gauges are floating point in Prometheus. Exact up to 2^53, which no count of ours reaches.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "there is no lossless conversion, and a gauge needs none"
)]
fn float(count: u64) -> f64 {
    count as f64
}
