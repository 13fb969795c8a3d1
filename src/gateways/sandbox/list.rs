//! What the sandbox lists: its payments and refunds. Everything is ours: nobody else has a key here.

use std::{collections::BTreeMap, io};

use chrono::{DateTime, Utc};

use super::{
    entry::Entry,
    journal::Call,
    memory::Ledger,
    request::{Asked, Name},
};
use crate::gateways::{
    GatewayKey, GatewayReference, Outcome,
    listing::{Listed, ListedState},
};

/// Lists what was made since then, and what does not say when it was made.
pub(super) fn list(ledger: &dyn Ledger, since: DateTime<Utc>) -> io::Result<Vec<Listed>> {
    let entries: BTreeMap<Name, Entry> = ledger.entries()?.into_iter().collect();
    let listed = entries
        .iter()
        .filter(|(_, entry)| entry.made_at.is_none_or(|made_at| made_at >= since))
        .filter_map(|(name, entry)| listed(&entries, name, entry));
    Ok(listed.collect())
}

/// The object that a key made; captures and cancels make none, they change one.
fn listed(entries: &BTreeMap<Name, Entry>, name: &Name, entry: &Entry) -> Option<Listed> {
    let outcome = entry.outcome(name)?;
    let request = entry.request.as_ref()?;
    let (state, sum) = match &request.asked {
        Asked::Authorize { money, .. } => (payment_state(entry, &outcome), money),
        Asked::Refund { charge, money } => (refund_state(entries, charge, &outcome), money),
        Asked::Capture { .. } | Asked::Cancel { .. } => return None,
    };
    Some(Listed {
        reference: GatewayReference(name.reference(entry.call)),
        gateway_key: Some(GatewayKey::new(request.gateway_key.as_str())),
        money: sum.money(),
        state,
    })
}

fn payment_state(entry: &Entry, outcome: &Outcome) -> ListedState {
    match (outcome, &entry.charge) {
        (Outcome::Pending { .. }, _) => ListedState::Pending,
        (Outcome::Approved { .. }, Some(charge)) if charge.canceled => ListedState::Canceled,
        (Outcome::Approved { .. }, Some(charge)) if charge.captured == 0 => ListedState::Held,
        (Outcome::Approved { .. }, Some(charge)) => ListedState::Taken {
            captured: Some(charge.captured),
        },
        _ => ListedState::NotExecuted,
    }
}

fn refund_state(entries: &BTreeMap<Name, Entry>, charge: &str, outcome: &Outcome) -> ListedState {
    if !matches!(outcome, Outcome::Approved { .. }) {
        return ListedState::NotRefunded;
    }
    // A capture names the same money as its authorisation, which is what the payment is called.
    let payment = match Name::in_reference(charge, Call::Capture) {
        Some(capture) => entries
            .get(&capture)
            .and_then(|entry| entry.authorization.as_ref())
            .map(|authorization| authorization.reference(Call::Authorize)),
        None => Some(charge.to_owned()),
    };
    ListedState::Refunded {
        payment: payment.map(GatewayReference),
    }
}
