//! One test per payment method, and what a key that comes back gets.

use std::time::Instant;

use chrono::TimeDelta;

use super::*;
use crate::gateways::{NotExecuted, Unknown};

const REFUSED: Outcome = Outcome::NotExecuted(NotExecuted::Refused);
const SERVER_ERROR: Outcome = Outcome::Unknown(Unknown::GatewayError);

fn approved(key: &str) -> Outcome {
    let name = super::super::request::Name::of(key);
    let reference = GatewayReference(name.reference(journal::Call::Authorize));
    Outcome::Approved { reference }
}

#[tokio::test]
async fn good_cards_are_approved_once_and_found() {
    for method in ["pm_card_visa", "pm_card_mastercard"] {
        let place = Place::new();
        let request = authorize("k", method);

        let first = place.sandbox().authorize(&request).await;
        let again = place.sandbox().authorize(&request).await;

        assert_eq!((&first, &again), (&approved("k"), &approved("k")));
        let found = find(&place.sandbox(), Call::Authorize, "k").await;
        assert_eq!(found, Finding::Known(first));
        assert_eq!(place.effects("k"), 1);
    }
}

#[tokio::test]
async fn refused_cards_are_declined_for_good_without_an_effect() {
    for (method, expected) in [
        ("pm_card_declined", "card-declined"),
        ("pm_card_insufficient_funds", "insufficient-funds"),
        ("pm_card_expired", "card-expired"),
        ("pm_card_declined_odd_text", "card-declined"),
        ("pm_no_such_method", "payment-method-unknown"),
    ] {
        let place = Place::new();
        let request = authorize("k", method);

        let first = place.sandbox().authorize(&request).await;
        let again = place.sandbox().authorize(&request).await;

        assert_eq!(code(&first), expected, "{method}");
        assert_eq!(
            first, again,
            "{method}: a decline is remembered, odd text and all"
        );
        let found = find(&place.sandbox(), Call::Authorize, "k").await;
        assert_eq!(found, Finding::Known(first), "{method}");
        assert_eq!(place.effects("k"), 0, "{method}");
    }
}

#[tokio::test]
async fn odd_text_holds_what_a_database_or_a_terminal_chokes_on() {
    let request = authorize("k", "pm_card_declined_odd_text");

    let outcome = Place::new().sandbox().authorize(&request).await;

    let Outcome::Declined(decline) = outcome else {
        panic!("it must be declined");
    };
    for odd in ['\0', '\u{fffd}', '\u{1b}', '\n'] {
        assert!(decline.message.contains(odd), "{odd:?} is missing");
    }
}

#[tokio::test]
async fn a_slow_payment_is_approved_after_its_delay() {
    let place = Place::new();
    let started_at = Instant::now();

    let outcome = place
        .sandbox()
        .authorize(&authorize("k", "pm_slow_40ms"))
        .await;

    assert_eq!(outcome, approved("k"));
    assert!(started_at.elapsed() >= Duration::from_millis(40));
    assert_eq!(place.effects("k"), 1);
}

#[tokio::test]
async fn a_slow_payment_that_is_given_up_has_no_effect_until_it_is_sent_again() {
    let place = Place::new();
    let sandbox = place.sandbox();
    let request = authorize("k", "pm_slow_60s");

    abandon(sandbox.authorize(&request), place.until_sent("k")).await;

    assert_eq!(find(&sandbox, Call::Authorize, "k").await, Finding::Absent);
    assert_eq!(place.effects("k"), 0);
    assert_eq!(at_once(sandbox.authorize(&request)).await, approved("k"));
    assert_eq!(place.effects("k"), 1);
}

#[tokio::test]
async fn a_charge_whose_answer_is_late_or_lost_is_found_and_not_repeated() {
    for method in ["pm_slow_after_charge_60s", "pm_timeout_after_charge"] {
        let place = Place::new();
        let sandbox = place.sandbox();
        let request = authorize("k", method);

        abandon(sandbox.authorize(&request), place.until_effect("k")).await;

        let found = find(&sandbox, Call::Authorize, "k").await;
        assert_eq!(found, Finding::Known(approved("k")), "{method}");
        assert_eq!(
            at_once(sandbox.authorize(&request)).await,
            approved("k"),
            "{method}"
        );
        assert_eq!(place.effects("k"), 1, "{method}");
    }
}

#[tokio::test]
async fn a_timeout_before_the_charge_is_executed_by_the_second_send() {
    let place = Place::new();
    let sandbox = place.sandbox();
    let request = authorize("k", "pm_timeout_before_charge");

    abandon(sandbox.authorize(&request), place.until_sent("k")).await;

    assert_eq!(find(&sandbox, Call::Authorize, "k").await, Finding::Absent);
    assert_eq!(place.effects("k"), 0);
    assert_eq!(at_once(sandbox.authorize(&request)).await, approved("k"));
    assert_eq!(place.effects("k"), 1);
}

