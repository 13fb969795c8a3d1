//! Which path leads where, and what every request passes on its way.

use axum::{
    Router,
    extract::Request,
    http::{HeaderName, HeaderValue, Method},
    middleware::{from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
    routing,
};
use metrics_exporter_prometheus::PrometheusHandle;
use utoipa::OpenApi as _;
use utoipa_axum::{router::OpenApiRouter, routes};
use utoipa_swagger_ui::SwaggerUi;

use super::{
    error::not_found,
    health, keys,
    limits::limit_body,
    meta,
    middleware::{IDEMPOTENCY_KEY, detached, outermost},
    openapi::{Api, complete},
    payments,
    problem::{Problem, ProblemKind},
};
use crate::app::App;

const IDEMPOTENCY_STATUS: HeaderName = HeaderName::from_static("idempotency-status");

/// The service.
pub fn router(app: App) -> Router {
    let (routes, document) = described_routes();
    routes
        .merge(SwaggerUi::new("/docs").url("/openapi.json", document))
        .fallback(async || not_found())
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn(say_ignored))
        .layer(from_fn_with_state(app.clone(), detached))
        .layer(from_fn_with_state(app.clone(), limit_body))
        .layer(from_fn_with_state(app.clone(), outermost))
        .with_state(app)
}

/// The description of the API.
pub fn document() -> utoipa::openapi::OpenApi {
    described_routes().1
}

fn described_routes() -> (Router<App>, utoipa::openapi::OpenApi) {
    let (routes, mut document) = routes().split_for_parts();
    complete(&mut document);
    (routes, document)
}

fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(payments::create, payments::list))
        .routes(routes!(payments::get))
        .routes(routes!(keys::get))
        .routes(routes!(meta::get))
        .routes(routes!(meta::problem_type))
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
}

/// What is served on `METRICS_ADDR`, which is not for merchants.
pub fn metrics_router(handle: PrometheusHandle) -> Router {
    Router::new().route(
        "/metrics",
        routing::get(move || async move {
            (
                [("content-type", "text/plain; version=0.0.4; charset=utf-8")],
                handle.render(),
            )
        }),
    )
}

/// Says so where a key is sent to a path that is not guarded: reads need none, and a client that
/// believes itself protected would be wrong.
async fn say_ignored(request: Request, next: axum::middleware::Next) -> Response {
    let guarded =
        request.method() == Method::POST && request.uri().path().starts_with("/v1/payments");
    let ignored = !guarded && request.headers().contains_key(IDEMPOTENCY_KEY);
    let mut response = next.run(request).await;
    if ignored {
        response
            .headers_mut()
            .insert(IDEMPOTENCY_STATUS, HeaderValue::from_static("ignored"));
    }
    response
}

async fn method_not_allowed() -> Response {
    Problem::new(
        ProblemKind::MethodNotAllowed,
        "This path does not know this method.",
    )
    .into_response()
}
