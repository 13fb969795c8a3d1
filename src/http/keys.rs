//! Did my request go through? What is known of an idempotency key, never the body.

use axum::{extract::State, http::StatusCode, response::Response};
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    answer,
    auth::Caller,
    path::PathSegment,
    problem::{Problem, ProblemDocument, ProblemKind},
    views::rfc3339,
};
use crate::{
    app::App,
    idempotency::{
        key::IdempotencyKey,
        record::{Record, RecordState, Sighting},
        store::Read,
    },
    ids::PaymentId,
};

/// What is known of a key.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyView {
    #[schema(value_type = String, example = "idempotency_key")]
    object: &'static str,
    idempotency_key: String,
    /// `processing`, `completed` (a 2xx is stored), `failed` (a 4xx is stored), `released`
    /// (nothing was executed; the same request may be sent again) or `expired`.
    #[schema(value_type = String, example = "completed")]
    status: &'static str,
    /// Whether it is not known what the gateway did; the key answers 202 while it is so.
    outcome_unknown: bool,
    #[schema(example = "payments.create")]
    operation: String,
    /// What the key made; null for a released key, which made nothing.
    resource_id: Option<String>,
    /// The HTTP status that is replayed.
    response_status: Option<u16>,
    /// How often the work was begun; null once the record is deleted.
    attempts: Option<i32>,
    created_at: Option<String>,
    completed_at: Option<String>,
    expires_at: Option<String>,
}

/// What is known of an idempotency key
#[utoipa::path(
    get,
    path = "/v1/idempotency-keys/{key}",
    operation_id = "get_idempotency_key",
    tag = "idempotency keys",
    params(("key" = String, Path, description = "The key, percent-encoded")),
    responses(
        (status = 200, description = "What is known of it", body = KeyView),
        (status = 400, description = "Not an idempotency key", body = ProblemDocument),
        (status = 401, description = "No valid API key", body = ProblemDocument),
        (status = 404, description = "This merchant never used the key", body = ProblemDocument),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument),
    ),
    security(("api_key" = []))
)]
pub async fn get(
    State(app): State<App>,
    caller: Caller,
    PathSegment(segment): PathSegment,
) -> Result<Response, Problem> {
    let key = IdempotencyKey::from_path_segment(segment.as_bytes())?;
    let seen = app
        .database
        .run(&Read(&[(caller.merchant_id, key.clone())]))
        .await?;
    let view = match seen.into_iter().next() {
        Some(Sighting::Present(record)) => known(&key, *record),
        Some(Sighting::Deleted {
            resource_id,
            operation,
        }) => {
            let resource_id = Some(PaymentId::from_uuid(resource_id).to_string());
            KeyView {
                resource_id,
                ..bare(&key, "expired", operation)
            }
        }
        Some(Sighting::Absent) | None => {
            let detail = "This merchant never used this key, or it was released and has expired.";
            return Err(Problem::new(ProblemKind::IdempotencyKeyNotFound, detail));
        }
    };
    Ok(answer::json(StatusCode::OK, &view))
}

fn known(key: &IdempotencyKey, record: Record) -> KeyView {
    let shown = |at: Option<DateTime<Utc>>| at.map(rfc3339);
    let (status, response_status) = match &record.state {
        RecordState::Held { .. } | RecordState::Left { .. } => ("processing", None),
        RecordState::Finished(response) if response.status < 300 => {
            ("completed", Some(response.status))
        }
        RecordState::Finished(response) => ("failed", Some(response.status)),
        RecordState::Released => ("released", None),
        RecordState::Expired => ("expired", None),
    };
    let made = record.state != RecordState::Released;
    KeyView {
        outcome_unknown: matches!(
            record.state,
            RecordState::Held { unknown: true } | RecordState::Left { unknown: true }
        ),
        resource_id: made.then(|| PaymentId::from_uuid(record.resource_id).to_string()),
        response_status,
        attempts: Some(record.attempts),
        created_at: shown(Some(record.created_at)),
        completed_at: shown(record.completed_at),
        expires_at: shown(record.expires_at),
        ..bare(key, status, record.operation)
    }
}

fn bare(key: &IdempotencyKey, status: &'static str, operation: String) -> KeyView {
    KeyView {
        object: "idempotency_key",
        idempotency_key: key.as_str().to_owned(),
        status,
        outcome_unknown: false,
        operation,
        resource_id: None,
        response_status: None,
        attempts: None,
        created_at: None,
        completed_at: None,
        expires_at: None,
    }
}
