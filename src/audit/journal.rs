//! The database held against a sandbox's journal: was anyone charged without a record?

use std::collections::{BTreeMap, BTreeSet};

use super::{Breach, store::Charged};
use crate::gateways::sandbox::journal::{Call, Kind};
pub use crate::gateways::sandbox::journal::{Line, read};

/// Compares payments with a journal that was read `before` their snapshot, and `after` it.
///
/// An authorisation is compared with its payment by gateway key. Of captures, cancels and refunds,
/// whose keys are forgotten with their records, only the number of effects is.
pub(super) fn compare(before: &[Line], after: &[Line], payments: &[Charged]) -> Vec<Breach> {
    let by_key: BTreeMap<&str, &Charged> = payments
        .iter()
        .map(|payment| (payment.gateway_key.as_str(), payment))
        .collect();
    let mut breaches = more_than_one(after, &by_key);
    let let_go = let_go(after);
    for effect in authorizations(before) {
        match by_key.get(effect.gateway_key.as_str()) {
            None => breaches.push(without_payment(effect)),
            Some(payment) => breaches.extend(contradiction(effect, payment, &let_go)),
        }
    }
    let executed: BTreeSet<&str> = authorizations(after)
        .map(|effect| effect.gateway_key.as_str())
        .collect();
    let unexecuted = payments
        .iter()
        .filter(|payment| matches!(&*payment.status, "succeeded" | "requires_capture"))
        .filter(|payment| !executed.contains(payment.gateway_key.as_str()));
    breaches.extend(unexecuted.map(|payment| {
        let detail = format!("the payment is {} and was not executed", payment.status);
        of_payment("payment_without_effect", "I2", payment, detail)
    }));
    breaches
}

fn authorizations(lines: &[Line]) -> impl Iterator<Item = &Line> {
    lines
        .iter()
        .filter(|line| line.kind == Kind::Effect && line.call == Call::Authorize)
}

/// The authorisations that were let go: a cancel's request names them, and its effect does not.
fn let_go(lines: &[Line]) -> BTreeSet<&str> {
    let cancels = |kind| {
        lines
            .iter()
            .filter(move |line| line.kind == kind && line.call == Call::Cancel)
    };
    let done: BTreeSet<&str> = cancels(Kind::Effect)
        .map(|line| line.gateway_key.as_str())
        .collect();
    cancels(Kind::Request)
        .filter(|line| done.contains(line.gateway_key.as_str()))
        .filter_map(|line| line.object_id.as_deref())
        .collect()
}

fn more_than_one(lines: &[Line], by_key: &BTreeMap<&str, &Charged>) -> Vec<Breach> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.kind == Kind::Effect) {
        *counts.entry(&line.gateway_key).or_default() += 1;
    }
    counts
        .into_iter()
        .filter(|(_, count)| *count > 1)
        .map(|(gateway_key, count)| {
            let payment = by_key.get(gateway_key);
            Breach {
                merchant_id: payment.map(|payment| payment.merchant_id),
                payment_id: payment.map(|payment| payment.payment_id),
                ..breach(
                    "more_than_one_effect",
                    "I1",
                    gateway_key,
                    format!("{count} effects under one gateway key"),
                )
            }
        })
        .collect()
}

fn without_payment(effect: &Line) -> Breach {
    let detail = format!(
        "{} {} executed as {}, and there is no payment",
        effect.amount.unwrap_or_default(),
        effect.currency.as_deref().unwrap_or("of no currency"),
        effect.object_id.as_deref().unwrap_or("nothing"),
    );
    breach("effect_without_payment", "I3", &effect.gateway_key, detail)
}

/// What an effect and its payment disagree about. A payment that is not decided agrees with all.
fn contradiction<'a>(
    effect: &'a Line,
    payment: &'a Charged,
    let_go: &'a BTreeSet<&str>,
) -> impl Iterator<Item = Breach> {
    let (amount, currency) = (effect.amount, effect.currency.as_deref());
    let decided = !matches!(&*payment.status, "processing" | "requires_review");
    let differs = amount != Some(payment.amount) || currency != Some(&*payment.currency);
    let differs = (decided && differs).then(|| {
        let detail = format!(
            "asked for {} {}, executed {} {}",
            payment.amount,
            payment.currency,
            amount.unwrap_or_default(),
            currency.unwrap_or("of no currency"),
        );
        of_payment("amount_differs", "I2", payment, detail)
    });
    let canceled = payment
        .gateway_reference
        .as_deref()
        .is_some_and(|reference| let_go.contains(reference));
    let undone = match &*payment.status {
        "failed" => true,
        "canceled" => !canceled,
        _ => false,
    };
    let undone = undone.then(|| {
        let detail = format!("the payment is {} and was executed", payment.status);
        of_payment("effect_of_undone_payment", "I4", payment, detail)
    });
    differs.into_iter().chain(undone)
}

fn of_payment(
    check: &'static str,
    invariant: &'static str,
    payment: &Charged,
    detail: String,
) -> Breach {
    Breach {
        merchant_id: Some(payment.merchant_id),
        payment_id: Some(payment.payment_id),
        ..breach(check, invariant, &payment.gateway_key, detail)
    }
}

fn breach(
    check: &'static str,
    invariant: &'static str,
    gateway_key: &str,
    detail: String,
) -> Breach {
    Breach {
        check,
        invariant,
        merchant_id: None,
        payment_id: None,
        key_hash: None,
        gateway_key: Some(gateway_key.to_owned()),
        detail,
    }
}
