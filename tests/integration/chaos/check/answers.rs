//! What clients were told.

use chrono::{DateTime, Utc};

use super::{Breach, breach, each};
use crate::chaos::{
    evidence::Evidence,
    history::{Answer, Body, Meaning, Request},
};

/// D4: nobody is told what is not in its table; a 500 is a bug.
pub(super) fn sensible(evidence: &Evidence) -> Vec<Breach> {
    each(evidence, |evidence, order| {
        let (_, answer) = evidence
            .answers(order)
            .find(|(_, answer)| answer.meaning() == Meaning::Nonsense)?;
        let text = String::from_utf8_lossy(&answer.body);
        Some(breach("D4", order, format!("{}: {text}", answer.status)))
    })
}

/// I4, I20: nobody is told that a payment was not made when it was.
pub(super) fn never_failed_with_an_effect(evidence: &Evidence) -> Vec<Breach> {
    each(evidence, |evidence, order| {
        let effect = evidence.effects(order).next()?;
        if evidence.answers(order).any(|(_, it)| it.status == 402) {
            return Some(breach("I4", order, "declined, and executed"));
        }
        let mut released = evidence
            .answers(order)
            .filter(|(_, answer)| answer.code().as_deref() == Some("gateway-unavailable"));
        if released.any(|(request, _)| executed_before(evidence, request, effect.at)) {
            return Some(breach("I20", order, "released, and executed before"));
        }
        // "Not executed" speaks of that one request: some other must have been at it.
        let not_executed = |request: &Request| {
            request
                .answer()
                .is_some_and(|answer| answer.code().as_deref() == Some("service-unavailable"))
        };
        let mut before = evidence
            .requests_of(order)
            .filter(|request| request.sent_at <= effect.at);
        before
            .all(not_executed)
            .then(|| breach("I4", order, "executed for a request that was not executed"))
    })
}

/// Whether an effect is certainly older than the answer of `request`.
///
/// The network may have kept the answer for longer than another request took to claim the released
/// key and to execute; only where there was none, the effect is that of `request`.
fn executed_before(evidence: &Evidence, request: &Request, effect_at: DateTime<Utc>) -> bool {
    let may_have_executed = |other: &Request| {
        other != request
            && other.sent_at <= effect_at
            && (other.answer().is_none() || other.ended_at >= request.sent_at)
    };
    let alone = !evidence.requests_of(request.order).any(may_have_executed);
    effect_at < request.sent_at || (effect_at < request.ended_at && alone)
}

/// I5: a final answer is the same for ever; one request at most is told that it was executed for it.
pub(super) fn equal_for_ever(evidence: &Evidence) -> Vec<Breach> {
    each(evidence, |evidence, order| {
        let (_, first) = evidence.finals(order).next()?;
        let replays = |answer: &Answer| {
            answer.status == first.status
                && answer.body == first.body
                && answer.content_type == first.content_type
                && answer.location == first.location
        };
        if !evidence.finals(order).all(|(_, answer)| replays(answer)) {
            return Some(breach("I5", order, "two final answers differ"));
        }
        let new: Vec<&Request> = evidence
            .finals(order)
            .filter(|(_, answer)| answer.replayed != Some(true))
            .map(|(request, _)| request)
            .collect();
        if new.len() > 1 {
            return Some(breach("I5", order, "executed for two requests"));
        }
        let known_at = evidence.finals(order).map(|(it, _)| it.ended_at).min()?;
        new.iter()
            .any(|request| request.sent_at > known_at)
            .then(|| breach("I5", order, "a replay that does not say so"))
    })
}

/// I6: one body owns a key; any other is refused by name, whatever the owner's state.
pub(super) fn to_one_body(evidence: &Evidence) -> Vec<Breach> {
    each(evidence, |evidence, order| {
        // A released key that expired may be anybody's again.
        let epoch = |request: &Request| evidence.day.is_some_and(|day| request.sent_at >= day);
        let owned = |body: Body, after: bool| {
            evidence.answers(order).any(|(request, answer)| {
                request.body == body && epoch(request) == after && owns(answer)
            })
        };
        [false, true]
            .into_iter()
            .any(|after| owned(Body::Own, after) && owned(Body::Other, after))
            .then(|| breach("I6", order, "two bodies were answered as its owner"))
    })
}

/// Whether the answer says that the request is the one of its key.
fn owns(answer: &Answer) -> bool {
    match answer.meaning() {
        Meaning::Final => true,
        Meaning::Open { .. } => {
            matches!(answer.status, 202 | 409)
                || answer.code().as_deref() == Some("gateway-unavailable")
        }
        Meaning::Reused | Meaning::Expired | Meaning::Nonsense => false,
    }
}

