//! The stripe gateway against the sandbox server: every call, and what look-ups find.

use std::time::Duration;

use chrono::TimeDelta;
use oncepay::gateways::{
    Call, Cancel, Capture, Finding, Gateway as _, GatewayKey, Outcome, Refund, Unknown,
};

use crate::support::{
    sandbox::{SandboxHere, fault},
    stripe::{PATIENCE, authorize, authorize_with, find, hold, money, reference, told},
};

#[tokio::test]
async fn the_payment_method_decides() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    for (method, expected) in [
        ("pm_card_declined", "declined card-declined"),
        ("pm_card_insufficient_funds", "declined insufficient-funds"),
        ("pm_card_expired", "declined card-expired"),
        ("pm_card_declined_odd_text", "declined card-declined"),
        ("pm_no_such", "declined gateway-rejected"),
        ("pm_error_before_charge", "not-executed refused"),
        ("pm_error_after_charge", "unknown gateway-error"),
        ("pm_unknown", "unknown gateway-error"),
        ("pm_pending_then_fails", "pending"),
        ("pm_slow_5ms", "approved"),
    ] {
        let outcome = stripe.authorize(&authorize_with(method, method)).await;

        assert_eq!(told(&outcome), expected, "{method}");
    }
    assert_eq!(sandbox.control.effects(), 2, "slow, and error after charge");
}

#[tokio::test]
async fn a_declined_payment_stays_declined_and_is_found_so() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    let request = authorize_with("K", "pm_card_declined");

    let first = stripe.authorize(&request).await;
    let second = stripe.authorize(&request).await;

    assert_eq!(told(&first), "declined card-declined");
    assert_eq!(first, second);
    assert_eq!(
        find(&stripe, Call::Authorize, "K").await,
        Finding::Known(first)
    );
}

#[tokio::test]
async fn a_pending_payment_is_decided_by_a_later_look_with_one_effect() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    let request = authorize_with("K", "pm_pending_then_succeeds");
    let accepted = stripe.authorize(&request).await;
    assert_eq!(told(&accepted), "pending");
    assert_eq!(sandbox.control.effects(), 0);

    sandbox.clock.advance(TimeDelta::seconds(2));
    let finding = find(&stripe, Call::Authorize, "K").await;
    find(&stripe, Call::Authorize, "K").await;

    let Finding::Known(outcome) = finding else {
        panic!("it must be found");
    };
    assert_eq!(told(&outcome), "approved");
    assert_eq!(sandbox.control.effects(), 1);
}

#[tokio::test]
async fn a_search_that_lags_finds_nothing_and_then_the_truth() {
    let sandbox = SandboxHere::with_lag(Duration::from_mins(1)).await;
    let stripe = sandbox.control.stripe(PATIENCE);
    let outcome = stripe.authorize(&authorize("K")).await;

    let at_once = find(&stripe, Call::Authorize, "K").await;
    sandbox.clock.advance(TimeDelta::minutes(1));
    let later = find(&stripe, Call::Authorize, "K").await;

    assert_eq!(at_once, Finding::Absent, "which proves nothing");
    assert_eq!(later, Finding::Known(outcome));
}

#[tokio::test]
async fn a_key_is_forgotten_after_its_window_and_charges_again() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    stripe.authorize(&authorize("K")).await;
    sandbox
        .clock
        .advance(TimeDelta::hours(24) - TimeDelta::seconds(1));
    stripe.authorize(&authorize("K")).await;
    assert_eq!(sandbox.control.effects(), 1, "it is remembered to the end");

    sandbox.clock.advance(TimeDelta::seconds(1));
    stripe.authorize(&authorize("K")).await;

    assert_eq!(sandbox.control.effects(), 2, "why nothing is sent so late");
    let finding = find(&stripe, Call::Authorize, "K").await;
    let differs = Outcome::Unknown(Unknown::AmountDiffers);
    assert_eq!(finding, Finding::Known(differs), "two are for a person");
}

