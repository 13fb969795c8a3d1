//! Refunds of the gateway and what the database says was given back, payment by payment.
//!
//! A refund is reserved in its payment before it is sent, so what the gateway lists can never be more
//! than what is recorded. It may be less: the list begins somewhere.

use std::collections::{BTreeMap, BTreeSet};

use super::{Reading, breach, of_payment};
use crate::{
    audit::{Breach, store::Recorded},
    gateways::{GatewayKey, listing::Listed},
};

/// Compares refunds that stand in both readings: one that failed between them was given up.
pub(super) fn compare(before: &Reading, after: &Reading, recorded: &[Recorded]) -> Vec<Breach> {
    let still: BTreeSet<&str> = after
        .refunds()
        .map(|(refund, _)| refund.reference.0.as_str())
        .collect();
    let mut by_payment: BTreeMap<Option<&str>, Vec<&Listed>> = BTreeMap::new();
    for (refund, payment) in before.refunds() {
        if still.contains(refund.reference.0.as_str()) {
            let payment = payment.map(|payment| payment.0.as_str());
            by_payment.entry(payment).or_default().push(refund);
        }
    }
    let payments: BTreeMap<&str, &Recorded> = recorded
        .iter()
        .filter_map(|payment| Some((payment.gateway_reference.as_deref()?, payment)))
        .collect();
    by_payment
        .into_iter()
        .flat_map(|(reference, refunds)| {
            match reference.and_then(|reference| payments.get(reference)) {
                None => refunds.into_iter().map(without_payment).collect(),
                Some(payment) => not_recorded(payment, &refunds)
                    .into_iter()
                    .collect::<Vec<_>>(),
            }
        })
        .collect()
}

fn without_payment(refund: &Listed) -> Breach {
    let detail = format!("{} gives back no payment that there is", refund.reference.0);
    let key = refund.gateway_key.as_ref();
    let key = key.map(GatewayKey::as_str).unwrap_or_default();
    breach("refund_without_payment", "I3", key, detail)
}

/// More was given back than is recorded, or in another currency.
fn not_recorded(payment: &Recorded, refunds: &[&Listed]) -> Option<Breach> {
    let mut sum: i64 = 0;
    let mut same_currency = true;
    for refund in refunds {
        match refund.money {
            Some(money) if money.currency.code() == payment.currency => {
                sum = sum.saturating_add(money.amount_minor);
            }
            _ => same_currency = false,
        }
    }
    (sum > payment.refunded || !same_currency).then(|| {
        let references: Vec<&str> = refunds
            .iter()
            .map(|refund| refund.reference.0.as_str())
            .collect();
        let other = if same_currency {
            ""
        } else {
            ", and another currency"
        };
        let detail = format!(
            "{} {} is recorded as given back; the gateway gave {sum}{other}: {}",
            payment.refunded,
            payment.currency,
            references.join(", ")
        );
        of_payment("refund_not_recorded", "I3", payment, detail)
    })
}
