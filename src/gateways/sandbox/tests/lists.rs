//! What the sandbox lists, and what it finds by the payment that a call was about.

use chrono::{DateTime, TimeDelta, Utc};

use super::*;
use crate::gateways::{
    Cancel, Capture, Refund, Unknown,
    listing::{ListError, ListedState},
};

const START: DateTime<Utc> = DateTime::UNIX_EPOCH;

async fn held(sandbox: &Sandbox, key: &str) -> GatewayReference {
    let request = Authorize {
        capture_method: CaptureMethod::Manual,
        ..authorize(key, "pm_card_visa")
    };
    reference(&sandbox.authorize(&request).await)
}

fn capture(key: &str, authorization: &GatewayReference) -> Capture {
    Capture {
        gateway_key: GatewayKey::new(key),
        authorization: authorization.clone(),
        money: money(1500),
    }
}

fn cancel(key: &str, authorization: &GatewayReference) -> Cancel {
    Cancel {
        gateway_key: GatewayKey::new(key),
        authorization: authorization.clone(),
    }
}

fn refund(key: &str, charge: &GatewayReference) -> Refund {
    Refund {
        gateway_key: GatewayKey::new(key),
        charge: charge.clone(),
        money: money(500),
    }
}

/// The key and the state of everything that is listed, by key.
async fn listed(sandbox: &Sandbox, since: DateTime<Utc>) -> Vec<(String, ListedState)> {
    let listed = sandbox.list(since).await.unwrap();
    let mut listed: Vec<_> = listed
        .into_iter()
        .map(|object| {
            (
                object.gateway_key.unwrap().as_str().to_owned(),
                object.state,
            )
        })
        .collect();
    listed.sort_by(|(one, _), (other, _)| one.cmp(other));
    listed
}

#[tokio::test]
async fn every_object_is_listed_as_it_stands_with_its_key() {
    let place = Place::new();
    let sandbox = place.sandbox();
    for (key, method) in [
        ("declined", "pm_card_declined"),
        ("pending", "pm_pending_then_succeeds"),
        ("taken", "pm_card_visa"),
        ("undecided", "pm_unknown"),
    ] {
        sandbox.authorize(&authorize(key, method)).await;
    }
    held(&sandbox, "held").await;
    let captured = held(&sandbox, "captured").await;
    let capture = reference(&sandbox.capture(&capture("capture", &captured)).await);
    sandbox.refund(&refund("refund", &capture)).await;
    let canceled = held(&sandbox, "canceled").await;
    sandbox.cancel(&cancel("cancel", &canceled)).await;
    sandbox.refund(&refund("refused", &canceled)).await;

    let listed = listed(&sandbox, START).await;

    let taken = |captured| ListedState::Taken {
        captured: Some(captured),
    };
    let payment = Some(captured);
    let expected = [
        ("canceled", ListedState::Canceled),
        ("captured", taken(1500)),
        ("declined", ListedState::NotExecuted),
        ("held", ListedState::Held),
        ("pending", ListedState::Pending),
        ("refund", ListedState::Refunded { payment }),
        ("refused", ListedState::NotRefunded),
        ("taken", taken(1999)),
    ];
    assert_eq!(
        listed,
        expected.map(|(key, state)| (key.to_owned(), state)),
        "captures, cancels and what is undecided are no objects"
    );
}

#[tokio::test]
async fn what_was_made_before_is_not_listed_whoever_asks() {
    let place = Place::new();
    place
        .sandbox()
        .authorize(&authorize("old", "pm_card_visa"))
        .await;
    place.clock.advance(TimeDelta::hours(1));
    place
        .sandbox()
        .authorize(&authorize("new", "pm_card_visa"))
        .await;

    let listed = listed(&place.sandbox(), START + TimeDelta::minutes(1)).await;

    let taken = ListedState::Taken {
        captured: Some(1999),
    };
    assert_eq!(listed, [("new".to_owned(), taken)]);
}

/// An empty list would say that nobody was ever charged.
#[tokio::test]
async fn a_sandbox_that_forgets_has_no_list() {
    let place = Place::new();
    let sandbox = Sandbox::in_memory(Arc::new(place.clock.clone()));

    let list = sandbox.list(START).await;

    assert!(matches!(list, Err(ListError::Unanswered(_))), "{list:?}");
}

#[tokio::test]
async fn a_payment_that_somebody_else_canceled_or_captured_says_so() {
    let place = Place::new();
    let sandbox = place.sandbox();
    let canceled = held(&sandbox, "canceled").await;
    let captured = held(&sandbox, "captured").await;
    let open = held(&sandbox, "open").await;
    sandbox.cancel(&cancel("other", &canceled)).await;
    sandbox.capture(&capture("another", &captured)).await;

    let find = |call, payment| find_at(&sandbox, call, "K", payment);
    let cancel_done = find(Call::Cancel, &canceled).await;
    let cancel_late = find(Call::Cancel, &captured).await;
    let capture_late = find(Call::Capture, &canceled).await;
    let capture_by_other = find(Call::Capture, &captured).await;

    let approved = Outcome::Approved {
        reference: canceled.clone(),
    };
    assert_eq!(cancel_done, Finding::Known(approved));
    for (late, expected) in [
        (cancel_late, "already-captured"),
        (capture_late, "authorization-canceled"),
    ] {
        let Finding::Known(outcome) = late else {
            panic!("{expected} must be found");
        };
        assert_eq!(code(&outcome), expected);
    }
    let differs = Outcome::Unknown(Unknown::ParametersDiffer);
    assert_eq!(capture_by_other, Finding::Known(differs));
    assert_eq!(find(Call::Cancel, &open).await, Finding::Absent);
    assert_eq!(find(Call::Capture, &open).await, Finding::Absent);
    assert_eq!(find(Call::Refund, &captured).await, Finding::Absent);
}
