//! Which request is which call, and what the control endpoints answer.

use std::{collections::BTreeMap, io};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use serde_json::json;

use super::{
    Shared,
    ask::Ask,
    call::{self, Ended},
    faults::{self, Wish},
    look::{self, Look},
    render::{self, Answer, Replayed},
};

/// A form with fifty metadata of five hundred characters fits, each written as three.
const BODY_BYTES_MAX: usize = 256 * 1024;

const IDEMPOTENCY_KEY: &str = "idempotency-key";
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The connection is to be closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("dropped, as was asked for")]
pub(super) struct Dropped;

/// Answers one request.
pub(super) async fn handle(
    shared: Shared,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Dropped> {
    let key = request.headers().get(IDEMPOTENCY_KEY).cloned();
    let ended = dispatch(&shared, request).await.unwrap_or_else(|error| {
        tracing::error!(%error, "the sandbox's memory failed");
        Ended::Answered(render::status(500))
    });
    match ended {
        Ended::Dropped => Err(Dropped),
        Ended::Answered(answer) => Ok(response(answer, key)),
    }
}

async fn dispatch(shared: &Shared, request: Request<Incoming>) -> io::Result<Ended> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let query: BTreeMap<String, String> =
        form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes())
            .into_owned()
            .collect();
    let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else {
        return Ok(answered(render::invalid(
            "parameter_invalid",
            "The body is too long.",
        )));
    };
    let body = body.to_bytes();
    if segments.first() == Some(&"_sandbox") {
        return control(shared, &head.method, &segments, &query, &body).await;
    }
    let secret = head.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    if !secret.is_some_and(|secret| secret.starts_with(b"Bearer ") || secret.starts_with(b"Basic "))
    {
        return Ok(answered(render::unauthorized()));
    }
    let key = match head.headers.get(IDEMPOTENCY_KEY).map(HeaderValue::to_str) {
        None => None,
        Some(Ok(key)) if (1..=255).contains(&key.len()) => Some(key.to_owned()),
        Some(_) => {
            let message = "Idempotency-Key: 1 to 255 characters.";
            return Ok(answered(render::invalid("parameter_invalid", message)));
        }
    };
    if head.method == Method::POST
        && let Some(ask) = Ask::read(&segments, key, &body)
    {
        return match ask {
            Ok(ask) => call::post(shared, ask).await,
            Err(refusal) => Ok(answered(refusal)),
        };
    }
    if head.method == Method::GET
        && let Some(look) = Look::read(&segments, &query)
    {
        return match look {
            Ok(look) => look::get(shared, look).await,
            Err(refusal) => Ok(answered(refusal)),
        };
    }
    Ok(answered(render::missing("endpoint in this sandbox")))
}

async fn control(
    shared: &Shared,
    method: &Method,
    segments: &[&str],
    query: &BTreeMap<String, String>,
    body: &[u8],
) -> io::Result<Ended> {
    let answer = match (method.as_str(), segments) {
        ("POST", ["_sandbox", "faults"]) => ask_for(shared, body).await?,
        ("GET", ["_sandbox", "faults"]) => Answer::new(200, &shared.faults().document()),
        ("DELETE", ["_sandbox", "faults"]) => {
            shared.faults().clear();
            Answer::new(200, &json!({}))
        }
        ("GET", ["_sandbox", "effects"]) => {
            let key = query.get("gateway_key").cloned();
            let effects = shared
                .step(move |store| Ok(store.effects(key.as_deref())))
                .await?;
            Answer::new(200, &json!({"count": effects.len(), "effects": effects}))
        }
        _ => {
            let known = "POST, GET or DELETE /_sandbox/faults, GET /_sandbox/effects";
            told(404, known)
        }
    };
    Ok(answered(answer))
}

async fn ask_for(shared: &Shared, body: &[u8]) -> io::Result<Answer> {
    let added = match faults::read(body) {
        Ok(Wish::Fault(fault)) => shared.faults().add(fault),
        Ok(Wish::ForgetKeys) => {
            if !call::forget_keys(shared).await? {
                return Ok(told(409, "A request with a key is under way."));
            }
            Ok(())
        }
        Err(message) => Err(message),
    };
    Ok(match added {
        Ok(()) => Answer::new(201, &json!({})),
        Err(message) => told(400, &message),
    })
}

fn told(status: u16, message: &str) -> Answer {
    Answer::new(status, &json!({"error": {"message": message}}))
}

const fn answered(answer: Answer) -> Ended {
    Ended::Answered(answer)
}

fn response(answer: Answer, key: Option<HeaderValue>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    if let Some(key) = key {
        headers.insert(IDEMPOTENCY_KEY, key);
    }
    if answer.replayed == Replayed::Yes {
        headers.insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    let request_id = format!("req_{}", uuid::Uuid::new_v4().simple());
    if let Ok(request_id) = HeaderValue::try_from(request_id) {
        headers.insert("request-id", request_id);
    }
    response
}
