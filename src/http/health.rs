//! Liveness without I/O, readiness with it, and the metrics.

use axum::{extract::State, http::StatusCode, response::Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::answer;
use crate::{app::App, db::step::Ping};

/// How the service is.
#[derive(Debug, Serialize, ToSchema)]
pub struct HealthView {
    /// `ok`, `draining`, `database-unreachable` or `schema-not-current`.
    #[schema(value_type = String, example = "ok")]
    status: &'static str,
}

/// The process is alive
#[utoipa::path(get, path = "/livez", tag = "health",
    responses((status = 200, description = "It answers", body = HealthView)))]
pub async fn livez() -> Response {
    answer::json(StatusCode::OK, &HealthView { status: "ok" })
}

/// The service can take payments
#[utoipa::path(get, path = "/readyz", tag = "health",
    responses(
        (status = 200, description = "Send requests", body = HealthView),
        (status = 503, description = "Send requests to another instance", body = HealthView),
    ))]
pub async fn readyz(State(app): State<App>) -> Response {
    let status = if app.tasks.stopping() {
        "draining"
    } else {
        match app.database.run(&Ping).await {
            Ok(true) => "ok",
            Ok(false) => "schema-not-current",
            Err(_unreachable) => "database-unreachable",
        }
    };
    let code = if status == "ok" {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    answer::json(code, &HealthView { status })
}
