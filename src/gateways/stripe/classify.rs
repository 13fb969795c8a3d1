//! The one table that turns (transport error, status, type and code) into an [`Outcome`].
//!
//! | what came | outcome |
//! | --- | --- |
//! | no connection: refused, no address, no TLS, not in time | `NotExecuted(Unreachable)` |
//! | no whole answer in time | `Unknown(Timeout)` |
//! | connection lost after the first byte, or no HTTP | `Unknown(LostReply)` |
//! | answer too long, not JSON, of another type, of an unknown state, 1xx, 3xx, 5xx | `Unknown(GatewayError)` |
//! | 5xx that is the key's first answer again | `Unknown(ErrorReplayed)` |
//! | 2xx with the object that was asked for | what the object says ([`state`]) |
//! | 409, 429 `lock_timeout`, 400 `idempotency_key_in_use` | `Unknown(InUse)` |
//! | 400, 404 `idempotency_error` | `Unknown(ParametersDiffer)` |
//! | 400, 402, 403, 404 `card_error` | `Declined`, with Stripe's code |
//! | 401, 403 | `NotExecuted(Refused)`, and an error in the log |
//! | 429 without a code | `NotExecuted(Refused)` |
//! | 400, 404 | `Declined(gateway-rejected)`, and an error in the log |
//! | a cancel of what is canceled, a capture that this key made | `Approved` |
//! | anything else | `Unknown(GatewayError)` |
//!
//! A refusal counts only in Stripe's own form. A page of something that stands between us and
//! Stripe says nothing about what happened behind it.

#![deny(clippy::wildcard_enum_match_arm)]

use hyper::StatusCode;

use super::{
    decline,
    form::{Asked, Subject},
    state,
    wire::{ApiError, ErrorDocument, PaymentIntent, Refund},
};
use crate::{
    gateways::{
        NotExecuted, Outcome, Unknown,
        http_client::{Reply, TransportError},
    },
    telemetry::error_chain,
};

/// How Stripe marks an answer that it has kept with its key.
const REPLAYED: &str = "idempotent-replayed";

const GATEWAY_ERROR: Outcome = Outcome::Unknown(Unknown::GatewayError);

/// What a send did, judged by what came back.
pub(super) fn classify(asked: &Asked, reply: &Result<Reply, TransportError>) -> Outcome {
    match reply {
        Ok(reply) if reply.status.is_success() => of_object(asked, &reply.body),
        Ok(reply) => of_refusal(asked, reply),
        Err(error) => {
            tracing::warn!(error = %error_chain(error), "no answer from Stripe");
            of_transport(error)
        }
    }
}

const fn of_transport(error: &TransportError) -> Outcome {
    match error {
        TransportError::Unreachable(_) => Outcome::NotExecuted(NotExecuted::Unreachable),
        TransportError::Timeout => Outcome::Unknown(Unknown::Timeout),
        TransportError::Lost(_) => Outcome::Unknown(Unknown::LostReply),
        TransportError::TooLong => GATEWAY_ERROR,
    }
}

fn of_object(asked: &Asked, body: &[u8]) -> Outcome {
    let read = match &asked.subject {
        Subject::Authorize { .. } | Subject::Capture { .. } | Subject::Cancel { .. } => {
            serde_json::from_slice::<PaymentIntent>(body)
                .map(|intent| state::of_intent(asked, &intent))
        }
        Subject::Refund { .. } => {
            serde_json::from_slice::<Refund>(body).map(|refund| state::of_refund(asked, &refund))
        }
    };
    read.unwrap_or_else(|error| {
        // The error repeats no more than a word of the document.
        tracing::error!(%error, "Stripe's answer cannot be read");
        GATEWAY_ERROR
    })
}

fn of_refusal(asked: &Asked, reply: &Reply) -> Outcome {
    let status = reply.status;
    let document = serde_json::from_slice::<ErrorDocument>(&reply.body);
    let request_id = reply
        .headers
        .get("request-id")
        .and_then(|id| id.to_str().ok());
    if status == StatusCode::CONFLICT {
        return Outcome::Unknown(Unknown::InUse);
    }
    let (true, Ok(ErrorDocument { error })) = (status.is_client_error(), document) else {
        tracing::warn!(%status, request_id, "a server error of Stripe's");
        return of_server_error(reply);
    };
    let outcome = of_error(asked, status, &error);
    if alerts(status, &outcome) {
        let (kind, code) = (&error.kind, &error.code);
        tracing::error!(%status, kind, code, request_id, "Stripe refuses what we send");
    }
    outcome
}

/// An error that Stripe keeps as the key's answer comes back for as long as it keeps it.
fn of_server_error(reply: &Reply) -> Outcome {
    let replayed = reply.headers.get(REPLAYED);
    if reply.status.is_server_error() && replayed.is_some_and(|value| value == "true") {
        Outcome::Unknown(Unknown::ErrorReplayed)
    } else {
        GATEWAY_ERROR
    }
}

fn of_error(asked: &Asked, status: StatusCode, error: &ApiError) -> Outcome {
    let code = error.code.as_deref();
    match (status.as_u16(), error.kind.as_str()) {
        (429, _) if code.is_none() => Outcome::NotExecuted(NotExecuted::Refused),
        (429, _) if code == Some("lock_timeout") => Outcome::Unknown(Unknown::InUse),
        (400 | 404, "idempotency_error") if code == Some("idempotency_key_in_use") => {
            Outcome::Unknown(Unknown::InUse)
        }
        (400 | 404, "idempotency_error") => Outcome::Unknown(Unknown::ParametersDiffer),
        (400 | 402 | 403 | 404, "card_error") => Outcome::Declined(decline::card(
            error,
            error
                .payment_intent()
                .map(|intent| state::reference(&intent.id)),
        )),
        (401 | 403, _) => Outcome::NotExecuted(NotExecuted::Refused),
        (400 | 404, _) => done_before(asked, error).unwrap_or_else(|| {
            let intent = error.payment_intent();
            let reference = intent.map(|intent| state::reference(&intent.id));
            Outcome::Declined(decline::rejected(error, reference))
        }),
        _ => GATEWAY_ERROR,
    }
}

/// Stripe refuses to cancel or capture twice, and shows the object. Where it shows that what was
/// asked is done (the key was forgotten meanwhile), a refusal would be the wrong answer.
fn done_before(asked: &Asked, error: &ApiError) -> Option<Outcome> {
    let intent = error.payment_intent()?;
    let done = match &asked.subject {
        Subject::Capture { .. } | Subject::Cancel { .. } => state::of_intent(asked, &intent),
        Subject::Authorize { .. } | Subject::Refund { .. } => return None,
    };
    matches!(done, Outcome::Approved { .. }).then_some(done)
}

/// Whether somebody must be told: no merchant can cause or mend these.
pub(super) fn alerts(status: StatusCode, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::NotExecuted(_) => status != StatusCode::TOO_MANY_REQUESTS,
        Outcome::Declined(decline) => decline.code == decline::REJECTED,
        Outcome::Approved { .. } | Outcome::Pending { .. } | Outcome::Unknown(_) => false,
    }
}
