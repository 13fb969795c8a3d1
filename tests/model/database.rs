//! The database of the model: each function is one statement, whole or not at all.

use super::{
    invariants::Writer,
    scenario::{Bug, Scenario},
    state::{End, Held, State, Verdict},
    table::{Age, Doubt, Lease, NOBODY, Processing, Record, Stage, Table},
};

const ACQUIRED: Processing = Processing {
    lease: Lease::Valid,
    doubt: Doubt::None,
    age: Age::InWindow,
};

/// `payments::store::Claim`.
pub fn claim(scenario: Scenario, state: &mut State) -> Option<Held> {
    if state.database.used {
        return None;
    }
    let held = Held {
        fence: 1,
        owner: state.fresh_owner(),
        gateway_key: gateway_key(scenario, state, 0),
    };
    let after = Table {
        used: true,
        record: Some(record(held, ACQUIRED)),
    };
    state.claimed = true;
    state.write(Writer::Acquirer, after);
    Some(held)
}

/// `payments::store::Reclaim`.
pub fn reclaim(scenario: Scenario, state: &mut State) -> Option<Held> {
    let before = state.database.record?;
    if before.stage != Stage::Released {
        return None;
    }
    Some(acquire(scenario, state, before, ACQUIRED))
}

/// `idempotency::store::TakeOver`; also how old the record is.
pub fn take_over(scenario: Scenario, state: &mut State, seen: u8) -> Option<(Held, Age)> {
    let before = state.database.record?;
    let Stage::Processing(processing) = before.stage else {
        return None;
    };
    if processing.lease == Lease::Valid || before.fence != seen || scenario.has(Bug::NoTakeOver) {
        return None;
    }
    let taken = Processing {
        lease: Lease::Valid,
        ..processing
    };
    Some((acquire(scenario, state, before, taken), processing.age))
}

/// `payments::store::{Settle, Release}` and `idempotency::store::Park`: whether the row was met.
pub fn end(scenario: Scenario, state: &mut State, held: Held, end: End) -> bool {
    let mut after = state.database;
    if !scenario.has(Bug::NoFence) && !after.is_held_by(held) {
        return false;
    }
    let Some(processing) = after.processing() else {
        return false;
    };
    let ended = match end {
        End::Settle(verdict) => Stage::Finished {
            verdict,
            expired: false,
        },
        End::Park => rested(*processing, Doubt::Unknown),
        End::Review => rested(*processing, Doubt::Review),
        End::Release
            if processing.doubt != Doubt::None && !scenario.has(Bug::ReleaseAfterUnknown) =>
        {
            return false;
        }
        End::Release => Stage::Released,
    };
    let rests = matches!(end, End::Park | End::Review);
    after.record = after.record.map(|record| Record {
        owner: if rests { NOBODY } else { record.owner },
        stage: ended,
        ..record
    });
    state.write(Writer::Holder(held), after);
    true
}

/// `idempotency::store::Renew`: a lease that has run out and was not taken over is renewed as well.
pub fn renew(state: &mut State, held: Held) -> Option<()> {
    if !state.database.is_held_by(held) {
        return None;
    }
    state.database.processing()?.lease = Lease::Valid;
    Some(())
}

/// `delete_expired_idempotency_keys`.
pub fn clean(scenario: Scenario, state: &mut State) -> Option<()> {
    let used = match state.database.record?.stage {
        Stage::Released => false,
        Stage::Finished { expired: true, .. } => true,
        Stage::Processing(_) if scenario.has(Bug::CleanerIgnoresStatus) => true,
        Stage::Processing(_) | Stage::Finished { .. } => return None,
    };
    state.write(Writer::Cleaner, Table { used, record: None });
    Some(())
}

/// The verdict that the record replays, if it still does.
pub fn stored(state: &State) -> Option<Verdict> {
    match state.database.record?.stage {
        Stage::Finished {
            verdict,
            expired: false,
        } => Some(verdict),
        Stage::Finished { .. } | Stage::Processing(_) | Stage::Released => None,
    }
}

fn acquire(scenario: Scenario, state: &mut State, before: Record, processing: Processing) -> Held {
    let held = Held {
        fence: before.fence + 1,
        owner: state.fresh_owner(),
        gateway_key: gateway_key(scenario, state, before.gateway_key),
    };
    let after = Table {
        record: Some(record(held, processing)),
        ..state.database
    };
    state.write(Writer::Acquirer, after);
    held
}

fn record(held: Held, processing: Processing) -> Record {
    let Held {
        fence,
        owner,
        gateway_key,
    } = held;
    Record {
        fence,
        owner,
        gateway_key,
        stage: Stage::Processing(processing),
    }
}

/// The record's key; or, as a bug, any that the gateway has not heard of.
fn gateway_key(scenario: Scenario, state: &State, kept: usize) -> usize {
    if !scenario.has(Bug::RandomGatewayKey) {
        return kept;
    }
    usize::from(!state.gateway.undecided(0))
}

fn rested(processing: Processing, doubt: Doubt) -> Stage {
    Stage::Processing(Processing {
        lease: Lease::Valid,
        doubt: processing.doubt.max(doubt),
        ..processing
    })
}
