//! The catalogue of problems (RFC 9457): each with a stable code, and whether and how to retry.

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::ids::PaymentId;

/// What a client may retry with. SDKs retry 409 and 5xx by themselves, so the advice is explicit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryWith {
    /// The same request under the same key; nothing can be executed twice by it.
    SameKey,
    /// A new request under a new key.
    NewKey,
    /// Nothing: it would end the same way.
    Never,
}

/// One row of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub status: StatusCode,
    pub code: &'static str,
    pub title: &'static str,
    pub retry_with: RetryWith,
    /// Seconds after which a retry makes sense; where there are some, the problem is retryable.
    pub retry_after: Option<u64>,
}

macro_rules! catalogue {
    ($($(#[$doc:meta])* $kind:ident = $status:ident, $code:literal, $title:literal, $retry:ident, $after:expr;)*) => {
        /// The kinds of problems.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ProblemKind {
            $($(#[$doc])* $kind,)*
        }

        impl ProblemKind {
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            pub const fn entry(self) -> Entry {
                match self {
                    $(Self::$kind => Entry {
                        status: StatusCode::$status,
                        code: $code,
                        title: $title,
                        retry_with: RetryWith::$retry,
                        retry_after: $after,
                    },)*
                }
            }
        }
    };
}

catalogue! {
    IdempotencyKeyMissing = BAD_REQUEST, "idempotency-key-missing",
        "An Idempotency-Key header is required", SameKey, None;
    IdempotencyKeyInvalid = BAD_REQUEST, "idempotency-key-invalid",
        "The Idempotency-Key header is not valid", NewKey, None;
    JsonMalformed = BAD_REQUEST, "json-malformed",
        "The body is not the JSON that is accepted here", SameKey, None;
    QueryInvalid = BAD_REQUEST, "query-invalid",
        "A query parameter is not valid", Never, None;
    Unauthenticated = UNAUTHORIZED, "unauthenticated",
        "A valid API key is required", SameKey, None;
    PaymentDeclined = PAYMENT_REQUIRED, "payment-declined",
        "The gateway declined the payment", NewKey, None;
    NotFound = NOT_FOUND, "not-found",
        "There is nothing here", Never, None;
    PaymentNotFound = NOT_FOUND, "payment-not-found",
        "There is no such payment", Never, None;
    IdempotencyKeyNotFound = NOT_FOUND, "idempotency-key-not-found",
        "This idempotency key was never used", Never, None;
    MethodNotAllowed = METHOD_NOT_ALLOWED, "method-not-allowed",
        "The method is not allowed here", Never, None;
    RequestTimeout = REQUEST_TIMEOUT, "request-timeout",
        "The body did not arrive in time", SameKey, Some(1);
    IdempotencyKeyInProgress = CONFLICT, "idempotency-key-in-progress",
        "The first request with this key is still in progress", SameKey, Some(1);
    IdempotencyKeyExpired = GONE, "idempotency-key-expired",
        "This key was used, and its answer is no longer kept", Never, None;
    BodyTooLarge = PAYLOAD_TOO_LARGE, "body-too-large",
        "The body is larger than is accepted here", SameKey, None;
    UnsupportedMediaType = UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type",
        "The body must be application/json", SameKey, None;
    ValidationFailed = UNPROCESSABLE_ENTITY, "validation-failed",
        "The request is not valid", SameKey, None;
    IdempotencyKeyReused = UNPROCESSABLE_ENTITY, "idempotency-key-reused",
        "This key belongs to another request", NewKey, None;
    InternalError = INTERNAL_SERVER_ERROR, "internal-error",
        "Something went wrong here", SameKey, Some(2);
    GatewayUnavailable = SERVICE_UNAVAILABLE, "gateway-unavailable",
        "The gateway did not execute the payment", SameKey, Some(2);
    ServiceUnavailable = SERVICE_UNAVAILABLE, "service-unavailable",
        "Nothing was executed", SameKey, Some(1);
    OutcomeUnknown = SERVICE_UNAVAILABLE, "outcome-unknown",
        "It is not known yet whether the request was executed", SameKey, Some(2);
}

/// What is wrong with one member of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ProblemMember {
    /// JSON pointer (RFC 6901) to the member; for a query parameter, its name.
    pub pointer: String,
    /// Stable, kebab-case.
    pub code: String,
    /// For people; never a value that was sent.
    pub message: String,
}

/// A problem that is on its way to a client.
///
/// As a response it is empty and carries itself along: the outermost middleware writes the body,
/// because only it knows the request id.
#[derive(Clone, Debug)]
pub struct Problem {
    pub kind: ProblemKind,
    pub detail: String,
    pub idempotency_key: Option<String>,
    pub payment_id: Option<String>,
    pub errors: Vec<ProblemMember>,
    pub retry_after: Option<u64>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            idempotency_key: None,
            payment_id: None,
            errors: Vec::new(),
            retry_after: kind.entry().retry_after,
            headers: Vec::new(),
        }
    }

    #[must_use]
    pub fn with_key(mut self, key: &str) -> Self {
        self.idempotency_key = Some(key.to_owned());
        self
    }

    #[must_use]
    pub fn with_payment(mut self, payment_id: PaymentId) -> Self {
        self.payment_id = Some(payment_id.to_string());
        self
    }

    #[must_use]
    pub fn with_errors(mut self, errors: Vec<ProblemMember>) -> Self {
        self.errors = errors;
        self
    }

    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    #[must_use]
    pub const fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The document, for the request that is answered.
    pub fn document(&self, request_id: &str) -> ProblemDocument {
        let entry = self.kind.entry();
        ProblemDocument {
            r#type: format!("/problems/{}", entry.code),
            title: entry.title.to_owned(),
            status: entry.status.as_u16(),
            detail: self.detail.clone(),
            instance: request_id.to_owned(),
            code: entry.code.to_owned(),
            retryable: entry.retry_after.is_some(),
            retry_with: entry.retry_with,
            idempotency_key: self.idempotency_key.clone(),
            payment_id: self.payment_id.clone(),
            errors: self.errors.clone(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.kind.entry().status.into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        for (name, value) in &self.headers {
            headers.append(name.clone(), value.clone());
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// The media type of a problem (RFC 9457, section 4).
pub const MEDIA_TYPE: &str = "application/problem+json";

/// A problem as a client reads it (RFC 9457, with our extensions).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ProblemDocument {
    /// Names the kind of problem; resolves at this service.
    pub r#type: String,
    pub title: String,
    pub status: u16,
    /// What happened this time.
    pub detail: String,
    /// The request id.
    pub instance: String,
    /// The kind of problem: stable, kebab-case.
    pub code: String,
    /// Whether the same request may succeed later, under the same key.
    pub retryable: bool,
    pub retry_with: RetryWith,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment_id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ProblemMember>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_kebab_case() {
        let mut codes: Vec<&str> = ProblemKind::ALL
            .iter()
            .map(|kind| kind.entry().code)
            .collect();
        for code in &codes {
            assert!(
                code.bytes()
                    .all(|byte| byte == b'-' || byte.is_ascii_lowercase()),
                "{code}"
            );
        }
        codes.sort_unstable();
        codes.dedup();

        assert_eq!(codes.len(), ProblemKind::ALL.len());
    }

    #[test]
    fn what_is_retried_is_retried_with_the_same_key() {
        for kind in ProblemKind::ALL {
            let entry = kind.entry();
            if entry.retry_after.is_some() {
                assert_eq!(entry.retry_with, RetryWith::SameKey, "{}", entry.code);
            }
        }
    }
}
