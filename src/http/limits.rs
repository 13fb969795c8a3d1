//! The first check of all: a body that is too large or too slow is refused before anything else is
//! looked at, and what comes after has it whole.

use std::time::Duration;

use axum::{
    body::{Body, HttpBody as _},
    extract::{Request, State},
    http::header,
    middleware::Next,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::time::{Instant, timeout, timeout_at};

use super::problem::{Problem, ProblemKind};
use crate::app::App;

/// How much of a refused body is still taken in and dropped. A connection that is closed while its
/// client sends takes the refusal with it: the client sees a reset and not why.
const DISCARDED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A client that sends nothing for so long waits for the answer.
const SILENCE: Duration = Duration::from_millis(500);

/// Reads the body whole, within its limits.
pub async fn limit_body(State(app): State<App>, request: Request, next: Next) -> Response {
    let http = &app.settings.http;
    let (parts, mut body) = request.into_parts();
    let limit = http.body_limit_bytes;
    let deadline = Instant::now() + http.body_read_timeout;
    // A body that is declared too large is not begun, so that a client which asks first
    // (RFC 9110, section 10.1.1) is refused before it sends.
    let read = if body.size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX) {
        Err(too_large(limit))
    } else {
        read(&mut body, limit, deadline).await
    };
    match read {
        Ok(bytes) => {
            next.run(Request::from_parts(parts, Body::from(bytes)))
                .await
        }
        Err(problem) => {
            if !parts.headers.contains_key(header::EXPECT) {
                let rest = Limited::new(body, DISCARDED_BYTES_MAX);
                drop(timeout_at(deadline, discard(rest)).await);
            }
            problem.into_response()
        }
    }
}

async fn read(body: &mut Body, limit: usize, deadline: Instant) -> Result<Bytes, Problem> {
    let collected = timeout_at(deadline, Limited::new(body, limit).collect())
        .await
        .map_err(|_elapsed| {
            Problem::new(
                ProblemKind::RequestTimeout,
                "The body did not arrive in time.",
            )
        })?;
    match collected {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(limit)),
        // The client has gone or broke the framing; whoever still listens learns that much.
        Err(_broken) => Err(Problem::new(
            ProblemKind::JsonMalformed,
            "The body did not arrive whole.",
        )),
    }
}

async fn discard(mut body: Limited<Body>) {
    while let Ok(Some(Ok(_dropped))) = timeout(SILENCE, body.frame()).await {}
}

fn too_large(limit: usize) -> Problem {
    Problem::new(
        ProblemKind::BodyTooLarge,
        format!("The body is larger than {limit} bytes."),
    )
}
