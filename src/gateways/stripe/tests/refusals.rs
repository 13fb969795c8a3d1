//! The rows of the table that are no object: errors, lost answers, and what cannot be read.

use serde_json::{Value, json};

use super::*;
use crate::gateways::stripe::{classify::alerts, decline};

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
        intent(json!({"id": null})).to_string(),
        intent(json!({"id": ""})).to_string(),
        intent(json!({"id": "pi_1\n"})).to_string(),
        intent(json!({"id": "../pi_1"})).to_string(),
        intent(json!({"id": "p".repeat(256)})).to_string(),
        format!("{whole}{whole}"),
        format!("\u{feff}{whole}"),
        whole.replacen('{', "{\"amount\":1999,", 1),
        "[".repeat(100_000),
        "{\"last_payment_error\":".repeat(100_000),
        intent(json!({"metadata": {"a": 1}})).to_string(),
        json!({"error": {"type": "card_error"}}).to_string(),
    ];
    let cut = |length| whole.chars().take(length).collect();
    bodies.extend((1..whole.len()).map(cut));

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

        let outcome = refused(402, &error);

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

        assert_declined(&refused(status, &error), "gateway-rejected");
    }
}

#[test]
fn a_key_with_other_parameters_is_for_a_person() {
    let error = json!({"type": "idempotency_error", "message": "Keys for idempotent requests…"});

    for status in [400, 404] {
        assert_eq!(refused(status, &error), unknown(Unknown::ParametersDiffer));
    }
}

#[test]
fn a_refusal_before_the_work_is_not_executed() {
    let error = json!({"type": "invalid_request_error"});
    for status in [401, 403, 429] {
        assert_eq!(
            refused(status, &error),
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

    assert_eq!(refused(429, &locked), unknown(Unknown::InUse));
    assert_eq!(refused(429, &limited), unknown(Unknown::GatewayError));
    assert_eq!(refused(409, &in_use), unknown(Unknown::InUse));
    assert_eq!(refused(400, &in_use), unknown(Unknown::InUse));
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
                refused(status, error),
                unknown(Unknown::GatewayError),
                "{status} {error}"
            );
        }
    }
}

/// D6.6. Only a server error is one that ends sending: a decline that is replayed is still one.
#[test]
fn a_server_error_that_is_the_keys_first_answer_says_so() {
    let asked = asked(CaptureMethod::Automatic);
    let error = json!({"error": {"type": "api_error"}}).to_string();
    let declined = json!({"error": {"type": "card_error", "code": "card_declined"}}).to_string();
    let replayed = |value: &str| -> HeaderMap {
        let value = value.parse().unwrap();
        [("idempotent-replayed".parse().unwrap(), value)]
            .into_iter()
            .collect()
    };

    for status in [500, 502, 503] {
        assert_eq!(
            answer_with(replayed("true"), &asked, status, error.clone()),
            unknown(Unknown::ErrorReplayed),
            "{status}"
        );
    }
    assert_eq!(
        answer_with(replayed("true"), &asked, 500, "<html>"),
        unknown(Unknown::ErrorReplayed),
        "whatever its body"
    );
    assert_eq!(
        answer_with(replayed("false"), &asked, 500, error),
        unknown(Unknown::GatewayError)
    );
    assert_declined(
        &answer_with(replayed("true"), &asked, 402, declined),
        "card-declined",
    );
}

/// What no merchant can cause or mend is told to whoever runs the service.
#[test]
fn a_refusal_of_our_own_request_or_key_alerts() {
    let refused = Outcome::NotExecuted(NotExecuted::Refused);
    let decline = |code| Outcome::Declined(decline::with_code(code, "…", None));

    assert!(alerts(StatusCode::UNAUTHORIZED, &refused));
    assert!(alerts(StatusCode::FORBIDDEN, &refused));
    assert!(!alerts(StatusCode::TOO_MANY_REQUESTS, &refused));
    assert!(alerts(
        StatusCode::BAD_REQUEST,
        &decline("gateway-rejected")
    ));
    assert!(!alerts(
        StatusCode::PAYMENT_REQUIRED,
        &decline("card-declined")
    ));
    assert!(!alerts(StatusCode::CONFLICT, &unknown(Unknown::InUse)));
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
