//! Capture, cancel and refund against what was authorised.

use super::*;
use crate::gateways::{Cancel, Capture, Refund, Unknown};

async fn authorized(sandbox: &Sandbox, key: &str, amount: i64) -> GatewayReference {
    let request = Authorize {
        money: money(amount),
        capture_method: CaptureMethod::Manual,
        ..authorize(key, "pm_card_visa")
    };
    reference(&sandbox.authorize(&request).await)
}

fn capture(key: &str, authorization: &GatewayReference, amount: i64) -> Capture {
    Capture {
        gateway_key: GatewayKey::new(key),
        authorization: authorization.clone(),
        money: money(amount),
    }
}

fn cancel(key: &str, authorization: &GatewayReference) -> Cancel {
    Cancel {
        gateway_key: GatewayKey::new(key),
        authorization: authorization.clone(),
    }
}

fn refund(key: &str, charge: &GatewayReference, amount: i64) -> Refund {
    Refund {
        gateway_key: GatewayKey::new(key),
        charge: charge.clone(),
        money: money(amount),
    }
}

#[tokio::test]
async fn references_follow_from_the_gateway_key() {
    let place = Place::new();
    let sandbox = place.sandbox();

    let authorization = authorized(&sandbox, "a", 1000).await;
    let captured = sandbox.capture(&capture("c", &authorization, 1000)).await;
    let refunded = sandbox.refund(&refund("r", &authorization, 1000)).await;
    let other = authorized(&sandbox, "b", 1000).await;
    let canceled = sandbox.cancel(&cancel("x", &other)).await;

    // The first 24 hexadecimal digits of `printf a | sha256sum`, and so on.
    assert_eq!(authorization.0, "sb_auth_ca978112ca1bbdcafac231b3");
    assert_eq!(reference(&captured).0, "sb_cap_2e7d2c03a9507ae265ecf5b5");
    assert_eq!(reference(&refunded).0, "sb_ref_454349e422f05297191ead13");
    assert_eq!(reference(&canceled).0, "sb_can_2d711642b726b04401627ca9");
}

#[tokio::test]
async fn an_authorisation_is_captured_once_and_at_most_in_full() {
    let place = Place::new();
    let sandbox = place.sandbox();
    let authorization = authorized(&sandbox, "a", 1000).await;

    let too_large = sandbox.capture(&capture("c1", &authorization, 1001)).await;
    let nothing = sandbox.capture(&capture("c2", &authorization, 0)).await;
    let first = sandbox.capture(&capture("c3", &authorization, 600)).await;
    let second = sandbox.capture(&capture("c4", &authorization, 400)).await;
    let canceled = sandbox.cancel(&cancel("c5", &authorization)).await;

    assert_eq!(code(&too_large), "amount-too-large");
    assert_eq!(code(&nothing), "amount-invalid");
    assert_eq!(
        reference(&first),
        reference(&sandbox.capture(&capture("c3", &authorization, 600)).await)
    );
    assert_eq!(code(&second), "already-captured");
    assert_eq!(code(&canceled), "already-captured");
    assert_eq!(
        find(&sandbox, Call::Capture, "c3").await,
        Finding::Known(first)
    );
    assert_eq!(
        journal::effects(&place.lines()).len(),
        2,
        "one authorisation, one capture"
    );
}

#[tokio::test]
async fn a_canceled_authorisation_stays_canceled() {
    let place = Place::new();
    let sandbox = place.sandbox();
    let authorization = authorized(&sandbox, "a", 1000).await;

    let canceled = sandbox.cancel(&cancel("x1", &authorization)).await;
    let again = sandbox.cancel(&cancel("x1", &authorization)).await;
    let other_key = sandbox.cancel(&cancel("x2", &authorization)).await;
    let captured = sandbox.capture(&capture("c", &authorization, 1000)).await;

    assert_eq!(reference(&canceled), reference(&again));
    assert_eq!(code(&other_key), "authorization-canceled");
    assert_eq!(code(&captured), "authorization-canceled");
    assert_eq!(place.effects("x1"), 1);
}

