//! Answers in JSON, and stored answers as they were.

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};
use serde::Serialize;

use crate::idempotency::record::StoredResponse;

/// An answer in JSON.
pub fn json(status: StatusCode, document: &impl Serialize) -> Response {
    let body = serde_json::to_vec(document).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

/// A stored answer, byte for byte: status, body, and the headers that are replayed.
pub fn stored(response: StoredResponse) -> Response {
    let mut answer = Response::new(Body::from(response.body));
    *answer.status_mut() =
        StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in response.headers {
        let name = HeaderName::try_from(name);
        let value = HeaderValue::try_from(value);
        if let (Ok(name), Ok(value)) = (name, value) {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}
