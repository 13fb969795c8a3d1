//! The published policy of idempotency keys, which the IETF draft (section 2.3) requires, and the
//! catalogue of problems.

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    answer,
    path::PathSegment,
    prefer::WAIT_MAX_SECONDS,
    problem::{Problem, ProblemKind, RetryWith},
};
use crate::{app::App, idempotency::key::KEY_BYTES_MAX};

/// The version in the paths.
const API_VERSION: &str = "v1";

/// What a client may rely on.
#[derive(Debug, Serialize, ToSchema)]
pub struct MetaView {
    #[schema(value_type = String, example = "v1")]
    api_version: &'static str,
    #[schema(value_type = String)]
    service_version: &'static str,
    idempotency_key: KeyPolicyView,
    /// Bytes of a request body that are accepted.
    body_limit_bytes: usize,
}

/// The policy of idempotency keys.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyPolicyView {
    /// `required`, or `optional`: then a missing key is made by the service and echoed.
    #[schema(value_type = String, example = "required")]
    policy: &'static str,
    length_min: usize,
    length_max: usize,
    /// What a key may be made of.
    #[schema(value_type = String)]
    alphabet: &'static str,
    /// For how long an answer is replayed, by the status of the record. Afterwards the key answers
    /// 410 for ever.
    ttl_seconds: TtlView,
    /// The longest `Prefer: wait` that is honoured.
    wait_max_seconds: u64,
}

/// Times to live.
#[derive(Debug, Serialize, ToSchema)]
pub struct TtlView {
    completed: u64,
    failed: u64,
}

/// The policy of idempotency keys
#[utoipa::path(
    get,
    path = "/v1/meta",
    operation_id = "get_meta",
    tag = "meta",
    responses((status = 200, description = "What a client may rely on", body = MetaView))
)]
pub async fn get(State(app): State<App>) -> Response {
    let idempotency = &app.settings.idempotency;
    let view = MetaView {
        api_version: API_VERSION,
        service_version: env!("CARGO_PKG_VERSION"),
        idempotency_key: KeyPolicyView {
            policy: idempotency.key_policy.as_str(),
            length_min: 1,
            length_max: KEY_BYTES_MAX,
            alphabet: "visible ASCII without \" , and \\",
            ttl_seconds: TtlView {
                completed: idempotency.ttl_completed.as_secs(),
                failed: idempotency.ttl_failed.as_secs(),
            },
            wait_max_seconds: WAIT_MAX_SECONDS,
        },
        body_limit_bytes: app.settings.http.body_limit_bytes,
    };
    answer::json(StatusCode::OK, &view)
}

/// One row of the catalogue, which the `type` of a problem leads to.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemTypeView {
    r#type: String,
    #[schema(value_type = String)]
    code: &'static str,
    #[schema(value_type = String)]
    title: &'static str,
    status: u16,
    retryable: bool,
    retry_with: RetryWith,
}

/// A problem type
#[utoipa::path(
    get,
    path = "/problems/{code}",
    operation_id = "get_problem_type",
    tag = "meta",
    params(("code" = String, Path, description = "The `code` of a problem")),
    responses(
        (status = 200, description = "What the problem means", body = ProblemTypeView),
        (status = 404, description = "There is no such problem",
            body = super::problem::ProblemDocument),
    )
)]
pub async fn problem_type(PathSegment(code): PathSegment) -> Response {
    let entry = ProblemKind::ALL
        .iter()
        .map(|kind| kind.entry())
        .find(|entry| entry.code == code);
    let Some(entry) = entry else {
        return Problem::new(ProblemKind::NotFound, "There is no such problem.").into_response();
    };
    let view = ProblemTypeView {
        r#type: format!("/problems/{}", entry.code),
        code: entry.code,
        title: entry.title,
        status: entry.status.as_u16(),
        retryable: entry.retry_after.is_some(),
        retry_with: entry.retry_with,
    };
    answer::json(StatusCode::OK, &view)
}
