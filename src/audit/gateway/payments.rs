//! Payments of the gateway and payments of the database, by gateway key.

use std::collections::{BTreeMap, BTreeSet};

use super::{Reading, breach, of_payment};
use crate::{
    audit::{Breach, store::Recorded},
    gateways::listing::{Listed, ListedState},
};

/// Compares both, each from its own side.
pub(super) fn compare(
    before: &Reading,
    after: &Reading,
    by_key: &BTreeMap<&str, &Recorded>,
) -> Vec<Breach> {
    let mut breaches = more_than_one(after, by_key);
    let unrecorded = before
        .payments()
        .filter(|(key, object)| has_effect(object) && !by_key.contains_key(key));
    breaches.extend(unrecorded.map(|(key, object)| without_payment(key, object)));
    let earlier: BTreeMap<&str, &Listed> = before.payments().collect();
    let later: BTreeMap<&str, &Listed> = after.payments().collect();
    for (key, payment) in by_key {
        match later.get(key) {
            None => breaches.extend(missing(payment, earlier.get(key).copied())),
            Some(object) => {
                breaches.extend(amounts(payment, object));
                breaches.extend(states(payment, earlier.get(key).copied(), object));
            }
        }
    }
    breaches
}

/// Whether money was moved or held, or is about to be.
const fn has_effect(object: &Listed) -> bool {
    matches!(
        object.state,
        ListedState::Held | ListedState::Taken { .. } | ListedState::Pending
    )
}

fn more_than_one(after: &Reading, by_key: &BTreeMap<&str, &Recorded>) -> Vec<Breach> {
    let mut references: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (key, object) in after.payments().filter(|(_, object)| has_effect(object)) {
        references
            .entry(key)
            .or_default()
            .insert(&object.reference.0);
    }
    references.retain(|_, references| references.len() > 1);
    let told = references.into_iter().map(|(key, references)| {
        let references: Vec<&str> = references.into_iter().collect();
        let detail = format!("under one gateway key there are {}", references.join(", "));
        let (check, invariant) = ("more_than_one_effect", "I1");
        match by_key.get(key) {
            Some(payment) => of_payment(check, invariant, payment, detail),
            None => breach(check, invariant, key, detail),
        }
    });
    told.collect()
}

fn without_payment(key: &str, object: &Listed) -> Breach {
    let detail = format!(
        "the gateway has {}, {}, and there is no payment",
        object.reference.0,
        told(object)
    );
    breach("effect_without_payment", "I3", key, detail)
}

/// A payment that the gateway does not list. One that is older than the list need not be in it,
/// unless it was a moment ago.
fn missing(payment: &Recorded, earlier: Option<&Listed>) -> Option<Breach> {
    let settled = matches!(&*payment.status, "succeeded" | "requires_capture");
    let listable = payment.expected || earlier.is_some();
    (settled && listable).then(|| {
        let detail = format!(
            "the payment is {} and the gateway has none of this key",
            payment.status
        );
        of_payment("payment_without_effect", "I2", payment, detail)
    })
}

fn amounts(payment: &Recorded, object: &Listed) -> Option<Breach> {
    let agrees = object.money.is_some_and(|money| {
        money.amount_minor == payment.amount && money.currency.code() == payment.currency
    });
    let captured_agrees = match (&*payment.status, &object.state) {
        ("succeeded", ListedState::Taken { captured }) => *captured == Some(payment.captured),
        _ => true,
    };
    (!(agrees && captured_agrees)).then(|| {
        let detail = format!(
            "asked for {} {}, of which {} is captured; the gateway has {}, {}",
            payment.amount,
            payment.currency,
            payment.captured,
            object.reference.0,
            told(object),
        );
        of_payment("amount_differs", "I2", payment, detail)
    })
}

/// What cannot be true of both, whatever happened between the readings.
///
/// A decided payment stays what it is, so the later reading must agree with it. Only a held one may
/// have been captured or canceled meanwhile; but one that was so before the snapshot was so by
/// somebody else's hand, or by the gateway's, which lets holds go that are not captured in time.
fn states(payment: &Recorded, earlier: Option<&Listed>, object: &Listed) -> Option<Breach> {
    let earlier = earlier.map(|earlier| &earlier.state);
    let (check, invariant, contradicts) = match &*payment.status {
        "succeeded" => (
            "payment_contradicts_gateway",
            "I2",
            !matches!(object.state, ListedState::Taken { .. }),
        ),
        "requires_capture" => (
            "payment_contradicts_gateway",
            "I2",
            matches!(
                earlier,
                Some(ListedState::Taken { .. } | ListedState::Canceled)
            ) || matches!(
                object.state,
                ListedState::Pending | ListedState::NotExecuted
            ),
        ),
        "failed" | "canceled" => ("effect_of_undone_payment", "I4", has_effect(object)),
        _ => return None,
    };
    contradicts.then(|| {
        let detail = format!(
            "the payment is {}; the gateway has {}, {}",
            payment.status,
            object.reference.0,
            told(object)
        );
        of_payment(check, invariant, payment, detail)
    })
}

/// An object's state and sum, for people.
fn told(object: &Listed) -> String {
    let state = match &object.state {
        ListedState::Held => "held",
        ListedState::Taken { .. } => "captured",
        ListedState::Pending => "not decided",
        ListedState::Canceled => "canceled",
        ListedState::NotExecuted => "not executed",
        ListedState::Refunded { .. } => "refunded",
        ListedState::NotRefunded => "not refunded",
    };
    let captured = match object.state {
        ListedState::Taken {
            captured: Some(captured),
        } => format!(" with {captured} taken"),
        _ => String::new(),
    };
    match object.money {
        Some(money) => format!(
            "{state}: {} {}{captured}",
            money.amount_minor, money.currency
        ),
        None => format!("{state}: a sum that cannot be ours{captured}"),
    }
}
