//! What belongs to somebody else, and what the audit says.

use std::collections::{BTreeMap, BTreeSet};

use oncepay::gateways::sandbox::journal::{Call, Kind};

use super::{Breach, breach, each};
use crate::chaos::{evidence::Evidence, history::Body};

/// I16: two merchants with the same key get what each has ordered, and no payment is of nobody.
///
/// Amounts tell them apart, because each order has another.
pub(super) fn merchants_are_isolated(evidence: &Evidence) -> Vec<Breach> {
    let mut breaches = each(evidence, |evidence, order| {
        let wanted = &evidence.orders[order];
        let amounts = [Body::Own, Body::Other].map(|body| wanted.amount_of(body));
        let strange = evidence.answers(order).find(|(_, answer)| {
            let shown = answer.document()["amount"].as_i64();
            shown.is_some_and(|amount| !amounts.contains(&amount))
        });
        let (_, answer) = strange?;
        let text = String::from_utf8_lossy(&answer.body);
        Some(breach(
            "I16",
            order,
            format!("somebody else's payment: {text}"),
        ))
    });
    let ordered: BTreeSet<(&str, &str)> = evidence
        .orders
        .iter()
        .zip(&evidence.merchants)
        .map(|(order, merchant)| (merchant.as_str(), order.key.as_str()))
        .collect();
    let nobodys = evidence
        .payments
        .keys()
        .filter(|(merchant, key)| !ordered.contains(&(merchant.as_str(), key.as_str())));
    breaches.extend(nobodys.map(|(merchant, _)| Breach {
        invariant: "I16",
        order: None,
        detail: format!("{merchant} has a payment that it did not order"),
    }));
    breaches
}

/// All invariants as far as `oncepay audit` sees them.
///
/// It lists an effect of another amount, as it should; where the gateway did something else than
/// was sent, and the payment is in front of a person, that is what must happen.
pub(super) fn audited(evidence: &Evidence) -> Vec<Breach> {
    let falsified = falsified(evidence);
    let found = evidence.audit.iter().filter(|breach| {
        let key = breach.gateway_key.as_deref().unwrap_or_default();
        breach.check != "amount_differs" || !falsified.contains(key)
    });
    found
        .map(|found| Breach {
            invariant: found.invariant,
            order: evidence
                .gateway_keys
                .iter()
                .position(|key| Some(key) == found.gateway_key.as_ref()),
            detail: format!("audit: {found:?}"),
        })
        .collect()
}

/// The gateway keys whose effect is not what was sent, with the payment in review.
fn falsified(evidence: &Evidence) -> BTreeSet<&str> {
    let mut sent: BTreeMap<&str, BTreeSet<Option<i64>>> = BTreeMap::new();
    for line in &evidence.lines {
        if (line.kind, line.call) == (Kind::Request, Call::Authorize) {
            sent.entry(&line.gateway_key)
                .or_default()
                .insert(line.amount);
        }
    }
    (0..evidence.orders.len())
        .filter(|order| {
            evidence
                .payment(*order)
                .is_some_and(|payment| payment.status == "requires_review")
        })
        .flat_map(|order| evidence.effects(order))
        .filter(|effect| {
            sent.get(effect.gateway_key.as_str())
                .is_some_and(|amounts| !amounts.contains(&effect.amount))
        })
        .map(|effect| effect.gateway_key.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::check::sample::paid;

    fn amount_differs() -> oncepay::audit::Breach {
        oncepay::audit::Breach {
            check: "amount_differs",
            invariant: "I2",
            merchant_id: None,
            payment_id: None,
            key_hash: None,
            gateway_key: Some("G".to_owned()),
            detail: String::new(),
        }
    }

    #[test]
    fn a_payment_of_somebody_else_is_found() {
        let mut shown = paid();
        shown.orders[0].amount = 7;
        let mut nobodys = paid();
        let payment = nobodys.payments.values().next().unwrap().clone();
        let place = ("N".to_owned(), "K".to_owned());
        nobodys.payments.insert(place, payment);

        for evidence in [shown, nobodys] {
            let breaches = merchants_are_isolated(&evidence);

            assert_eq!(breaches.len(), 1, "{breaches:?}");
            assert_eq!(breaches[0].invariant, "I16");
        }
    }

    #[test]
    fn what_the_audit_finds_is_a_breach() {
        let mut evidence = paid();
        evidence.audit = vec![amount_differs()];

        let breaches = audited(&evidence);

        assert_eq!(breaches[0].invariant, "I2");
        assert_eq!(breaches[0].order, Some(0));
    }

    /// Only the gateway's own fault is excused, and only in front of a person.
    #[test]
    fn a_wrong_amount_is_excused_where_a_person_looks_at_the_gateway_s_fault() {
        let mut evidence = paid();
        evidence.audit = vec![amount_differs()];
        evidence.lines[1].amount = Some(1998);
        let succeeded = audited(&evidence).len();
        let payment = evidence.payments.values_mut().next().unwrap();
        "requires_review".clone_into(&mut payment.status);
        let in_review = audited(&evidence).len();
        evidence.lines[0].amount = Some(1998);
        let asked_for = audited(&evidence).len();

        assert_eq!((succeeded, in_review, asked_for), (1, 0, 1));
    }
}