/// Each send is a new process, so the count of sends is the folder's.
#[tokio::test]
async fn errors_before_the_charge_refuse_as_often_as_they_say() {
    let place = Place::new();
    for (method, expected) in [
        ("pm_error_before_charge", [REFUSED, REFUSED, REFUSED]),
        (
            "pm_error_before_charge_0",
            std::array::from_fn(|_| approved("pm_error_before_charge_0")),
        ),
        (
            "pm_error_before_charge_2",
            [REFUSED, REFUSED, approved("pm_error_before_charge_2")],
        ),
    ] {
        let executed = expected.iter().any(|outcome| *outcome != REFUSED);
        for outcome in expected {
            let sent = place.sandbox().authorize(&authorize(method, method)).await;
            assert_eq!(sent, outcome, "{method}");
        }

        assert_eq!(place.effects(method), usize::from(executed), "{method}");
        let found = find(&place.sandbox(), Call::Authorize, method).await;
        assert_eq!(found != Finding::Absent, executed, "{method}");
    }
}

#[tokio::test]
async fn an_error_after_the_charge_hides_it_from_the_first_send_only() {
    let place = Place::new();
    let request = authorize("k", "pm_error_after_charge");

    let first = place.sandbox().authorize(&request).await;
    let effects = place.effects("k");
    let again = place.sandbox().authorize(&request).await;

    assert_eq!((first, effects), (SERVER_ERROR, 1));
    assert_eq!((again, place.effects("k")), (approved("k"), 1));
}

#[tokio::test]
async fn an_unknown_payment_stays_unknown_and_absent() {
    let place = Place::new();
    for _ in 0..3 {
        let outcome = place
            .sandbox()
            .authorize(&authorize("k", "pm_unknown"))
            .await;
        assert_eq!(outcome, SERVER_ERROR);
    }

    assert_eq!(
        find(&place.sandbox(), Call::Authorize, "k").await,
        Finding::Absent
    );
    assert_eq!(place.effects("k"), 0);
}

#[tokio::test]
async fn a_pending_payment_is_decided_by_a_look_up_two_seconds_later() {
    for (method, effects) in [
        ("pm_pending_then_succeeds", 1),
        ("pm_pending_then_fails", 0),
    ] {
        let place = Place::new();
        let sandbox = place.sandbox();
        let request = authorize("k", method);
        let pending = sandbox.authorize(&request).await;
        assert!(matches!(pending, Outcome::Pending { .. }), "{method}");

        place.clock.advance(TimeDelta::milliseconds(1999));
        let early = find(&sandbox, Call::Authorize, "k").await;
        assert_eq!(early, Finding::Known(pending.clone()), "{method}");
        place.clock.advance(TimeDelta::milliseconds(1));
        assert_eq!(
            sandbox.authorize(&request).await,
            pending,
            "{method}: only a look-up decides"
        );
        let Finding::Known(decided) = find(&sandbox, Call::Authorize, "k").await else {
            panic!("{method}: it must be found");
        };

        assert_eq!(
            matches!(decided, Outcome::Approved { .. }),
            effects == 1,
            "{method}"
        );
        assert_eq!(
            matches!(decided, Outcome::Declined(_)),
            effects == 0,
            "{method}"
        );
        place.clock.advance(TimeDelta::days(-1));
        let later = find(&place.sandbox(), Call::Authorize, "k").await;
        assert_eq!(
            later,
            Finding::Known(decided.clone()),
            "{method}: decided for good"
        );
        assert_eq!(sandbox.authorize(&request).await, decided, "{method}");
        assert_eq!(place.effects("k"), effects, "{method}");
    }
}

#[tokio::test]
async fn a_key_with_other_parameters_is_refused_and_changes_nothing() {
    let place = Place::new();
    let sandbox = place.sandbox();
    let request = authorize("k", "pm_card_visa");
    let outcome = sandbox.authorize(&request).await;
    let dollars = Money {
        currency: Currency::from_code("USD").unwrap(),
        ..request.money
    };
    for other in [
        Authorize {
            money: money(2000),
            ..request.clone()
        },
        Authorize {
            money: dollars,
            ..request.clone()
        },
        authorize("k", "pm_card_mastercard"),
        Authorize {
            capture_method: CaptureMethod::Manual,
            ..request.clone()
        },
        Authorize {
            description: Some(String::new()),
            ..request.clone()
        },
    ] {
        let refused = sandbox.authorize(&other).await;
        assert_eq!(
            refused,
            Outcome::Unknown(Unknown::ParametersDiffer),
            "{other:?}"
        );
    }

    assert_eq!(sandbox.authorize(&request).await, outcome);
    assert_eq!(place.effects("k"), 1);
}

#[tokio::test]
async fn without_a_folder_the_answers_are_the_same() {
    let place = Place::new();
    let memory = Sandbox::in_memory(Arc::new(place.clock.clone()));
    let folder = place.sandbox();
    for (method, _) in super::super::method::METHODS {
        if method.contains("timeout") {
            continue;
        }
        let method = method.replace("<time>", "1ms").replace("<n>", "1");
        let request = authorize(&method, &method);
        for _ in 0..3 {
            assert_eq!(
                memory.authorize(&request).await,
                folder.authorize(&request).await
            );
            place.clock.advance(TimeDelta::seconds(1));
            assert_eq!(
                find(&memory, Call::Authorize, &method).await,
                find(&folder, Call::Authorize, &method).await,
                "{method}"
            );
        }
    }
}