#[tokio::test]
async fn refunds_end_at_the_captured_total_by_either_reference() {
    let place = Place::new();
    let sandbox = place.sandbox();
    let authorization = authorized(&sandbox, "a", 1000).await;
    let early = sandbox.refund(&refund("r0", &authorization, 1)).await;
    let charge = reference(&sandbox.capture(&capture("c", &authorization, 600)).await);

    let first = sandbox.refund(&refund("r1", &charge, 500)).await;
    let too_large = sandbox.refund(&refund("r2", &authorization, 101)).await;
    let rest = sandbox.refund(&refund("r3", &authorization, 100)).await;
    let empty = sandbox.refund(&refund("r4", &charge, 1)).await;

    assert_eq!(code(&early), "not-captured");
    assert_ne!(reference(&first), reference(&rest));
    assert_eq!(code(&too_large), "amount-too-large");
    assert_eq!(code(&empty), "amount-too-large");
}

#[tokio::test]
async fn only_an_approved_authorisation_of_this_folder_can_be_used() {
    let place = Place::new();
    let sandbox = place.sandbox();
    sandbox
        .authorize(&authorize("declined", "pm_card_declined"))
        .await;
    sandbox
        .authorize(&authorize("pending", "pm_pending_then_succeeds"))
        .await;
    for (key, expected) in [
        ("declined", "authorization-not-approved"),
        ("pending", "authorization-not-approved"),
        ("never sent", "authorization-unknown"),
    ] {
        let name = super::super::request::Name::of(key);
        let authorization = GatewayReference(name.reference(journal::Call::Authorize));

        let outcome = sandbox
            .cancel(&cancel(&format!("cancel {key}"), &authorization))
            .await;

        assert_eq!(code(&outcome), expected, "{key}");
    }
    for odd in [
        "",
        "sb_auth_",
        "sb_auth_../../../../etc/passwd",
        "sb_auth_CA978112CA1BBDCAFAC231B3",
    ] {
        let outcome = sandbox
            .refund(&refund(odd, &GatewayReference(odd.to_owned()), 1))
            .await;

        assert_eq!(code(&outcome), "authorization-unknown", "{odd}");
    }
}

#[tokio::test]
async fn another_currency_or_another_call_is_refused() {
    let place = Place::new();
    let sandbox = place.sandbox();
    let authorization = authorized(&sandbox, "a", 1000).await;
    let dollars = Money {
        amount_minor: 1000,
        currency: Currency::from_code("USD").unwrap(),
    };

    let in_dollars = Capture {
        money: dollars,
        ..capture("c", &authorization, 1)
    };
    let same_key = sandbox.cancel(&cancel("a", &authorization)).await;

    assert_eq!(
        code(&sandbox.capture(&in_dollars).await),
        "currency-differs"
    );
    assert_eq!(same_key, Outcome::Unknown(Unknown::ParametersDiffer));
    let found = find(&sandbox, Call::Refund, "a").await;
    assert_eq!(
        found,
        Finding::Known(Outcome::Unknown(Unknown::ParametersDiffer))
    );
}

/// B81: the check and the change are one step, so only one of the refunds fits.
#[tokio::test(flavor = "multi_thread")]
async fn racing_refunds_do_not_exceed_the_capture() {
    let place = Place::new();
    let sandboxes = [place.sandbox(), place.sandbox()];
    let request = Authorize {
        money: money(10_000),
        ..authorize("a", "pm_card_visa")
    };
    let charge = reference(&sandboxes[0].authorize(&request).await);
    let refunds: Vec<_> = (0..20)
        .map(|n| refund(&format!("r{n}"), &charge, 6000))
        .collect();

    let outcomes = futures_util::future::join_all(
        refunds
            .iter()
            .enumerate()
            .map(|(n, refund)| sandboxes[n % 2].refund(refund)),
    )
    .await;

    let approved = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Outcome::Approved { .. }));
    assert_eq!(approved.count(), 1);
    assert_eq!(
        journal::effects(&place.lines()).len(),
        2,
        "the authorisation and one refund"
    );
}
