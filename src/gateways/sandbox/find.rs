//! What the sandbox does with a look-up: one step, which may end what was pending.

use std::io;

use chrono::{DateTime, Utc};

use super::{
    charge::{ALREADY_CAPTURED, AUTHORIZATION_CANCELED},
    entry::Entry,
    journal::{Call, Kind, Line},
    memory::Ledger,
    method::CARD_DECLINED,
    plan::{Ending, Reason},
    request::Name,
    send::{authorization, object_id},
};
use crate::gateways::{
    self, Decline, Find, Finding, GatewayKey, GatewayReference, Outcome, Unknown,
};

/// Looks a gateway key up, or else what its payment says, and decides a payment that was pending long enough.
pub(super) fn find(
    ledger: &mut dyn Ledger,
    sought: &Find,
    now: DateTime<Utc>,
) -> io::Result<Finding> {
    ledger.note(&find_line(Kind::Request, &sought.gateway_key, now, None))?;
    let name = Name::of(sought.gateway_key.as_str());
    let finding = match ledger.entry(&name)? {
        None => Finding::Absent,
        Some(entry) if entry.call != Call::from(sought.call) => {
            Finding::Known(Outcome::Unknown(Unknown::ParametersDiffer))
        }
        Some(entry) => {
            let entry = end_pending(ledger, &sought.gateway_key, entry, now)?;
            // A key without an effect so far is not found: like a real search, this proves nothing
            // about a send that is still under way.
            entry.outcome(&name).map_or(Finding::Absent, Finding::Known)
        }
    };
    let finding = match (finding, &sought.reference) {
        (Finding::Absent, Some(GatewayReference(payment))) => {
            of_payment(ledger, sought.call, payment)?
        }
        (finding, _) => finding,
    };
    let found = match &finding {
        Finding::Known(outcome) => object_id(outcome),
        Finding::Absent => None,
    };
    ledger.note(&find_line(Kind::Answer, &sought.gateway_key, now, found))?;
    Ok(finding)
}

/// What the payment says about a call whose key is not known: somebody else may have been faster, for
/// good.
fn of_payment(ledger: &dyn Ledger, call: gateways::Call, payment: &str) -> io::Result<Finding> {
    let found = authorization(ledger, payment)?.and_then(|(_, entry)| entry.charge);
    let Some(charge) = found else {
        return Ok(Finding::Absent);
    };
    let decline = |reason: Reason| {
        Finding::Known(Outcome::Declined(Decline {
            code: reason.code.to_owned(),
            message: reason.message.to_owned(),
            reference: None,
        }))
    };
    Ok(match (call, charge.canceled, charge.captured > 0) {
        (gateways::Call::Cancel, true, _) => Finding::Known(Outcome::Approved {
            reference: GatewayReference(payment.to_owned()),
        }),
        (gateways::Call::Cancel, _, true) => decline(ALREADY_CAPTURED),
        (gateways::Call::Capture, true, _) => decline(AUTHORIZATION_CANCELED),
        (gateways::Call::Capture, _, true) => {
            Finding::Known(Outcome::Unknown(Unknown::ParametersDiffer))
        }
        _ => Finding::Absent,
    })
}

fn end_pending(
    ledger: &mut dyn Ledger,
    gateway_key: &GatewayKey,
    mut entry: Entry,
    now: DateTime<Utc>,
) -> io::Result<Entry> {
    let name = Name::of(gateway_key.as_str());
    match entry.ending(now) {
        None => {}
        Some(Ending::Fails) => {
            entry.decline(CARD_DECLINED);
            ledger.keep(&name, entry.clone())?;
        }
        Some(Ending::Succeeds) => {
            entry.approve();
            let sum = entry.charge.as_ref().map(|charge| &charge.authorized);
            let effect = Line {
                call: Call::Authorize,
                amount: sum.map(|sum| sum.amount),
                currency: sum.map(|sum| sum.currency.clone()),
                object_id: Some(name.reference(Call::Authorize)),
                ..find_line(Kind::Effect, gateway_key, now, None)
            };
            ledger.commit(effect, vec![(name, entry.clone())])?;
        }
    }
    Ok(entry)
}

fn find_line(
    kind: Kind,
    gateway_key: &GatewayKey,
    at: DateTime<Utc>,
    object_id: Option<&str>,
) -> Line {
    Line {
        at,
        kind,
        gateway_key: gateway_key.as_str().to_owned(),
        call: Call::Find,
        amount: None,
        currency: None,
        object_id: object_id.map(ToOwned::to_owned),
    }
}
