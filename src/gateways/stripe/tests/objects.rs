//! What the objects in an answer mean: their state, amount, currency and key.

use serde_json::{Value, json};

use super::*;

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
