//! Every state of a payment against every state of its object, and what goes on between the readings.

use uuid::Uuid;

use super::*;
use crate::{
    gateways::GatewayKey,
    ids::{MerchantId, PaymentId},
    payments::{currency::Currency, money::Money},
};

fn recorded(status: &str) -> Recorded {
    Recorded {
        merchant_id: MerchantId::from_uuid(Uuid::nil()),
        payment_id: PaymentId::from_uuid(Uuid::nil()),
        status: status.to_owned(),
        amount: 1999,
        captured: 1999,
        refunded: 0,
        currency: "EUR".to_owned(),
        gateway_key: "k".to_owned(),
        gateway_reference: Some("pi_1".to_owned()),
        expected: true,
    }
}

fn listed(reference: &str, key: Option<&str>, amount: i64, state: ListedState) -> Listed {
    let currency = Currency::from_code("EUR").unwrap();
    Listed {
        reference: GatewayReference(reference.to_owned()),
        gateway_key: key.map(GatewayKey::new),
        money: Some(Money {
            amount_minor: amount,
            currency,
        }),
        state,
    }
}

fn object(state: ListedState) -> Listed {
    listed("pi_1", Some("k"), 1999, state)
}

fn refund(reference: &str, payment: &str, amount: i64) -> Listed {
    let payment = Some(GatewayReference(payment.to_owned()));
    listed(
        reference,
        Some("r"),
        amount,
        ListedState::Refunded { payment },
    )
}

fn found(before: &[Listed], after: &[Listed], recorded: &[Recorded]) -> Vec<&'static str> {
    let (before, after) = (Reading(before.to_vec()), Reading(after.to_vec()));
    compare(&before, &after, recorded)
        .iter()
        .map(|breach| breach.check)
        .collect()
}

fn state(word: &str) -> Option<ListedState> {
    Some(match word {
        "held" => ListedState::Held,
        "taken" => ListedState::Taken {
            captured: Some(1999),
        },
        "pending" => ListedState::Pending,
        "canceled" => ListedState::Canceled,
        "none" => ListedState::NotExecuted,
        "-" => return None,
        word => panic!("{word}"),
    })
}

/// A payment's status; its object in the reading before the snapshot and in the one after; what is
/// found. `-`: not listed.
const TABLE: &str = "
    succeeded        | taken    | taken    |
    succeeded        | -        | taken    |
    succeeded        | pending  | taken    |
    succeeded        | held     | taken    |
    succeeded        | held     | held     | payment_contradicts_gateway
    succeeded        | pending  | pending  | payment_contradicts_gateway
    succeeded        | taken    | canceled | payment_contradicts_gateway
    succeeded        | none     | none     | payment_contradicts_gateway
    succeeded        | -        | -        | payment_without_effect
    succeeded        | taken    | -        | payment_without_effect
    requires_capture | held     | held     |
    requires_capture | -        | held     |
    requires_capture | held     | taken    |
    requires_capture | held     | canceled |
    requires_capture | taken    | taken    | payment_contradicts_gateway
    requires_capture | canceled | canceled | payment_contradicts_gateway
    requires_capture | pending  | pending  | payment_contradicts_gateway
    requires_capture | none     | none     | payment_contradicts_gateway
    requires_capture | -        | -        | payment_without_effect
    failed           | none     | none     |
    failed           | pending  | none     |
    failed           | -        | -        |
    failed           | taken    | taken    | effect_of_undone_payment
    failed           | held     | held     | effect_of_undone_payment
    failed           | pending  | pending  | effect_of_undone_payment
    failed           | -        | taken    | effect_of_undone_payment
    canceled         | canceled | canceled |
    canceled         | held     | canceled |
    canceled         | taken    | taken    | effect_of_undone_payment
    canceled         | held     | held     | effect_of_undone_payment
    processing       | -        | -        |
    processing       | taken    | taken    |
    processing       | held     | held     |
    processing       | none     | none     |
    requires_review  | taken    | taken    |
    requires_review  | -        | -        |";

