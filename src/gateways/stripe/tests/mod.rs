//! What goes out, and what each answer means.

mod arbitrary;
mod objects;
mod refusals;

use bytes::Bytes;
use hyper::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::{
    classify::classify,
    form::{self, Asked},
};
use crate::{
    gateways::{
        Authorize, Cancel, Capture, GatewayKey, GatewayReference, NotExecuted, Outcome, Refund,
        Unknown,
        http_client::{Reply, TransportError},
    },
    payments::{currency::Currency, model::CaptureMethod, money::Money},
};

fn money(amount_minor: i64) -> Money {
    let currency = Currency::from_code("EUR").unwrap();
    Money {
        amount_minor,
        currency,
    }
}

fn key() -> GatewayKey {
    GatewayKey::new("oncepay_1")
}

fn authorize(capture_method: CaptureMethod) -> Authorize {
    Authorize {
        gateway_key: key(),
        money: money(1999),
        payment_method: "pm_card_visa".to_owned(),
        capture_method,
        description: Some("two & three".to_owned()),
    }
}

fn authorization() -> GatewayReference {
    GatewayReference("pi_1".to_owned())
}

fn asked(capture_method: CaptureMethod) -> Asked {
    form::authorize(&authorize(capture_method)).unwrap().0
}

fn asked_capture() -> Asked {
    let capture = Capture {
        gateway_key: key(),
        authorization: authorization(),
        money: money(1000),
    };
    form::capture(&capture).unwrap().0
}

fn asked_cancel() -> Asked {
    let cancel = Cancel {
        gateway_key: key(),
        authorization: authorization(),
    };
    form::cancel(&cancel).0
}

fn asked_refund() -> Asked {
    let refund = Refund {
        gateway_key: key(),
        charge: authorization(),
        money: money(500),
    };
    form::refund(&refund).unwrap().0
}

/// A payment intent as the call in `asked` would make it, with these members changed.
fn intent(changes: Value) -> Value {
    let mut intent = json!({
        "id": "pi_1",
        "object": "payment_intent",
        "status": "succeeded",
        "amount": 1999,
        "amount_received": 1999,
        "currency": "eur",
        "capture_method": "automatic",
        "metadata": {"oncepay_gateway_key": "oncepay_1", "oncepay_capture_key": "oncepay_1"},
        "last_payment_error": null,
    });
    change(&mut intent, changes);
    intent
}

fn refund(changes: Value) -> Value {
    let mut refund = json!({
        "id": "re_1",
        "object": "refund",
        "status": "succeeded",
        "amount": 500,
        "currency": "eur",
        "payment_intent": "pi_1",
        "metadata": {"oncepay_gateway_key": "oncepay_1"},
    });
    change(&mut refund, changes);
    refund
}

fn change(document: &mut Value, changes: Value) {
    let Value::Object(changes) = changes else {
        panic!("changes are an object");
    };
    document.as_object_mut().unwrap().extend(changes);
}

fn answer(asked: &Asked, status: u16, body: impl Into<Bytes>) -> Outcome {
    answer_with(HeaderMap::new(), asked, status, body)
}

fn answer_with(headers: HeaderMap, asked: &Asked, status: u16, body: impl Into<Bytes>) -> Outcome {
    let reply = Reply {
        status: StatusCode::from_u16(status).unwrap(),
        headers,
        body: body.into(),
    };
    classify(asked, &Ok(reply))
}

/// The answer to an automatic payment.
fn answered(status: u16, body: &Value) -> Outcome {
    answer(&asked(CaptureMethod::Automatic), status, body.to_string())
}

fn refused(status: u16, error: &Value) -> Outcome {
    answered(status, &json!({ "error": error }))
}

fn approved(id: &str) -> Outcome {
    Outcome::Approved {
        reference: GatewayReference(id.to_owned()),
    }
}

fn pending(id: &str) -> Outcome {
    Outcome::Pending {
        reference: GatewayReference(id.to_owned()),
    }
}

const fn unknown(reason: Unknown) -> Outcome {
    Outcome::Unknown(reason)
}

#[track_caller]
fn assert_declined(outcome: &Outcome, code: &str) {
    let Outcome::Declined(decline) = outcome else {
        panic!("it must be declined: {outcome:?}");
    };
    assert_eq!(decline.code, code);
}

#[test]
fn a_payment_is_sent_in_one_form_that_never_changes() {
    let (_, form) = form::authorize(&authorize(CaptureMethod::Manual)).unwrap();

    insta::assert_snapshot!(
        format!("{} {}", form.path, form.body),
        @"/v1/payment_intents amount=1999&currency=eur&payment_method=pm_card_visa&payment_method_types%5B%5D=card&capture_method=manual&confirm=true&error_on_requires_action=true&description=two+%26+three&metadata%5Boncepay_gateway_key%5D=oncepay_1&metadata%5Boncepay_amount%5D=1999&metadata%5Boncepay_currency%5D=eur"
    );
}

#[test]
fn a_reference_cannot_leave_its_path_segment() {
    let cancel = Cancel {
        gateway_key: key(),
        authorization: GatewayReference("pi_1/../x?y".to_owned()),
    };

    let (_, form) = form::cancel(&cancel);

    assert_eq!(
        form.path,
        "/v1/payment_intents/pi_1%2F%2E%2E%2Fx%3Fy/cancel"
    );
}

#[test]
fn an_amount_that_stripe_cannot_express_is_not_sent() {
    let mut request = authorize(CaptureMethod::Automatic);
    request.money.currency = Currency::from_code("MGA").unwrap();

    assert_eq!(form::authorize(&request), None);
}

#[test]
fn the_secret_is_in_no_debug_output() {
    let secret = secrecy::SecretString::from("sk_live_hunter2");
    let timeout = std::time::Duration::from_secs(1);
    let stripe = super::Stripe::new("http://127.0.0.1:1", &secret, timeout).unwrap();

    let debug = format!("{stripe:?}");

    assert!(!debug.contains("hunter2"), "{debug}");
}
