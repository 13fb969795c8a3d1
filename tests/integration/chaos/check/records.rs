//! What the database kept, and how it changed.

use super::{Breach, breach, each};
use crate::chaos::{
    evidence::{Evidence, PaymentRow},
    history::Answer,
    watch::Sample,
};

/// I8: a fence never goes back. A key whose released record expired begins anew.
pub(super) fn fences_grow(evidence: &Evidence) -> Vec<Breach> {
    changes(evidence, |evidence, before, after| {
        let anew = evidence.day_between(before.at, after.at);
        let back = after.seen.fence < before.seen.fence && !anew;
        back.then(|| ("I8", format!("{before:?} became {after:?}")))
    })
}

/// I7: a finished record does not change.
pub(super) fn finished_stays(evidence: &Evidence) -> Vec<Breach> {
    changes(evidence, |_, before, after| {
        let finished = before.seen.status != "processing" && !before.seen.retryable;
        (finished && before.seen != after.seen)
            .then(|| ("I7", format!("{before:?} became {after:?}")))
    })
}

/// I10: the claim is committed before the gateway hears anything.
pub(super) fn claimed_before_the_call(evidence: &Evidence) -> Vec<Breach> {
    each(evidence, |evidence, order| {
        let record = evidence.record(order)?;
        let sent_at = evidence.sends(order).map(|line| line.at).min()?;
        // A key that began anew after the day was sent in its first life.
        let anew = evidence.day_between(sent_at, record.created_at);
        (record.created_at > sent_at && !anew).then(|| {
            let detail = format!("sent at {sent_at}, claimed at {}", record.created_at);
            breach("I10", order, detail)
        })
    })
}

/// I15, I12: what was answered for good is in the database at the end, as it was answered.
pub(super) fn answers_are_kept(evidence: &Evidence) -> Vec<Breach> {
    each(evidence, |evidence, order| {
        let (_, answer) = evidence.finals(order).next()?;
        let kept = evidence
            .payment(order)
            .is_some_and(|payment| tells_the_same(answer, payment));
        if !kept {
            let detail = format!(
                "{} became {:?}",
                String::from_utf8_lossy(&answer.body),
                evidence.payment(order)
            );
            return Some(breach("I15", order, detail));
        }
        // A day old, it may be gone.
        if evidence.day.is_some() {
            return None;
        }
        let stored = evidence.record(order).is_some_and(|record| {
            record.response_body.as_ref() == Some(&answer.body)
                && record.response_status == i16::try_from(answer.status).ok()
        });
        (!stored).then(|| {
            breach(
                "I12",
                order,
                "the record of a final answer is gone, or another",
            )
        })
    })
}

/// Whether a payment is what its answer said, or what may become of that.
fn tells_the_same(answer: &Answer, payment: &PaymentRow) -> bool {
    let document = answer.document();
    let told = answer.payment_status().unwrap_or_default();
    match answer.status {
        402 => payment.status == "failed" && document["payment_id"] == *payment.id,
        _ if told == "processing" => document["id"] == *payment.id,
        _ => document["id"] == *payment.id && payment.status == told,
    }
}

/// I18: every order comes to an end, and every record is finished or in front of a person.
pub(super) fn nothing_is_left(evidence: &Evidence) -> Vec<Breach> {
    let open = evidence.open.iter();
    let mut breaches: Vec<Breach> = open
        .map(|order| breach("I18", *order, "no end, though everything was healed"))
        .collect();
    breaches.extend(each(evidence, |evidence, order| {
        let record = evidence.record(order)?;
        let payment = evidence.payment(order);
        let in_review = payment.is_some_and(|payment| payment.status == "requires_review");
        (record.status == "processing" && !in_review)
            .then(|| breach("I18", order, "a record is left in processing"))
    }));
    breaches
}

/// Looks at each change of each record.
fn changes(
    evidence: &Evidence,
    check: impl Fn(&Evidence, &Sample, &Sample) -> Option<(&'static str, String)>,
) -> Vec<Breach> {
    each(evidence, |evidence, order| {
        let samples: Vec<&Sample> = evidence.samples_of(order).collect();
        let (invariant, detail) = samples
            .windows(2)
            .find_map(|pair| check(evidence, pair[0], pair[1]))?;
        Some(breach(invariant, order, detail))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::check::sample::{at, paid, sample};

    fn found(check: fn(&Evidence) -> Vec<Breach>, evidence: &Evidence) -> Vec<&'static str> {
        let breaches = check(evidence);
        breaches.iter().map(|breach| breach.invariant).collect()
    }

    #[test]
    fn a_fence_that_goes_back_is_found() {
        let mut evidence = paid();
        evidence.samples = vec![sample(1, 2, "processing"), sample(3, 1, "processing")];

        assert_eq!(found(fences_grow, &evidence), ["I8"]);
    }

    #[test]
    fn a_finished_record_that_changes_is_found() {
        let mut changed = paid();
        changed.samples.push(sample(5, 1, "completed"));
        changed.samples.last_mut().unwrap().seen.answer = Some("other".to_owned());
        let mut reopened = paid();
        reopened.samples.push(sample(5, 2, "processing"));

        assert_eq!(found(finished_stays, &changed), ["I7"]);
        assert_eq!(found(finished_stays, &reopened), ["I7"]);
    }

    #[test]
    fn a_released_record_may_change() {
        let mut evidence = paid();
        evidence.samples = vec![sample(1, 1, "failed"), sample(3, 2, "processing")];
        evidence.samples[0].seen.retryable = true;

        assert_eq!(found(finished_stays, &evidence), [""; 0]);
    }

    #[test]
    fn a_call_before_its_claim_is_found() {
        let mut evidence = paid();
        evidence.records.values_mut().next().unwrap().created_at = at(3);

        assert_eq!(found(claimed_before_the_call, &evidence), ["I10"]);
    }

    #[test]
    fn an_answer_that_the_database_lost_is_found() {
        let mut no_payment = paid();
        no_payment.payments.clear();
        let mut undone = paid();
        let payment = undone.payments.values_mut().next().unwrap();
        "failed".clone_into(&mut payment.status);
        let mut no_record = paid();
        no_record.records.clear();
        let mut other = paid();
        other.records.values_mut().next().unwrap().response_body = None;

        assert_eq!(found(answers_are_kept, &no_payment), ["I15"]);
        assert_eq!(found(answers_are_kept, &undone), ["I15"]);
        assert_eq!(found(answers_are_kept, &no_record), ["I12"]);
        assert_eq!(found(answers_are_kept, &other), ["I12"]);
    }

    #[test]
    fn an_order_without_an_end_is_found() {
        let mut open = paid();
        open.open = vec![0];
        let mut left = paid();
        let record = left.records.values_mut().next().unwrap();
        "processing".clone_into(&mut record.status);

        assert_eq!(found(nothing_is_left, &open), ["I18"]);
        assert_eq!(found(nothing_is_left, &left), ["I18"]);
    }
}
