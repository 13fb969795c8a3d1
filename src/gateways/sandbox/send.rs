//! What the sandbox does with a send, given its ledger.
//!
//! Each function is one step that nobody else's step overlaps. They read the ledger afresh, so
//! that a step after a delay sees what others did meanwhile.

use std::io;

use chrono::{DateTime, Utc};

use super::{
    charge::{AUTHORIZATION_NOT_APPROVED, AUTHORIZATION_UNKNOWN, Charge},
    entry::Entry,
    journal::{Call, Kind},
    memory::Ledger,
    plan::{Deed, Plan, Reason},
    request::{Asked, Name, Request, captures_at_once},
};
use crate::gateways::{Decline, Outcome, Unknown};

/// How far a send got in its first step.
#[derive(Debug)]
pub(super) enum Arrival {
    Acted(Outcome, Plan),
    /// It is counted, and does its deed after a pause.
    Waits(Plan),
}

/// Takes a send in: counts it, and acts unless its plan begins with a pause.
pub(super) fn arrive(
    ledger: &mut dyn Ledger,
    request: &Request,
    now: DateTime<Utc>,
) -> io::Result<Arrival> {
    ledger.note(&request.line(Kind::Request, now, request.subject()))?;
    let name = request.name();
    let known = ledger.entry(&name)?;
    let mut entry = match known {
        Some(entry) if !entry.is_of(request)? => {
            let outcome = Outcome::Unknown(Unknown::ParametersDiffer);
            return Ok(Arrival::Acted(outcome, Plan::prompt(Deed::Break)));
        }
        Some(entry) => entry,
        None => Entry::new(request, now)?,
    };
    if let Some(outcome) = entry.outcome(&name) {
        return Ok(Arrival::Acted(outcome, Plan::prompt(Deed::Approve)));
    }
    entry.sends = entry.sends.saturating_add(1);
    let plan = request.plan(entry.sends);
    if plan.begins_with_a_pause() {
        ledger.keep(&name, entry)?;
        return Ok(Arrival::Waits(plan));
    }
    let outcome = act(ledger, request, entry, plan.deed, now)?;
    Ok(Arrival::Acted(outcome, plan))
}

/// Does the deed after the pause, unless another send of the key was faster.
pub(super) fn resume(
    ledger: &mut dyn Ledger,
    request: &Request,
    deed: Deed,
    now: DateTime<Utc>,
) -> io::Result<Outcome> {
    let name = request.name();
    let entry = match ledger.entry(&name)? {
        Some(entry) => entry,
        None => Entry::new(request, now)?,
    };
    match entry.outcome(&name) {
        Some(outcome) => Ok(outcome),
        None => act(ledger, request, entry, deed, now),
    }
}

/// Notes what is answered.
pub(super) fn answer(
    ledger: &mut dyn Ledger,
    request: &Request,
    outcome: &Outcome,
    now: DateTime<Utc>,
) -> io::Result<()> {
    ledger.note(&request.line(Kind::Answer, now, object_id(outcome)))
}

fn act(
    ledger: &mut dyn Ledger,
    request: &Request,
    mut entry: Entry,
    deed: Deed,
    now: DateTime<Utc>,
) -> io::Result<Outcome> {
    match deed {
        Deed::Approve => return approve(ledger, request, entry, now),
        Deed::Decline(reason) => entry.decline(reason),
        Deed::Pend(ending) => {
            entry.charge = new_charge(&request.asked);
            entry.pend(ending, now);
        }
        Deed::Refuse | Deed::Break => {}
    }
    let name = request.name();
    let outcome = entry.outcome(&name).unwrap_or(deed.undecided());
    ledger.keep(&name, entry)?;
    Ok(outcome)
}

fn approve(
    ledger: &mut dyn Ledger,
    request: &Request,
    mut entry: Entry,
    now: DateTime<Utc>,
) -> io::Result<Outcome> {
    let name = request.name();
    let changed = match request.subject() {
        None => {
            entry.charge = new_charge(&request.asked);
            None
        }
        Some(subject) => match change(ledger, &request.asked, subject)? {
            Ok(changed) => Some(changed),
            Err(reason) => {
                entry.decline(reason);
                let outcome = entry.outcome(&name).unwrap_or(Deed::Break.undecided());
                ledger.keep(&name, entry)?;
                return Ok(outcome);
            }
        },
    };
    entry.approve();
    entry.authorization = changed.as_ref().map(|(name, _)| name.clone());
    let outcome = entry.outcome(&name).unwrap_or(Deed::Break.undecided());
    let effect = request.line(Kind::Effect, now, object_id(&outcome));
    let entries = changed.into_iter().chain([(name, entry)]).collect();
    ledger.commit(effect, entries)?;
    Ok(outcome)
}

fn new_charge(asked: &Asked) -> Option<Charge> {
    match asked {
        Asked::Authorize {
            money,
            capture_method,
            ..
        } if captures_at_once(capture_method) => Some(Charge::captured(money.clone())),
        Asked::Authorize { money, .. } => Some(Charge::authorized(money.clone())),
        Asked::Capture { .. } | Asked::Cancel { .. } | Asked::Refund { .. } => None,
    }
}

/// The authorisation that is asked about, changed as asked; or why it cannot be.
fn change(
    ledger: &dyn Ledger,
    asked: &Asked,
    subject: &str,
) -> io::Result<Result<(Name, Entry), Reason>> {
    let Some((name, mut entry)) = authorization(ledger, subject)? else {
        return Ok(Err(AUTHORIZATION_UNKNOWN));
    };
    let approved = entry.is_approved();
    let Some(charge) = entry.charge.as_mut().filter(|_| approved) else {
        return Ok(Err(AUTHORIZATION_NOT_APPROVED));
    };
    let done = match asked {
        Asked::Capture { money, .. } => charge.capture(money),
        Asked::Cancel { .. } => charge.cancel(),
        Asked::Refund { money, .. } => charge.refund(money),
        Asked::Authorize { .. } => Err(AUTHORIZATION_UNKNOWN),
    };
    Ok(done.map(|()| (name, entry)))
}

/// Reads the authorisation by its own reference, or by the reference of its capture: both name the
/// money that a refund gives back.
pub(super) fn authorization(
    ledger: &dyn Ledger,
    reference: &str,
) -> io::Result<Option<(Name, Entry)>> {
    let name = match Name::in_reference(reference, Call::Capture) {
        Some(capture) => ledger
            .entry(&capture)?
            .and_then(|entry| entry.authorization),
        None => Name::in_reference(reference, Call::Authorize),
    };
    let Some(name) = name else { return Ok(None) };
    Ok(ledger.entry(&name)?.map(|entry| (name, entry)))
}

pub(super) fn object_id(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Approved { reference }
        | Outcome::Pending { reference }
        | Outcome::Declined(Decline {
            reference: Some(reference),
            ..
        }) => Some(&reference.0),
        Outcome::Declined(_) | Outcome::NotExecuted(_) | Outcome::Unknown(_) => None,
    }
}
