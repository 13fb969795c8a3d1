//! Every metric: name, kind, labels, what it says.

use metrics::Label;

use super::labels;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) labels: &'static [LabelSet],
    pub(super) description: &'static str,
}

/// A label, and the values that exist from the start.
pub(super) type LabelSet = (&'static str, &'static [&'static str]);

impl Metric {
    const fn new(
        kind: Kind,
        name: &'static str,
        labels: &'static [LabelSet],
        description: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            labels,
            description,
        }
    }

    /// Every combination of the label values that exist from the start; one without labels.
    pub(super) fn series(&self) -> Vec<Vec<Label>> {
        let mut series = vec![Vec::new()];
        for (label, values) in self.labels {
            series = series
                .iter()
                .flat_map(|labels| {
                    values.iter().map(|value| {
                        let mut labels: Vec<Label> = labels.clone();
                        labels.push(Label::from_static_parts(label, value));
                        labels
                    })
                })
                .collect();
        }
        series
    }
}

macro_rules! metrics {
    ($($constant:ident: $kind:ident $name:literal $labels:expr, $description:literal;)*) => {
        $(pub(super) const $constant: Metric =
            Metric::new(Kind::$kind, $name, $labels, $description);)*

        pub(super) const METRICS: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    // Routes and statuses come with the router; one series stands for them until the first answer.
    HTTP_REQUESTS: Counter "http_requests_total"
        &[labels::ROUTE, labels::METHOD, labels::STATUS],
        "Answers, by route template, method and status.";
    HTTP_REQUEST_DURATION: Histogram "http_request_duration_seconds"
        &[labels::ROUTE, labels::METHOD],
        "Time from the request's headers to the answer.";

    IDEMPOTENCY_REQUESTS: Counter "idempotency_requests_total" &[labels::KEY_USE],
        "Requests by what their idempotency key led to.";
    LEASES_EXPIRED: Counter "idempotency_leases_expired_total" &[],
        "Leases that were found expired: their owner died or was stuck.";
    LEASES_LOST: Counter "idempotency_leases_lost_total" &[],
        "Owners that noticed that their record was taken over.";
    TAKEOVERS: Counter "idempotency_takeovers_total" &[],
        "Records taken over from another owner.";
    PROCESSING: Gauge "idempotency_processing" &[],
        "Records in progress.";
    PROCESSING_OLDEST: Gauge "idempotency_processing_oldest_seconds" &[],
        "Age of the oldest record in progress.";
    UNKNOWN: Gauge "idempotency_unknown" &[],
        "Records whose outcome at the gateway is not known.";
    UNKNOWN_OLDEST: Gauge "idempotency_unknown_oldest_seconds" &[],
        "How long the oldest unknown outcome has been unknown.";

    GATEWAY_EXECUTIONS: Counter "gateway_executions_total"
        &[labels::GATEWAY_CALL, labels::GATEWAY_OUTCOME],
        "Calls to the gateway, by what is known of their effect.";
    GATEWAY_CALL_DURATION: Histogram "gateway_call_duration_seconds" &[labels::GATEWAY_CALL],
        "Time that gateway calls took.";
    PAYMENTS_SETTLED: Counter "payments_settled_total" &[labels::SETTLED_STATUS],
        "Payments settled, by the status they got; to be compared with gateway executions.";

    CLEANER_ROWS_DELETED: Counter "cleaner_rows_deleted_total" &[],
        "Expired records deleted.";
    CLEANER_BATCHES: Counter "cleaner_batches_total" &[],
        "Batches that the cleaner deleted.";
    CLEANER_RUN_DURATION: Histogram "cleaner_run_duration_seconds" &[],
        "Time that one round of the cleaner took.";
    CLEANER_LAST_SUCCESS: Gauge "cleaner_last_success_timestamp_seconds" &[],
        "When a round of the cleaner last succeeded, in Unix time; 0 before the first.";
    CLEANER_BACKLOG: Gauge "cleaner_backlog_rows" &[],
        "Records that are expired and not deleted yet.";
    CLEANER_TABLE_BYTES: Gauge "cleaner_table_bytes" &[],
        "Size of the table of records, with its indexes.";
    CLEANER_FAILURES: Counter "cleaner_failures_total" &[],
        "Rounds of the cleaner that failed.";

    CONNECTIONS: Gauge "database_connections" &[labels::CONNECTION_STATE],
        "Connections of the pool.";
    CONNECTIONS_DISCARDED: Counter "database_connections_discarded_total" &[],
        "Pooled connections found unfit (inside a transaction, or read-only) and closed.";
    DATABASE_RETRIES: Counter "database_retries_total" &[labels::RETRIED],
        "Database steps done again after a transient failure.";
    WORKER_RESTARTS: Counter "worker_restarts_total" &[labels::WORKER],
        "Background workers started again after a failure.";
}