#[tokio::test]
async fn a_key_with_other_parameters_is_for_a_person() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    stripe.authorize(&authorize("K")).await;
    let mut other = authorize("K");
    other.description = Some("another".to_owned());

    let outcome = stripe.authorize(&other).await;

    assert_eq!(told(&outcome), "unknown parameters-differ");
    assert_eq!(sandbox.control.effects(), 1);
}

#[tokio::test]
async fn a_key_under_way_is_in_use_and_its_effect_is_one() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    sandbox.control.fault(fault("hang_before")).await;
    let request = authorize("K");
    let hanging = stripe.authorize(&request);
    tokio::pin!(hanging);
    let arrived = async {
        while sandbox.control.lines().is_empty() {
            tokio::task::yield_now().await;
        }
        stripe.authorize(&request).await
    };

    let second = tokio::select! {
        first = &mut hanging => panic!("it must hang, but said {first:?}"),
        second = arrived => second,
    };

    assert_eq!(told(&second), "unknown in-use");
    assert_eq!(sandbox.control.effects(), 0);
}

#[tokio::test]
async fn a_hold_is_captured_in_part_refunded_in_parts_and_never_beyond() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    let authorization = reference(&stripe.authorize(&hold("hold")).await);
    let capture = Capture {
        gateway_key: GatewayKey::new("capture"),
        authorization: authorization.clone(),
        money: money(1500, "EUR"),
    };
    let refund = |key: &str, amount| Refund {
        gateway_key: GatewayKey::new(key),
        charge: authorization.clone(),
        money: money(amount, "EUR"),
    };

    let captured = stripe.capture(&capture).await;
    let first = stripe.refund(&refund("first", 1000)).await;
    let beyond = stripe.refund(&refund("beyond", 501)).await;
    let rest = stripe.refund(&refund("rest", 500)).await;

    assert_eq!(reference(&captured), authorization);
    assert_eq!(told(&first), "approved");
    assert_eq!(told(&beyond), "declined gateway-rejected");
    assert_eq!(told(&rest), "approved");
    assert_eq!(sandbox.control.effects(), 4);
    assert_eq!(stripe.capture(&capture).await, captured, "a replay");
    assert_eq!(
        find(&stripe, Call::Capture, "capture").await,
        Finding::Known(captured)
    );
    assert_eq!(
        find(&stripe, Call::Refund, "rest").await,
        Finding::Known(rest)
    );
    assert_eq!(find(&stripe, Call::Refund, "beyond").await, Finding::Absent);
}

#[tokio::test]
async fn a_canceled_hold_stays_canceled() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    let authorization = reference(&stripe.authorize(&hold("hold")).await);
    let cancel = |key: &str| Cancel {
        gateway_key: GatewayKey::new(key),
        authorization: authorization.clone(),
    };
    let capture = Capture {
        gateway_key: GatewayKey::new("late"),
        authorization: authorization.clone(),
        money: money(1999, "EUR"),
    };

    let canceled = stripe.cancel(&cancel("cancel")).await;
    let late = stripe.capture(&capture).await;

    assert_eq!(told(&canceled), "approved");
    assert_eq!(told(&late), "declined gateway-rejected");
    // As after the key was forgotten: what was asked for is so.
    assert_eq!(told(&stripe.cancel(&cancel("again")).await), "approved");
    assert_eq!(sandbox.control.effects(), 2);
}

#[tokio::test]
async fn the_journal_has_the_amount_that_was_asked_for_in_every_currency() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    for (amount, code) in [(500, "JPY"), (12340, "KWD"), (500, "ISK"), (50_000, "MGA")] {
        let mut request = authorize(code);
        request.money = money(amount, code);

        reference(&stripe.authorize(&request).await);

        let effects = sandbox.control.lines();
        let effect = effects
            .iter()
            .find(|line| line.gateway_key == code && line.object_id.is_some())
            .unwrap();
        assert_eq!(effect.amount, Some(amount), "{code}");
        assert_eq!(effect.currency.as_deref(), Some(code));
    }
}
