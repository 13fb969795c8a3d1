//! Answers in Stripe's form.

use serde_json::{Value, json};

use super::objects::{CaptureMethod, Intent, IntentState, Refund};
use crate::gateways::sandbox::plan::Reason;

/// A status and a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
    pub(super) replayed: Replayed,
    /// What it is about, for the journal.
    pub(super) object_id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replayed {
    Yes,
    No,
}

impl Answer {
    pub(super) fn new(status: u16, body: &Value) -> Self {
        let object_id = body.get("id").and_then(Value::as_str).map(str::to_owned);
        Self {
            status,
            body: body.to_string(),
            replayed: Replayed::No,
            object_id,
        }
    }

    fn error(status: u16, kind: &str, code: Option<&str>, message: &str) -> Self {
        let mut error = json!({"type": kind, "message": message});
        if let (Some(code), Some(members)) = (code, error.as_object_mut()) {
            members.insert("code".to_owned(), code.into());
        }
        Self::new(status, &json!({ "error": error }))
    }

    /// Whether it stays with its key. What was refused before its execution does not.
    pub(super) const fn is_kept(&self) -> bool {
        matches!(self.status, 200..=299 | 402 | 500 | 501 | 505..=599)
    }
}

pub(super) fn invalid(code: &str, message: &str) -> Answer {
    Answer::error(400, "invalid_request_error", Some(code), message)
}

pub(super) fn missing(what: &str) -> Answer {
    let message = format!("No such {what}.");
    Answer::error(
        404,
        "invalid_request_error",
        Some("resource_missing"),
        &message,
    )
}

/// A parameter names an object that there is not.
pub(super) fn missing_parameter(name: &str, id: &str) -> Answer {
    invalid(
        "resource_missing",
        &format!("{name}: no such object: {id}."),
    )
}

pub(super) fn unauthorized() -> Answer {
    Answer::error(
        401,
        "invalid_request_error",
        None,
        "Send a secret key: Authorization: Bearer sk_test_…",
    )
}

pub(super) fn parameters_differ() -> Answer {
    Answer::error(
        400,
        "idempotency_error",
        None,
        "This key was first used with other parameters.",
    )
}

pub(super) fn in_use() -> Answer {
    Answer::error(
        409,
        "idempotency_error",
        Some("idempotency_key_in_use"),
        "Another request with this key is under way.",
    )
}

pub(super) fn too_many() -> Answer {
    Answer::error(429, "invalid_request_error", None, "Too many requests.")
}

/// The answer that a fault asks for.
pub(super) fn status(status: u16) -> Answer {
    let kind = match status {
        402 => return card_error("card_declined", "The card was declined.", None),
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    let code = (status == 409).then_some("idempotency_key_in_use");
    Answer::error(status, kind, code, "The fault that was asked for.")
}

/// A decline, with the payment intent that it leaves.
pub(super) fn declined(intent: &Intent, code: &str, message: &str) -> Answer {
    card_error(code, message, Some(intent))
}

/// What the state of an authorisation does not allow.
pub(super) fn not_allowed(reason: Reason, intent: &Value) -> Answer {
    let error = json!({
        "type": "invalid_request_error",
        "code": reason.code.replace('-', "_"),
        "message": reason.message,
        "payment_intent": intent,
    });
    Answer::new(400, &json!({ "error": error }))
}

fn card_error(code: &str, message: &str, intent: Option<&Intent>) -> Answer {
    let mut error = last_error(code, message);
    if let (Some(members), Some(intent)) = (error.as_object_mut(), intent) {
        members.insert("payment_intent".to_owned(), payment_intent(intent));
    }
    let mut answer = Answer::new(402, &json!({ "error": error }));
    answer.object_id = intent.map(|intent| intent.id.clone());
    answer
}

/// The sandbox's words in Stripe's: a finer reason than `card_declined` is a `decline_code`.
fn last_error(code: &str, message: &str) -> Value {
    let (code, decline_code) = match code.replace('-', "_").as_str() {
        "card_declined" => ("card_declined".to_owned(), "generic_decline".to_owned()),
        "card_expired" => ("expired_card".to_owned(), "expired_card".to_owned()),
        finer => ("card_declined".to_owned(), finer.to_owned()),
    };
    json!({
        "type": "card_error", "code": code, "decline_code": decline_code, "message": message,
    })
}

pub(super) fn payment_intent(intent: &Intent) -> Value {
    let authorized = &intent.charge.authorized;
    let capturable = match intent.state {
        IntentState::RequiresCapture => authorized.amount,
        _ => 0,
    };
    let (status, last_payment_error) = match &intent.state {
        IntentState::Succeeded => ("succeeded", Value::Null),
        IntentState::RequiresCapture => ("requires_capture", Value::Null),
        IntentState::Processing { .. } => ("processing", Value::Null),
        IntentState::Failed { code, message } => {
            ("requires_payment_method", last_error(code, message))
        }
        IntentState::Canceled => ("canceled", Value::Null),
    };
    let received = match intent.state {
        IntentState::Succeeded => intent.charge.captured,
        _ => 0,
    };
    json!({
        "id": intent.id,
        "object": "payment_intent",
        "amount": authorized.amount,
        "amount_capturable": capturable,
        "amount_received": received,
        "capture_method": match intent.capture_method {
            CaptureMethod::Automatic => "automatic",
            CaptureMethod::Manual => "manual",
        },
        "created": intent.created_at.timestamp(),
        "currency": authorized.currency.to_ascii_lowercase(),
        "description": intent.description,
        "last_payment_error": last_payment_error,
        "livemode": false,
        "metadata": intent.metadata,
        "payment_method": intent.payment_method,
        "payment_method_types": ["card"],
        "status": status,
    })
}

pub(super) fn refund(refund: &Refund) -> Value {
    json!({
        "id": refund.id,
        "object": "refund",
        "amount": refund.sum.amount,
        "created": refund.created_at.timestamp(),
        "currency": refund.sum.currency.to_ascii_lowercase(),
        "metadata": refund.metadata,
        "payment_intent": refund.intent,
        "status": "succeeded",
    })
}