#[test]
fn a_payment_and_its_object_agree_or_are_found() {
    for row in TABLE.trim().lines() {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        let [status, before, after, check] = columns.try_into().unwrap();
        let reading = |word| -> Vec<Listed> { state(word).map(object).into_iter().collect() };

        let found = found(&reading(before), &reading(after), &[recorded(status)]);

        let expected: Vec<&str> = Some(check)
            .filter(|check| !check.is_empty())
            .into_iter()
            .collect();
        assert_eq!(found, expected, "{row}");
    }
}

#[test]
fn an_effect_that_was_there_before_the_snapshot_needs_a_payment() {
    let taken = || object(state("taken").unwrap());
    for word in ["taken", "held", "pending"] {
        let effect = [object(state(word).unwrap())];
        assert_eq!(found(&effect, &effect, &[]), ["effect_without_payment"]);
    }
    for word in ["none", "canceled"] {
        let nothing = [object(state(word).unwrap())];
        assert_eq!(found(&nothing, &nothing, &[]), [""; 0], "{word}");
    }
    assert_eq!(
        found(&[], &[taken()], &[]),
        [""; 0],
        "it was made meanwhile"
    );
}

#[test]
fn a_payment_from_before_the_list_need_not_be_in_it() {
    let old = Recorded {
        expected: false,
        ..recorded("succeeded")
    };

    assert_eq!(found(&[], &[], std::slice::from_ref(&old)), [""; 0]);
    assert_eq!(
        found(&[object(state("held").unwrap())], &[], &[old]),
        ["payment_without_effect"],
        "it was a moment ago"
    );
}

#[test]
fn another_sum_is_found_whatever_the_state() {
    let other = listed("pi_1", Some("k"), 1998, ListedState::Pending);
    let no_sum = Listed {
        money: None,
        ..object(state("taken").unwrap())
    };
    let less_taken = object(ListedState::Taken {
        captured: Some(1000),
    });
    let other_currency = Recorded {
        currency: "USD".to_owned(),
        ..recorded("processing")
    };

    for (object, payment) in [
        (other, recorded("processing")),
        (no_sum, recorded("requires_review")),
        (less_taken, recorded("succeeded")),
        (object(ListedState::Pending), other_currency),
    ] {
        let reading = [object];
        assert_eq!(found(&reading, &reading, &[payment]), ["amount_differs"]);
    }
}

#[test]
fn two_effects_under_one_key_are_found() {
    let one = object(state("taken").unwrap());
    let other = listed("pi_2", Some("k"), 1999, state("taken").unwrap());
    let reading = [one, other];

    let found = found(&reading, &reading, &[recorded("succeeded")]);

    assert_eq!(found, ["more_than_one_effect"]);
}

#[test]
fn what_is_not_ours_is_not_judged() {
    let foreign = listed("pi_9", None, 1, state("taken").unwrap());
    let reading = [foreign, object(state("taken").unwrap())];

    assert_eq!(found(&reading, &reading, &[recorded("succeeded")]), [""; 0]);
}

#[test]
fn more_given_back_than_recorded_is_found() {
    let taken = object(state("taken").unwrap());
    let given_back = |refunded| Recorded {
        refunded,
        ..recorded("succeeded")
    };
    let reading = [
        taken.clone(),
        refund("re_1", "pi_1", 500),
        refund("re_2", "pi_1", 500),
    ];

    assert_eq!(found(&reading, &reading, &[given_back(1000)]), [""; 0]);
    assert_eq!(
        found(&reading, &reading, &[given_back(1500)]),
        [""; 0],
        "an older one need not be listed"
    );
    assert_eq!(
        found(&reading, &reading, &[given_back(999)]),
        ["refund_not_recorded"]
    );
    assert_eq!(
        found(
            &reading,
            &[taken, refund("re_1", "pi_1", 500)],
            &[given_back(500)]
        ),
        [""; 0],
        "the other came to nothing meanwhile"
    );
    let lost = [refund("re_3", "pi_3", 1)];
    assert_eq!(found(&lost, &lost, &[]), ["refund_without_payment"]);
}
