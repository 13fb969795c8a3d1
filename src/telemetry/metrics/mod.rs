//! Metrics for Prometheus: what exists is in `declared`, what a label may say in `labels`, and
//! `record` has one function per thing that happens.
//!
//! Every series whose labels are known is registered at zero, so that a rate is right from the
//! first event on and an alert does not wait for a metric to appear. Cardinality is bounded: a
//! label is an enum, a route template or a name from the code, never text from a request.

mod declared;
mod labels;
mod record;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, PoisonError};

use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

pub use self::{
    labels::{GatewayOutcome, KeyUse, Retried, SettledStatus},
    record::{
        cleaner_batch, cleaner_failed, cleaner_finished, cleaner_measured, connection_discarded,
        connections, database_retried, gateway_called, http_request, key_used, lease_expired,
        lease_lost, payment_settled, processing_measured, taken_over, unknown_measured,
        worker_registered, worker_restarted,
    },
};
use declared::{Kind, METRICS};

/// Answers and gateway calls, in seconds. Close together below 10 ms, where replays and our own
/// part of a payment are; then up to the gateway's usual second; then its time limit (10 s) and
/// the request's (30 s), because what piles up at a limit is what somebody will look for.
const LATENCY_BUCKETS: [f64; 15] = [
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0,
];

/// Rounds of the cleaner, in seconds: from nothing to do to a backlog of an outage.
const CLEANER_BUCKETS: [f64; 8] = [0.01, 0.05, 0.25, 1.0, 5.0, 30.0, 120.0, 600.0];

static INSTALLED: Mutex<Option<PrometheusHandle>> = Mutex::new(None);

/// Why nothing would be measured.
#[derive(Debug, thiserror::Error)]
#[error("metrics cannot be set up")]
pub struct MetricsError(#[from] BuildError);

/// Makes this process measure itself. The second call answers with what the first one made.
///
/// Whoever holds the handle calls `run_upkeep` regularly, scraped or not: histograms keep single
/// values until then.
pub fn install() -> Result<PrometheusHandle, MetricsError> {
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*installed {
        return Ok(handle.clone());
    }
    let recorder = build()?;
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(BuildError::from)?;
    register();
    *installed = Some(handle.clone());
    Ok(handle)
}

fn build() -> Result<PrometheusRecorder, BuildError> {
    let cleaner = Matcher::Full(declared::CLEANER_RUN_DURATION.name.to_owned());
    Ok(PrometheusBuilder::new()
        .set_buckets(&LATENCY_BUCKETS)?
        .set_buckets_for_metric(cleaner, &CLEANER_BUCKETS)?
        .build_recorder())
}

/// Describes every metric and makes its series, in whichever recorder is current.
fn register() {
    for metric in METRICS {
        match metric.kind {
            Kind::Counter => metrics::describe_counter!(metric.name, metric.description),
            Kind::Gauge => metrics::describe_gauge!(metric.name, metric.description),
            Kind::Histogram => metrics::describe_histogram!(metric.name, metric.description),
        }
        for labels in metric.series() {
            match metric.kind {
                Kind::Counter => metrics::counter!(metric.name, labels).increment(0),
                Kind::Gauge => metrics::gauge!(metric.name, labels).set(0.0),
                Kind::Histogram => drop(metrics::histogram!(metric.name, labels)),
            }
        }
    }
}
