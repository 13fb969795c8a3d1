//! What the gateway did, held against what was asked and answered.

use std::collections::BTreeSet;

use oncepay::gateways::sandbox::journal::{Call, Kind, Line};

use super::{Breach, breach, each};
use crate::chaos::evidence::Evidence;

/// I1: one key, one effect.
pub(super) fn at_most_one(evidence: &Evidence) -> Vec<Breach> {
    each(evidence, |evidence, order| {
        let effects = evidence.effects(order).count();
        (effects > 1).then(|| breach("I1", order, format!("{effects} effects")))
    })
}

/// I11: the gateway never sees a key that is not the one of an order.
pub(super) fn of_orders_only(evidence: &Evidence) -> Vec<Breach> {
    let known: BTreeSet<&str> = evidence.gateway_keys.iter().map(String::as_str).collect();
    let strange = evidence.lines.iter().filter(|line| {
        line.call == Call::Authorize
            && matches!(line.kind, Kind::Request | Kind::Effect)
            && !known.contains(line.gateway_key.as_str())
    });
    strange
        .map(|line| Breach {
            invariant: "I11",
            order: None,
            detail: format!("a key of no order: {line:?}"),
        })
        .collect()
}

/// I2: who was told that a payment is made has paid, and the amount that was asked.
///
/// A payment that the gateway decides later is judged by its row, at the end.
pub(super) fn paid_for(evidence: &Evidence) -> Vec<Breach> {
    each(evidence, |evidence, order| {
        let wanted = &evidence.orders[order];
        let fits = |line: &Line, amount| {
            line.amount == Some(amount) && line.currency.as_deref() == Some(wanted.currency)
        };
        let done = |status: &str| matches!(status, "succeeded" | "requires_capture");
        for (request, answer) in evidence.finals(order) {
            let status = answer.payment_status().unwrap_or_default();
            let amount = wanted.amount_of(request.body);
            if answer.status == 201
                && done(&status)
                && !evidence.effects(order).any(|line| fits(line, amount))
            {
                return Some(breach("I2", order, "201 without its effect"));
            }
        }
        let payment = evidence.payment(order)?;
        let paid = evidence
            .effects(order)
            .any(|line| fits(line, payment.amount));
        (done(&payment.status) && !paid).then(|| {
            let detail = format!("the payment is {} without its effect", payment.status);
            breach("I2", order, detail)
        })
    })
}

/// I3: an effect ends in a payment that is made, or in front of a person. An effect that is not what
/// was asked is nothing but the latter.
pub(super) fn settled(evidence: &Evidence) -> Vec<Breach> {
    each(evidence, |evidence, order| {
        let effect = evidence.effects(order).next()?;
        let payment = evidence.payment(order);
        let as_asked = payment.is_some_and(|payment| effect.amount == Some(payment.amount));
        let status = payment.map_or("missing", |payment| payment.status.as_str());
        let settled = match status {
            "succeeded" | "requires_capture" => as_asked,
            "requires_review" => true,
            _ => false,
        };
        (!settled).then(|| {
            let detail = format!("executed {:?}, and the payment is {status}", effect.amount);
            breach("I3", order, detail)
        })
    })
}

/// I6: only the body that owns the key ever reaches the gateway.
pub(super) fn of_one_body(evidence: &Evidence) -> Vec<Breach> {
    each(evidence, |evidence, order| {
        // A released key that expired may be anybody's again.
        let epoch = |line: &Line| evidence.day.is_some_and(|day| line.at >= day);
        for after in [false, true] {
            let sent: BTreeSet<Option<i64>> = evidence
                .sends(order)
                .filter(|line| epoch(line) == after)
                .map(|line| line.amount)
                .collect();
            if sent.len() > 1 {
                return Some(breach(
                    "I6",
                    order,
                    format!("two bodies were sent: {sent:?}"),
                ));
            }
        }
        None
    })
}

/// I1, D6.6: what was sent is never sent again once the gateway may have forgotten its key.
pub(super) fn never_after_the_window(evidence: &Evidence) -> Vec<Breach> {
    let Some(day) = evidence.day else {
        return Vec::new();
    };
    each(evidence, |evidence, order| {
        let before = evidence.sends(order).any(|line| line.at < day);
        let after = evidence.sends(order).find(|line| line.at >= day)?;
        // Nothing that was sent for a released key can have had an effect.
        let released = evidence
            .samples_of(order)
            .take_while(|sample| sample.at < day)
            .last()
            .is_some_and(|sample| sample.seen.retryable);
        (before && !released).then(|| {
            let detail = format!("sent before the day, and again at {}", after.at);
            breach("I1", order, detail)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::check::sample::{at, line, paid};

    fn found(check: fn(&Evidence) -> Vec<Breach>, evidence: &Evidence) -> Vec<&'static str> {
        let breaches = check(evidence);
        breaches.iter().map(|breach| breach.invariant).collect()
    }

    #[test]
    fn a_second_effect_is_found() {
        let mut evidence = paid();
        evidence.lines.push(line(9, Kind::Effect));

        assert_eq!(found(at_most_one, &evidence), ["I1"]);
    }

    #[test]
    fn a_gateway_key_of_no_order_is_found() {
        let mut evidence = paid();
        evidence.lines[0].gateway_key = "random".to_owned();

        assert_eq!(found(of_orders_only, &evidence), ["I11"]);
    }

    #[test]
    fn an_answer_without_its_effect_is_found() {
        let mut missing = paid();
        missing.lines.clear();
        let mut wrong = paid();
        wrong.lines[1].amount = Some(1998);
        let mut row_only = paid();
        row_only.lines.clear();
        row_only.requests.clear();

        for evidence in [missing, wrong, row_only] {
            assert_eq!(found(paid_for, &evidence), ["I2"]);
        }
    }

    #[test]
    fn an_effect_that_no_payment_tells_of_is_found() {
        for status in ["failed", "processing", "canceled"] {
            let mut evidence = paid();
            let payment = evidence.payments.values_mut().next().unwrap();
            status.clone_into(&mut payment.status);

            assert_eq!(found(settled, &evidence), ["I3"], "{status}");
        }
        let mut lost = paid();
        lost.payments.clear();
        assert_eq!(found(settled, &lost), ["I3"]);
        let mut other = paid();
        other.lines[1].amount = Some(1998);
        assert_eq!(found(settled, &other), ["I3"]);
    }

    #[test]
    fn a_wrong_effect_in_review_is_no_breach() {
        let mut evidence = paid();
        evidence.lines[1].amount = Some(1998);
        let payment = evidence.payments.values_mut().next().unwrap();
        "requires_review".clone_into(&mut payment.status);

        assert_eq!(found(settled, &evidence), [""; 0]);
    }

    #[test]
    fn a_second_body_at_the_gateway_is_found() {
        let mut evidence = paid();
        evidence.lines.push(Line {
            amount: Some(5_001_999),
            ..line(9, Kind::Request)
        });

        assert_eq!(found(of_one_body, &evidence), ["I6"]);
    }

    #[test]
    fn a_send_after_the_window_is_found() {
        let mut evidence = paid();
        evidence.lines.push(line(9, Kind::Request));
        evidence.day = Some(at(8));

        assert_eq!(found(never_after_the_window, &evidence), ["I1"]);
        evidence.samples.last_mut().unwrap().seen.retryable = true;
        assert_eq!(found(never_after_the_window, &evidence), [""; 0]);
    }
}
