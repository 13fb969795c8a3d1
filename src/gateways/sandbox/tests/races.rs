//! Several senders at once. Two sandboxes on one folder share nothing in the process, so they meet
//! only where two processes would: at the folder's lock.

use futures_util::future::join_all;

use super::*;
use crate::gateways::Unknown;

/// Fails if a step does not hold the folder's lock: both sandboxes then see an undecided key.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_everybody_sends_has_one_effect() {
    for method in ["pm_card_visa", "pm_slow_5ms", "pm_slow_after_charge_5ms"] {
        let place = Place::new();
        let sandboxes = [place.sandbox(), place.sandbox()];
        let request = authorize("k", method);

        let outcomes = join_all(
            (0..32).flat_map(|_| sandboxes.iter().map(|sandbox| sandbox.authorize(&request))),
        )
        .await;

        assert_eq!(outcomes.len(), 64);
        assert!(
            matches!(outcomes[0], Outcome::Approved { .. }),
            "{method}: {:?}",
            outcomes[0]
        );
        assert!(
            outcomes.iter().all(|outcome| *outcome == outcomes[0]),
            "{method}"
        );
        assert_eq!(place.effects("k"), 1, "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_requests_under_one_key_one_is_executed() {
    let place = Place::new();
    let sandboxes = [place.sandbox(), place.sandbox()];
    let requests = [
        authorize("k", "pm_card_visa"),
        authorize("k", "pm_card_mastercard"),
    ];

    let outcomes = join_all(
        (0..16).flat_map(|_| sandboxes.iter().zip(&requests).map(|(s, r)| s.authorize(r))),
    )
    .await;

    let approved = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Outcome::Approved { .. }));
    let differ = Outcome::Unknown(Unknown::ParametersDiffer);
    assert_eq!(approved.count(), 16);
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| **outcome == differ)
            .count(),
        16
    );
    assert_eq!(place.effects("k"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_send_leaves_its_whole_lines_whoever_else_writes() {
    let place = Place::new();
    let sandboxes = [place.sandbox(), place.sandbox()];
    let requests: Vec<_> = (0..64)
        .map(|n| authorize(&format!("k{n}"), "pm_card_visa"))
        .collect();

    join_all(
        requests
            .iter()
            .enumerate()
            .map(|(n, request)| sandboxes[n % 2].authorize(request)),
    )
    .await;

    assert_eq!(
        place.lines().len(),
        64 * 3,
        "a request, an effect and an answer each"
    );
    let effects = journal::effects(&place.lines());
    assert_eq!(effects.len(), 64);
    assert!(effects.values().all(|count| *count == 1));
}

/// The caller's timeout strikes earlier and later in the call; wherever that is, what is left must
/// be nothing or whole.
#[tokio::test]
async fn a_call_that_is_dropped_anywhere_leaves_nothing_half_done() {
    let place = Place::new();
    let sandbox = place.sandbox();
    for step in 0..40 {
        let key = format!("k{step}");
        let request = authorize(&key, "pm_slow_after_charge_60s");
        let limit = Duration::from_micros(250) * step;
        let given_up = tokio::time::timeout(limit, sandbox.authorize(&request)).await;
        assert!(given_up.is_err(), "it must not answer within {limit:?}");

        // The second send finds the key decided, or is the first itself: then it is given up once
        // the effect is there.
        tokio::select! {
            _ = sandbox.authorize(&request) => {}
            () = place.until_effect(&key) => {}
        }
        let outcome = at_once(sandbox.authorize(&request)).await;

        assert!(
            matches!(outcome, Outcome::Approved { .. }),
            "given up after {limit:?}: {outcome:?}"
        );
        assert_eq!(place.effects(&key), 1, "given up after {limit:?}");
    }
}

#[tokio::test]
async fn a_second_sandbox_sees_the_keys_of_the_first() {
    let place = Place::new();
    let (first, second) = (place.sandbox(), place.sandbox());
    let request = authorize("k", "pm_card_visa");

    let outcome = first.authorize(&request).await;

    let found = find(&second, Call::Authorize, "k").await;
    assert_eq!(found, Finding::Known(outcome));
    let other = Authorize {
        money: money(1),
        ..request
    };
    let refused = second.authorize(&other).await;
    assert_eq!(refused, Outcome::Unknown(Unknown::ParametersDiffer));
}
