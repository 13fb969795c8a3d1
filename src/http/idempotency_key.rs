//! The `Idempotency-Key` of a request, under the policy of the deployment.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderValue, request::Parts},
};
use uuid::Uuid;

use super::{middleware::IDEMPOTENCY_KEY, problem::Problem};
use crate::{
    app::App,
    config::KeyPolicy,
    idempotency::key::{IdempotencyKey, KeyError},
    telemetry::metrics::{self, KeyUse},
};

/// The key under which a request runs. Taking it as an argument is what makes it required.
#[derive(Clone, Debug)]
pub struct RequestKey(pub IdempotencyKey);

impl FromRequestParts<App> for RequestKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let error = match read(&parts.headers) {
            Ok(key) => return Ok(Self(key)),
            Err(error) => error,
        };
        if error != KeyError::Missing {
            metrics::key_used(KeyUse::Invalid);
            return Err(error.into());
        }
        metrics::key_used(KeyUse::Missing);
        match app.settings.idempotency.key_policy {
            KeyPolicy::Required => Err(error.into()),
            KeyPolicy::Optional => Ok(Self(made_here()?)),
        }
    }
}

fn read(headers: &HeaderMap) -> Result<IdempotencyKey, KeyError> {
    let values = headers.get_all(IDEMPOTENCY_KEY);
    IdempotencyKey::parse_header_values(values.iter().map(HeaderValue::as_bytes))
}

/// A key for a client that sent none; it is echoed, so that a retry can use it.
fn made_here() -> Result<IdempotencyKey, KeyError> {
    IdempotencyKey::from_path_segment(Uuid::new_v4().to_string().as_bytes())
}