/// I12: an answer is kept for its time, and not given for longer.
pub(super) fn expired_only_after_a_day(evidence: &Evidence) -> Vec<Breach> {
    each(evidence, |evidence, order| {
        let expired = |(request, answer): (&Request, &Answer)| {
            let day_old = evidence.day.is_some_and(|day| request.ended_at >= day);
            answer.meaning() == Meaning::Expired && !day_old
        };
        if evidence.answers(order).any(expired) {
            return Some(breach("I12", order, "expired before its time"));
        }
        let day = evidence.day?;
        let known = evidence.finals(order).any(|(it, _)| it.ended_at < day);
        let again = evidence.finals(order).any(|(it, _)| it.sent_at >= day);
        (known && again).then(|| breach("I12", order, "answered after it expired"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::check::sample::{at, paid, paid_answer, problem, request, with_answer};

    fn found(check: fn(&Evidence) -> Vec<Breach>, evidence: &Evidence) -> Vec<&'static str> {
        let breaches = check(evidence);
        breaches.iter().map(|breach| breach.invariant).collect()
    }

    #[test]
    fn an_answer_of_no_kind_is_found() {
        let evidence = with_answer(7, Body::Own, problem(500, "internal-error"));

        assert_eq!(found(sensible, &evidence), ["D4"]);
    }

    #[test]
    fn a_denied_effect_is_found() {
        let declined = with_answer(7, Body::Own, problem(402, "payment-declined"));
        let released = with_answer(7, Body::Own, problem(503, "gateway-unavailable"));
        let mut denied = paid();
        denied.requests = vec![request(1, 2, problem(503, "service-unavailable"))];

        let mut alone = paid();
        alone.requests = vec![request(1, 4, problem(503, "gateway-unavailable"))];

        let check = never_failed_with_an_effect;
        assert_eq!(found(check, &declined), ["I4"]);
        assert_eq!(found(check, &released), ["I20"]);
        assert_eq!(found(check, &alone), ["I20"]);
        assert_eq!(found(check, &denied), ["I4"]);
    }

    /// Whenever its answer arrives, if another request was there to execute.
    #[test]
    fn a_release_before_the_effect_is_no_breach() {
        for answered in [1, 9] {
            let mut evidence = paid();
            let released = request(0, answered, problem(503, "gateway-unavailable"));
            evidence.requests.push(released);

            assert_eq!(found(never_failed_with_an_effect, &evidence), [""; 0]);
        }
    }

    #[test]
    fn a_final_answer_that_differs_is_found() {
        let mut other = paid_answer(Some(true));
        other.body.push(b' ');
        let differs = with_answer(7, Body::Own, other);
        let mut moved = paid_answer(Some(true));
        moved.location = None;
        let moved = with_answer(7, Body::Own, moved);
        let twice = with_answer(1, Body::Own, paid_answer(Some(false)));
        let mut unmarked = paid();
        unmarked.requests[0] = request(1, 4, paid_answer(Some(true)));
        unmarked.requests[1] = request(5, 6, paid_answer(None));

        for evidence in [differs, moved, twice, unmarked] {
            assert_eq!(found(equal_for_ever, &evidence), ["I5"]);
        }
    }

    #[test]
    fn a_second_owner_of_a_key_is_found() {
        for answer in [
            paid_answer(Some(true)),
            problem(409, "idempotency-key-in-progress"),
            problem(503, "gateway-unavailable"),
        ] {
            let evidence = with_answer(7, Body::Other, answer);

            assert_eq!(found(to_one_body, &evidence), ["I6"]);
        }
        for code in ["idempotency-key-reused", "outcome-unknown"] {
            let status = if code == "outcome-unknown" { 503 } else { 422 };
            let evidence = with_answer(7, Body::Other, problem(status, code));

            assert_eq!(found(to_one_body, &evidence), [""; 0], "{code}");
        }
    }

    #[test]
    fn an_answer_that_ends_too_soon_or_never_is_found() {
        let gone = problem(410, "idempotency-key-expired");
        let soon = with_answer(7, Body::Own, gone.clone());
        let mut late = with_answer(9, Body::Own, paid_answer(Some(true)));
        late.day = Some(at(8));
        let mut right = with_answer(9, Body::Own, gone);
        right.day = Some(at(8));

        assert_eq!(found(expired_only_after_a_day, &soon), ["I12"]);
        assert_eq!(found(expired_only_after_a_day, &late), ["I12"]);
        assert_eq!(found(expired_only_after_a_day, &right), [""; 0]);
    }
}
