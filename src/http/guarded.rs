//! What the guard says, as a response: the situation table of D4.

use std::time::Duration;

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use uuid::Uuid;

use super::{
    answer,
    middleware::IDEMPOTENCY_KEY,
    prefer,
    problem::{Problem, ProblemKind, ProblemMember},
    views::{PaymentView, location, rfc3339},
};
use crate::{
    app::App,
    idempotency::{
        decide::Known,
        key::IdempotencyKey,
        record::Replay,
        run::{Answer, RunError},
    },
    ids::{MerchantId, PaymentId},
    payments::store::Find,
};

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const ORIGINAL_DATE: HeaderName = HeaderName::from_static("idempotency-original-date");
const ORIGINAL_REQUEST_ID: HeaderName = HeaderName::from_static("idempotency-original-request-id");

/// `Retry-After` of a request that is in progress: a second, and more as it gets older, so that a
/// herd on one slow key thins out.
const RETRY_AFTER_MAX: u64 = 5;

/// For how long an unknown outcome is not asked for again: the first rest of a parked record.
const UNRESOLVED_RETRY_AFTER: u64 = 2;

/// Answers a request under `key`.
pub async fn respond(
    app: &App,
    merchant_id: MerchantId,
    key: &IdempotencyKey,
    wait: Option<Duration>,
    answer: Result<Answer, RunError>,
) -> Response {
    let response = match answer {
        Ok(answer) => answered(app, merchant_id, key, answer).await,
        Err(error) => Err(error.into()),
    };
    let mut response = match response {
        Ok(response) => with_key(key, response),
        Err(problem) => refuse(key, problem),
    };
    if let Some((name, value)) = wait.and_then(prefer::applied) {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Refuses a request under `key`, before its claim or after: the client corrects the request, or
/// sends it again, and is told which key it may use for that.
pub fn refuse(key: &IdempotencyKey, problem: Problem) -> Response {
    let mut response = problem.with_key(key.as_str()).into_response();
    response
        .headers_mut()
        .insert(REPLAYED, HeaderValue::from_static("false"));
    with_key(key, response)
}

fn with_key(key: &IdempotencyKey, mut response: Response) -> Response {
    if let Ok(value) = HeaderValue::from_str(key.as_str()) {
        response.headers_mut().insert(IDEMPOTENCY_KEY, value);
    }
    response
}

async fn answered(
    app: &App,
    merchant_id: MerchantId,
    key: &IdempotencyKey,
    answer: Answer,
) -> Result<Response, Problem> {
    match answer {
        Answer::Executed(response) => {
            let mut response = answer::stored(response);
            response
                .headers_mut()
                .insert(REPLAYED, HeaderValue::from_static("false"));
            Ok(response)
        }
        Answer::Released => Err(Problem::new(
            ProblemKind::GatewayUnavailable,
            "The gateway certainly did not execute the payment. Send the same request with the \
             same key again.",
        )),
        Answer::Known(known) => known_answer(app, merchant_id, key, known).await,
    }
}

async fn known_answer(
    app: &App,
    merchant_id: MerchantId,
    key: &IdempotencyKey,
    known: Known,
) -> Result<Response, Problem> {
    match known {
        Known::Replay(replay) => Ok(replayed(replay)),
        Known::InProgress { age, .. } => Err(Problem::new(
            ProblemKind::IdempotencyKeyInProgress,
            "Another request with this key is in progress. Send the same request again later, or \
             with Prefer: wait=10.",
        )
        .retry_after((1 + age.as_secs() / 2).min(RETRY_AFTER_MAX))),
        Known::Unresolved { resource_id } => unresolved(app, merchant_id, resource_id).await,
        Known::Mismatch { operation, members } => Err(mismatch(&operation, members)),
        Known::Expired { resource_id, .. } => Err(Problem::new(
            ProblemKind::IdempotencyKeyExpired,
            format!(
                "The key {} was used, and its answer is no longer kept. Nothing was executed now. \
                 What it made is still there.",
                key.as_str()
            ),
        )
        .with_payment(PaymentId::from_uuid(resource_id))),
    }
}

/// The stored answer, with what a reader needs to know that it is a snapshot.
fn replayed(replay: Replay) -> Response {
    let mut response = answer::stored(replay.response);
    let latest = location(PaymentId::from_uuid(replay.resource_id));
    let headers = [
        (REPLAYED, "true".to_owned()),
        (ORIGINAL_DATE, rfc3339(replay.original_date)),
        (ORIGINAL_REQUEST_ID, replay.original_request_id),
        (header::LINK, format!("<{latest}>; rel=\"latest-version\"")),
    ];
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// 202 with the payment as it stands: never a replay, because the final answer is still to come.
async fn unresolved(
    app: &App,
    merchant_id: MerchantId,
    resource_id: Uuid,
) -> Result<Response, Problem> {
    let payment_id = PaymentId::from_uuid(resource_id);
    let found = app.database.run(&Find(&[(merchant_id, payment_id)])).await;
    let found = found.map_err(|error| Problem::from(RunError::OutcomeUnknown(Some(error))))?;
    // A payment that is gone was released between two statements.
    let Some(payment) = found.first() else {
        return Err(RunError::OutcomeUnknown(None).into());
    };
    let mut response = answer::json(StatusCode::ACCEPTED, &PaymentView::from(payment));
    let headers = response.headers_mut();
    headers.insert(REPLAYED, HeaderValue::from_static("false"));
    headers.insert(
        header::RETRY_AFTER,
        HeaderValue::from(UNRESOLVED_RETRY_AFTER),
    );
    if let Ok(value) = HeaderValue::try_from(location(payment_id)) {
        headers.insert(header::LOCATION, value);
    }
    Ok(response)
}

/// Section 2.7 of the IETF draft: 422, also while the first request is in progress. SDKs retry 409
/// by themselves, and this must not be retried.
fn mismatch(operation: &str, members: Vec<String>) -> Problem {
    // Where no member differs, the client should not look for one.
    let elsewhere = if members.is_empty() {
        ", with another operation, path or query"
    } else {
        ""
    };
    let errors = members
        .into_iter()
        .map(|pointer| ProblemMember {
            pointer,
            code: "differs".to_owned(),
            message: "differs from the first request with this key".to_owned(),
        })
        .collect();
    Problem::new(
        ProblemKind::IdempotencyKeyReused,
        format!(
            "The key was first used for another request of {operation}{elsewhere}. Nothing was \
             executed."
        ),
    )
    .with_errors(errors)
}
