//! Each fault of the sandbox server: what it looks like to the stripe gateway, what it really did, and
//! what a second send or a look-up makes of it.

use oncepay::gateways::{Authorize, Call, Finding, Gateway as _, Outcome, Unknown, stripe::Stripe};
use serde_json::{Value, json};

use crate::support::{
    sandbox::{SandboxHere, fault, fault_status},
    stripe::{PATIENCE, SHORT, authorize, find, told},
};

/// A fault and its status; the outcome of the first send and its effects; the outcome of a second
/// send of the key, and the effects by then. A 500 is kept with the key: nothing will ever come of
/// that key again.
const FAULTS: &str = "
    refuse            -   | not-executed refused      | 0 | approved                  | 1
    delay             -   | approved                  | 1 | approved                  | 1
    status_before     500 | unknown gateway-error     | 0 | unknown error-replayed    | 0
    status_before     503 | unknown gateway-error     | 0 | approved                  | 1
    status_before     429 | not-executed refused      | 0 | approved                  | 1
    status_before     401 | not-executed refused      | 0 | approved                  | 1
    status_before     402 | declined card-declined    | 0 | declined card-declined    | 0
    status_before     404 | declined gateway-rejected | 0 | approved                  | 1
    status_before     409 | unknown in-use            | 0 | approved                  | 1
    status_after      500 | unknown gateway-error     | 1 | unknown error-replayed    | 1
    status_after      502 | unknown gateway-error     | 1 | approved                  | 1
    drop_after_effect -   | unknown lost-reply        | 1 | approved                  | 1
    hang_before       -   | unknown timeout           | 0 | approved                  | 1
    hang_after_effect -   | unknown timeout           | 1 | approved                  | 1
    wrong_amount      -   | unknown amount-differs    | 1 | unknown amount-differs    | 1";

#[tokio::test]
async fn each_fault_has_its_outcome_and_one_effect_at_most() {
    for row in FAULTS.trim().lines() {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        let [fault, first, effects, second, effects_then] = columns.try_into().unwrap();
        let sandbox = SandboxHere::start().await;
        let hangs = first == "unknown timeout";
        let first_timeout = if hangs { SHORT } else { PATIENCE };
        sandbox.control.fault(fault_of(fault)).await;

        let impatient = sandbox.control.stripe(first_timeout);
        let outcome = impatient.authorize(&authorize("K")).await;

        assert_eq!(told(&outcome), first, "{row}");
        assert_eq!(sandbox.control.effects().to_string(), effects, "{row}");
        let stripe = sandbox.control.stripe(PATIENCE);
        let outcome = settled(&stripe, &authorize("K")).await;
        assert_eq!(told(&outcome), second, "{row}");
        assert_eq!(sandbox.control.effects().to_string(), effects_then, "{row}");
    }
}

/// The first column.
fn fault_of(column: &str) -> Value {
    let (name, status) = column.split_once(' ').unwrap();
    match (name, status.trim().parse()) {
        ("delay", _) => json!({"fault": "delay", "delay_ms": 20}),
        (name, Ok(status)) => fault_status(name, status),
        (name, Err(_)) => fault(name),
    }
}

/// Sends until the gateway has noticed that the caller of an earlier send is gone.
async fn settled(stripe: &Stripe, request: &Authorize) -> Outcome {
    let sends = async {
        loop {
            let outcome = stripe.authorize(request).await;
            if outcome != Outcome::Unknown(Unknown::InUse) {
                return outcome;
            }
        }
    };
    tokio::time::timeout(PATIENCE, sends).await.unwrap()
}

#[tokio::test]
async fn what_was_done_is_found_whatever_was_answered() {
    for name in ["status_after", "drop_after_effect", "hang_after_effect"] {
        let sandbox = SandboxHere::start().await;
        sandbox.control.fault(fault(name)).await;
        let impatient = sandbox.control.stripe(SHORT);
        let sent = impatient.authorize(&authorize("K")).await;
        assert!(matches!(sent, Outcome::Unknown(_)), "{name}: {sent:?}");

        let finding = find(&sandbox.control.stripe(PATIENCE), Call::Authorize, "K").await;

        let Finding::Known(outcome) = finding else {
            panic!("{name}: it must be found");
        };
        assert_eq!(told(&outcome), "approved", "{name}");
    }
}

#[tokio::test]
async fn a_wrong_amount_is_found_as_wrong_and_not_as_success() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    sandbox.control.fault(fault("wrong_amount")).await;
    stripe.authorize(&authorize("K")).await;

    let finding = find(&stripe, Call::Authorize, "K").await;

    let differs = Outcome::Unknown(Unknown::AmountDiffers);
    assert_eq!(finding, Finding::Known(differs));
}

#[tokio::test]
async fn a_look_up_that_fails_has_not_found_that_there_is_nothing() {
    let sandbox = SandboxHere::start().await;
    for asked in [
        json!({"fault": "status_before", "call": "find", "status": 429}),
        json!({"fault": "status_before", "call": "find", "status": 404}),
        json!({"fault": "status_after", "call": "find"}),
        json!({"fault": "drop_after_effect", "call": "find"}),
        json!({"fault": "hang_before", "call": "find"}),
    ] {
        sandbox.control.fault(asked.clone()).await;

        let finding = find(&sandbox.control.stripe(SHORT), Call::Authorize, "K").await;

        assert!(
            matches!(finding, Finding::Known(Outcome::Unknown(_))),
            "{asked}: {finding:?}"
        );
    }
}
