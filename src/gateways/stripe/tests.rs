//! The table of [`classify`](super::classify), row by row, and what goes out.

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
    let reply = Reply {
        status: StatusCode::from_u16(status).unwrap(),
        headers: HeaderMap::new(),
        body: body.into(),
    };
    classify(asked, &Ok(reply))
}

/// The answer to an automatic payment.
fn answered(status: u16, body: &Value) -> Outcome {
    answer(&asked(CaptureMethod::Automatic), status, body.to_string())
}

fn refused(status: u16, error: Value) -> Outcome {
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
fn no_connection_is_not_executed() {
    let asked = asked(CaptureMethod::Automatic);

    let outcome = classify(&asked, &Err(TransportError::Unreachable("refused".into())));

    assert_eq!(
        outcome,
        Outcome::NotExecuted(NotExecuted::Unreachable),
        "no byte was sent"
    );
}

#[test]
fn a_failure_after_the_first_byte_is_unknown() {
    let asked = asked(CaptureMethod::Automatic);
    for (error, reason) in [
        (TransportError::Timeout, Unknown::Timeout),
        (TransportError::Lost("reset".into()), Unknown::LostReply),
        (TransportError::TooLong, Unknown::GatewayError),
    ] {
        assert_eq!(classify(&asked, &Err(error)), unknown(reason));
    }
}

#[test]
fn an_automatic_payment_succeeds_when_its_money_is_taken() {
    assert_eq!(answered(200, &intent(json!({}))), approved("pi_1"));
}

#[test]
fn a_manual_payment_succeeds_when_its_money_is_held() {
    let asked = asked(CaptureMethod::Manual);
    let held = json!({
        "status": "requires_capture", "capture_method": "manual", "amount_received": 0,
    });
    let taken = json!({"capture_method": "manual"});

    assert_eq!(
        answer(&asked, 200, intent(held.clone()).to_string()),
        approved("pi_1")
    );
    assert_eq!(
        answer(&asked, 200, intent(taken).to_string()),
        unknown(Unknown::ParametersDiffer),
        "it was to be held, and was taken"
    );
    assert_eq!(
        answered(200, &intent(json!({"status": "requires_capture"}))),
        unknown(Unknown::GatewayError),
        "it was to be taken, and is not yet"
    );
}

#[test]
fn each_status_of_a_payment_has_its_outcome() {
    let status = |status: &str| answered(200, &intent(json!({"status": status})));

    assert_eq!(status("processing"), pending("pi_1"));
    assert_declined(&status("requires_action"), "authentication-required");
    assert_declined(&status("canceled"), "canceled");
    for undecided in [
        "requires_confirmation",
        "requires_payment_method",
        "",
        "sold",
    ] {
        assert_eq!(
            status(undecided),
            unknown(Unknown::GatewayError),
            "{undecided}"
        );
    }
    let failed = intent(json!({
        "status": "requires_payment_method",
        "last_payment_error": {"type": "card_error", "code": "card_declined"},
    }));
    assert_declined(&answered(200, &failed), "card-declined");
}

#[test]
fn another_amount_or_currency_is_never_success() {
    for changes in [
        json!({"amount": 2000}),
        json!({"amount_received": 1998}),
        json!({"currency": "usd"}),
        json!({"amount": 199_900, "status": "processing"}),
    ] {
        assert_eq!(
            answered(200, &intent(changes.clone())),
            unknown(Unknown::AmountDiffers),
            "{changes}"
        );
    }
}

#[test]
fn a_payment_of_another_key_or_kind_is_never_success() {
    for changes in [
        json!({"metadata": {}}),
        json!({"metadata": {"oncepay_gateway_key": "oncepay_2"}}),
        json!({"capture_method": "manual"}),
    ] {
        assert_eq!(
            answered(200, &intent(changes.clone())),
            unknown(Unknown::ParametersDiffer),
            "{changes}"
        );
    }
}

#[test]
fn an_answer_that_cannot_be_read_is_unknown() {
    let whole = intent(json!({})).to_string();
    let mut bodies = vec![
        String::new(),
        "null".to_owned(),
        "[]".to_owned(),
        "<html>".to_owned(),
        "{}".to_owned(),
        intent(json!({"amount": "1999"})).to_string(),
        intent(json!({"amount": 1999.0})).to_string(),
        intent(json!({"amount": 1e30})).to_string(),
        intent(json!({"amount_received": null})).to_string(),
        intent(json!({"object": "refund"})).to_string(),
        intent(json!({"status": 1})).to_string(),
        intent(json!({"metadata": {"a": 1}})).to_string(),
        json!({"error": {"type": "card_error"}}).to_string(),
    ];
    bodies.extend((1..whole.len()).map(|cut| whole[..cut].to_owned()));

    for body in bodies {
        let outcome = answer(&asked(CaptureMethod::Automatic), 200, body.clone());
        assert_eq!(outcome, unknown(Unknown::GatewayError), "{body:?}");
    }
    let not_text = vec![0xff, 0xfe, 0x00];
    assert_eq!(
        answer(&asked(CaptureMethod::Automatic), 200, not_text),
        unknown(Unknown::GatewayError)
    );
}

#[test]
fn a_card_error_is_declined_with_its_finer_code() {
    for (code, decline_code, expected) in [
        ("card_declined", json!("generic_decline"), "card-declined"),
        (
            "card_declined",
            json!("insufficient_funds"),
            "insufficient-funds",
        ),
        ("card_declined", json!("<script>"), "card-declined"),
        ("expired_card", json!(null), "card-expired"),
        ("expired_card", json!("expired_card"), "card-expired"),
        (
            "authentication_required",
            json!(null),
            "authentication-required",
        ),
    ] {
        let error = json!({
            "type": "card_error", "code": code, "decline_code": decline_code,
            "payment_intent": intent(json!({"status": "requires_payment_method"})),
        });

        let outcome = refused(402, error);

        assert_declined(&outcome, expected);
        let Outcome::Declined(decline) = outcome else {
            panic!("asserted above");
        };
        assert_eq!(decline.reference, Some(authorization()));
    }
}

#[test]
fn a_refused_request_is_declined_as_rejected() {
    for status in [400, 404] {
        let error = json!({"type": "invalid_request_error", "code": "resource_missing"});

        assert_declined(&refused(status, error), "gateway-rejected");
    }
}

#[test]
fn a_key_with_other_parameters_is_for_a_person() {
    let error = json!({"type": "idempotency_error", "message": "Keys for idempotent requests…"});

    assert_eq!(refused(400, error), unknown(Unknown::ParametersDiffer));
}

#[test]
fn a_refusal_before_the_work_is_not_executed() {
    let error = json!({"type": "invalid_request_error"});
    for status in [401, 403, 429] {
        assert_eq!(
            refused(status, error.clone()),
            Outcome::NotExecuted(NotExecuted::Refused),
            "{status}"
        );
    }
}

#[test]
fn a_busy_gateway_is_unknown() {
    let locked = json!({"type": "invalid_request_error", "code": "lock_timeout"});
    let limited = json!({"type": "invalid_request_error", "code": "rate_limit"});
    let in_use = json!({"type": "idempotency_error", "code": "idempotency_key_in_use"});

    assert_eq!(refused(429, locked), unknown(Unknown::InUse));
    assert_eq!(refused(429, limited), unknown(Unknown::GatewayError));
    assert_eq!(refused(409, in_use), unknown(Unknown::InUse));
    assert_eq!(
        answer(&asked(CaptureMethod::Automatic), 409, ""),
        unknown(Unknown::InUse)
    );
}

#[test]
fn every_other_status_is_unknown() {
    let errors = [
        json!({"type": "api_error"}),
        json!({"type": "card_error", "code": "card_declined"}),
    ];
    for status in [300, 301, 302, 307, 405, 410, 418, 500, 502, 503, 504, 599] {
        for error in &errors {
            assert_eq!(
                refused(status, error.clone()),
                unknown(Unknown::GatewayError),
                "{status} {error}"
            );
        }
    }
}

#[test]
fn a_refusal_that_is_not_stripes_says_nothing() {
    for status in [400, 401, 402, 403, 404, 429] {
        for body in ["", "<html>Blocked</html>", "{}", "{\"error\":\"x\"}"] {
            assert_eq!(
                answer(&asked(CaptureMethod::Automatic), status, body),
                unknown(Unknown::GatewayError),
                "{status} {body}"
            );
        }
    }
}

#[test]
fn a_capture_succeeds_with_the_amount_that_was_asked_for() {
    let captured = |changes: Value| answer(&asked_capture(), 200, intent(changes).to_string());

    assert_eq!(
        captured(json!({"amount_received": 1000})),
        approved("pi_1"),
        "part of it may be captured"
    );
    assert_eq!(
        captured(json!({"amount_received": 1999})),
        unknown(Unknown::AmountDiffers)
    );
    assert_eq!(
        captured(json!({"amount_received": 1000, "currency": "usd"})),
        unknown(Unknown::AmountDiffers)
    );
    assert_eq!(
        captured(json!({"amount_received": 1000, "id": "pi_2"})),
        unknown(Unknown::GatewayError)
    );
    assert_eq!(
        captured(json!({"amount_received": 1000, "metadata": {"oncepay_capture_key": "other"}})),
        unknown(Unknown::ParametersDiffer)
    );
    assert_eq!(captured(json!({"status": "processing"})), pending("pi_1"));
    assert_eq!(
        captured(json!({"status": "requires_capture"})),
        unknown(Unknown::GatewayError)
    );
}

#[test]
fn a_cancel_succeeds_when_the_payment_is_canceled() {
    let canceled = |status: &str| {
        answer(
            &asked_cancel(),
            200,
            intent(json!({"status": status})).to_string(),
        )
    };

    assert_eq!(canceled("canceled"), approved("pi_1"));
    assert_eq!(canceled("succeeded"), unknown(Unknown::GatewayError));
}

#[test]
fn what_was_done_before_is_not_a_refusal() {
    let refusal = |changes: Value| {
        json!({"error": {
            "type": "invalid_request_error", "code": "payment_intent_unexpected_state",
            "payment_intent": intent(changes),
        }})
        .to_string()
    };
    let canceled = || refusal(json!({"status": "canceled"}));
    let captured = || refusal(json!({"amount_received": 1000}));
    let captured_by_other =
        refusal(json!({"amount_received": 1000, "metadata": {"oncepay_capture_key": "other"}}));

    assert_eq!(answer(&asked_cancel(), 400, canceled()), approved("pi_1"));
    assert_eq!(answer(&asked_capture(), 400, captured()), approved("pi_1"));
    assert_declined(
        &answer(&asked_cancel(), 400, captured()),
        "gateway-rejected",
    );
    assert_declined(
        &answer(&asked_capture(), 400, captured_by_other),
        "gateway-rejected",
    );
}

#[test]
fn each_status_of_a_refund_has_its_outcome() {
    let status = |status: &str| {
        let body = refund(json!({"status": status})).to_string();
        answer(&asked_refund(), 200, body)
    };

    assert_eq!(status("succeeded"), approved("re_1"));
    assert_eq!(status("pending"), pending("re_1"));
    assert_eq!(status("requires_action"), pending("re_1"));
    assert_declined(&status("failed"), "refund-failed");
    assert_declined(&status("canceled"), "refund-failed");
    assert_eq!(status("sold"), unknown(Unknown::GatewayError));
}

#[test]
fn a_refund_of_another_amount_payment_or_key_is_never_success() {
    let changed = |changes: Value| answer(&asked_refund(), 200, refund(changes).to_string());

    assert_eq!(
        changed(json!({"amount": 501})),
        unknown(Unknown::AmountDiffers)
    );
    assert_eq!(
        changed(json!({"currency": "usd"})),
        unknown(Unknown::AmountDiffers)
    );
    assert_eq!(
        changed(json!({"payment_intent": "pi_2"})),
        unknown(Unknown::ParametersDiffer)
    );
    assert_eq!(
        changed(json!({"metadata": {}})),
        unknown(Unknown::ParametersDiffer)
    );
    assert_eq!(
        answer(&asked_refund(), 200, intent(json!({})).to_string()),
        unknown(Unknown::GatewayError)
    );
}

#[test]
fn the_secret_is_in_no_debug_output() {
    let secret = secrecy::SecretString::from("sk_live_hunter2");
    let timeout = std::time::Duration::from_secs(1);
    let stripe = super::Stripe::new("http://127.0.0.1:1", &secret, timeout).unwrap();

    let debug = format!("{stripe:?}");

    assert!(!debug.contains("hunter2"), "{debug}");
}
