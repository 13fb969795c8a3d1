//! The one variable segment of our paths, percent-decoded.

use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};

use super::{error::not_found, problem::Problem};

#[derive(Clone, Debug)]
pub struct PathSegment(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathSegment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // Refused when a segment is not UTF-8 after decoding: such a thing has no name here.
        let segments = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|_undecodable| not_found())?;
        let segment = segments.iter().next().map(|(_, value)| value.to_owned());
        segment.map(Self).ok_or_else(not_found)
    }
}
