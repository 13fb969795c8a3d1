//! What the stripe gateway finds by the id of the payment that a call was about, while its search lags.

use std::time::Duration;

use oncepay::gateways::{
    Call, Cancel, Capture, Finding, Gateway as _, GatewayKey, GatewayReference, Outcome, Refund,
    Unknown, stripe::Stripe,
};

use crate::support::{
    sandbox::{SandboxHere, fault, fault_status},
    stripe::{PATIENCE, SHORT, authorize, find, find_at, hold, money, reference, told},
};

/// Nothing is ever found by search.
async fn lagging() -> (SandboxHere, Stripe) {
    let sandbox = SandboxHere::with_lag(Duration::from_hours(1)).await;
    let stripe = sandbox.control.stripe(PATIENCE);
    (sandbox, stripe)
}

fn cancel(key: &str, authorization: &GatewayReference) -> Cancel {
    Cancel {
        gateway_key: GatewayKey::new(key),
        authorization: authorization.clone(),
    }
}

fn capture(key: &str, authorization: &GatewayReference, amount: i64) -> Capture {
    Capture {
        gateway_key: GatewayKey::new(key),
        authorization: authorization.clone(),
        money: money(amount, "EUR"),
    }
}

#[track_caller]
fn known(finding: &Finding) -> String {
    match finding {
        Finding::Known(outcome) => told(outcome),
        Finding::Absent => "absent".to_owned(),
    }
}

#[tokio::test]
async fn a_payment_is_found_by_its_id_before_the_search_has_it() {
    let (_sandbox, stripe) = lagging().await;
    let outcome = stripe.authorize(&authorize("K")).await;
    let payment = reference(&outcome);

    let by_id = find_at(&stripe, Call::Authorize, "K", &payment).await;

    assert_eq!(find(&stripe, Call::Authorize, "K").await, Finding::Absent);
    assert_eq!(by_id, Finding::Known(outcome));
    assert_eq!(
        known(&find_at(&stripe, Call::Authorize, "L", &payment).await),
        "unknown parameters-differ",
        "the id of another key's payment"
    );
}

/// A cancel leaves no key behind, and its answer was lost: the payment itself says that it is gone,
/// which is final whoever did it.
#[tokio::test]
async fn a_cancel_whose_answer_was_lost_is_found_by_the_payment() {
    let (sandbox, stripe) = lagging().await;
    let payment = reference(&stripe.authorize(&hold("hold")).await);
    assert_eq!(
        find_at(&stripe, Call::Cancel, "C", &payment).await,
        Finding::Absent,
        "not yet, and perhaps under way"
    );
    sandbox.control.fault(fault("drop_after_effect")).await;
    let lost = stripe.cancel(&cancel("C", &payment)).await;

    let found = find_at(&stripe, Call::Cancel, "C", &payment).await;

    assert_eq!(told(&lost), "unknown lost-reply");
    let approved = Outcome::Approved {
        reference: payment.clone(),
    };
    assert_eq!(found, Finding::Known(approved));
    assert_eq!(
        find_at(&stripe, Call::Cancel, "by somebody else", &payment).await,
        found
    );
    assert_eq!(sandbox.control.effects(), 2, "a hold and its end");
}

#[tokio::test]
async fn a_cancel_of_what_was_captured_is_declined_for_good() {
    let (_sandbox, stripe) = lagging().await;
    let payment = reference(&stripe.authorize(&hold("hold")).await);
    stripe.capture(&capture("capture", &payment, 1500)).await;

    let found = find_at(&stripe, Call::Cancel, "C", &payment).await;

    assert_eq!(known(&found), "declined already-captured");
}

#[tokio::test]
async fn a_capture_whose_answer_was_lost_is_found_by_the_payment_with_its_amount() {
    let (sandbox, stripe) = lagging().await;
    let payment = reference(&stripe.authorize(&hold("hold")).await);
    let before = find_at(&stripe, Call::Capture, "C", &payment).await;
    let impatient = sandbox.control.stripe(SHORT);
    sandbox.control.fault(fault("hang_after_effect")).await;
    let lost = impatient.capture(&capture("C", &payment, 1500)).await;

    let found = find_at(&stripe, Call::Capture, "C", &payment).await;

    assert_eq!(before, Finding::Absent, "not yet, and perhaps under way");
    assert_eq!(told(&lost), "unknown timeout");
    assert_eq!(known(&found), "approved");
    assert_eq!(
        known(&find_at(&stripe, Call::Capture, "by somebody else", &payment).await),
        "unknown parameters-differ",
        "the money was taken, and not by this call"
    );
}

#[tokio::test]
async fn a_capture_of_another_amount_is_found_as_that() {
    let (sandbox, stripe) = lagging().await;
    let payment = reference(&stripe.authorize(&hold("hold")).await);
    sandbox.control.fault(fault("wrong_amount")).await;
    stripe.capture(&capture("C", &payment, 1500)).await;

    let found = find_at(&stripe, Call::Capture, "C", &payment).await;

    let differs = Outcome::Unknown(Unknown::AmountDiffers);
    assert_eq!(found, Finding::Known(differs));
}

#[tokio::test]
async fn a_capture_of_what_was_canceled_is_declined_for_good() {
    let (_sandbox, stripe) = lagging().await;
    let payment = reference(&stripe.authorize(&hold("hold")).await);
    stripe.cancel(&cancel("cancel", &payment)).await;

    let found = find_at(&stripe, Call::Capture, "C", &payment).await;

    assert_eq!(known(&found), "declined authorization-canceled");
}

/// The newest three hundred of an account may all be somebody else's.
#[tokio::test]
async fn a_refund_is_found_among_those_of_its_payment() {
    let (sandbox, stripe) = lagging().await;
    let payment = reference(&stripe.authorize(&authorize("K")).await);
    let other = reference(&stripe.authorize(&authorize("other")).await);
    let refund = |key: &str, charge: &GatewayReference, amount| Refund {
        gateway_key: GatewayKey::new(key),
        charge: charge.clone(),
        money: money(amount, "EUR"),
    };
    let given_back = stripe.refund(&refund("R", &payment, 500)).await;
    for number in 0..300 {
        let form = format!("payment_intent={}&amount=1", other.0);
        let key = format!("refund {number}");
        let reply = sandbox.control.post("/v1/refunds", &key, &form).await;
        reply.assert_status(200);
    }

    let found = find_at(&stripe, Call::Refund, "R", &payment).await;

    assert_eq!(found, Finding::Known(given_back));
    assert_eq!(
        find(&stripe, Call::Refund, "R").await,
        Finding::Absent,
        "without the payment it is too far back"
    );
    assert_eq!(
        find_at(&stripe, Call::Refund, "R", &other).await,
        Finding::Absent
    );
}

/// An id that the gateway gave us and does not know says nothing about what the call did.
#[tokio::test]
async fn a_look_up_by_id_that_fails_has_not_found_that_there_is_nothing() {
    let (sandbox, stripe) = lagging().await;
    let payment = reference(&stripe.authorize(&hold("hold")).await);
    let unknown = GatewayReference("pi_unknown".to_owned());

    for call in [Call::Authorize, Call::Capture, Call::Cancel] {
        let finding = find_at(&stripe, call, "hold", &unknown).await;
        assert_eq!(known(&finding), "unknown gateway-error", "{call:?}");
        for status in [401, 429, 500] {
            sandbox
                .control
                .fault(fault_status("status_before", status))
                .await;
            let finding = find_at(&stripe, call, "hold", &payment).await;
            assert_eq!(
                known(&finding),
                "unknown gateway-error",
                "{call:?} {status}"
            );
        }
    }
}
