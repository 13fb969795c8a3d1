//! The first check of all: a body that is too large or too slow is refused before anything else is
//! looked at, and what comes after has it whole.

use std::time::Duration;

use axum::{
    body::Body,
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::time::timeout;

use super::problem::{Problem, ProblemKind};
use crate::app::App;

/// Reads the body whole, within its limits.
pub async fn limit_body(State(app): State<App>, request: Request, next: Next) -> Response {
    let http = &app.settings.http;
    let (parts, body) = request.into_parts();
    match read(body, http.body_limit_bytes, http.body_read_timeout).await {
        Ok(bytes) => {
            next.run(Request::from_parts(parts, Body::from(bytes)))
                .await
        }
        Err(problem) => problem.into_response(),
    }
}

async fn read(body: Body, limit: usize, time: Duration) -> Result<Bytes, Problem> {
    let collected = timeout(time, Limited::new(body, limit).collect())
        .await
        .map_err(|_elapsed| {
            Problem::new(
                ProblemKind::RequestTimeout,
                "The body did not arrive in time.",
            )
        })?;
    match collected {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Problem::new(
            ProblemKind::BodyTooLarge,
            format!("The body is larger than {limit} bytes."),
        )),
        // The client has gone or broke the framing; whoever still listens learns that much.
        Err(_broken) => Err(Problem::new(
            ProblemKind::JsonMalformed,
            "The body did not arrive whole.",
        )),
    }
}
