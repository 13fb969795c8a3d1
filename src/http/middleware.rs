//! What every request passes: its id and span, a task of its own, and the headers of every answer.

use std::sync::Arc;

use axum::{
    Extension,
    body::Body,
    extract::{MatchedPath, Request, State},
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::{
    error::{internal_error, not_found, overloaded},
    problem::{MEDIA_TYPE, Problem},
};
use crate::{app::App, ids::RequestId, telemetry::metrics};

pub const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Read by SDKs that Stainless makes.
const X_SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// Read by Stripe's SDKs.
const STRIPE_SHOULD_RETRY: HeaderName = HeaderName::from_static("stripe-should-retry");

/// The request as it is known from the first moment.
#[derive(Clone, Copy, Debug)]
pub struct RequestContext {
    pub request_id: RequestId,
}

/// The outermost layer: gives the request its id and span, and the answer what every answer has.
pub async fn outermost(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let request_id = RequestId::generate(app.clock.now());
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map(|path| known_route(path.as_str()).to_owned());
    let method = request.method().clone();
    let span = tracing::info_span!("request", %request_id, %method, route = route.as_deref());
    request
        .extensions_mut()
        .insert(RequestContext { request_id });

    let response = next.run(request).instrument(span.clone()).await;
    let response = finished(response, request_id);

    let status = response.status();
    metrics::http_request(
        route.as_deref(),
        method.as_str(),
        status.as_u16(),
        started.elapsed(),
    );
    span.in_scope(|| {
        let duration_ms = started.elapsed().as_millis();
        if status.is_server_error() {
            tracing::warn!(status = status.as_u16(), duration_ms, "answered");
        } else {
            tracing::debug!(status = status.as_u16(), duration_ms, "answered");
        }
    });
    response
}

/// Runs the request, which has arrived whole, in a task that a client who goes away does not cancel.
///
/// A handler that is dropped in the middle of a database call would leave a connection nobody can
/// trust. The task is tracked, so shutdown waits for it. Its place is its own as well: a client that
/// goes away frees its connection at once, and could begin any number of requests otherwise.
pub async fn detached(State(app): State<App>, request: Request, next: Next) -> Response {
    let Ok(place) = Arc::clone(&app.requests).try_acquire_owned() else {
        return overloaded().into_response();
    };
    let work = app.tasks.spawn(
        async move {
            let response = next.run(request).await;
            drop(place);
            response
        }
        .in_current_span(),
    );
    work.await
        .unwrap_or_else(|_panic| internal_error().into_response())
}

/// Paths of assets are not known beforehand: one label for all of them.
fn known_route(route: &str) -> &str {
    if route.starts_with("/docs") {
        "/docs"
    } else {
        route
    }
}

/// Writes the body of a problem, and the headers that every answer has.
fn finished(mut response: Response, request_id: RequestId) -> Response {
    let request_id = request_id.to_string();
    let problem = response.extensions_mut().remove::<Problem>();
    if let Some(problem) = problem.or_else(|| of_others(&response)) {
        let document = problem.document(&request_id);
        let body = serde_json::to_vec(&document).unwrap_or_default();
        *response.body_mut() = Body::from(body);
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_LENGTH);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        should_retry(headers, document.retryable);
    } else if response.status().as_u16() >= 400 {
        // A stored decline is final; a service that is not ready may be later.
        let later = response.status().is_server_error();
        should_retry(response.headers_mut(), later);
    }
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        headers.insert(REQUEST_ID, value);
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// The pages of the API's description come from another crate, which answers errors in its words.
fn of_others(response: &Response) -> Option<Problem> {
    let media_type = response.headers().get(header::CONTENT_TYPE);
    if media_type.is_some_and(|media_type| media_type.as_bytes().ends_with(b"json")) {
        return None;
    }
    match response.status() {
        StatusCode::NOT_FOUND => Some(not_found()),
        status if status.is_server_error() => Some(internal_error()),
        _ => None,
    }
}

fn should_retry(headers: &mut axum::http::HeaderMap, retry: bool) {
    let value = HeaderValue::from_static(if retry { "true" } else { "false" });
    headers.insert(X_SHOULD_RETRY, value.clone());
    headers.insert(STRIPE_SHOULD_RETRY, value);
}

/// What a handler knows of the request besides its own part.
pub type Context = Extension<RequestContext>;
