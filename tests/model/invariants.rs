//! What must hold in every state (D13), and what must be seen so that this means something.
//!
//! What is about a step and not about a state (who wrote, what a fence became) is judged where the
//! step is taken, and kept in the state as its `breach`.

use stateright::Property;

use super::{
    protocol::Protocol,
    state::{Client, Final, Interim, State, Verdict},
    table::{Doubt, NOBODY, Stage, Table},
};

/// The invariants that a step can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Invariant {
    FencesGrow,
    SupersededOwnerWritesNothing,
    ClaimCommittedBeforeSend,
    OneGatewayKey,
    CleanerDeletesExpiredOnly,
    NoFailureAfterEffect,
}

/// Whose statement it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// Somebody who claims, claims again or takes over.
    Acquirer,
    Holder(super::state::Held),
    Cleaner,
}

pub const I1: &str = "I1 at most one effect";
pub const I2: &str = "I2 every 201 has its effect";
pub const I3: &str = "I3 no finished record without the effect that there was";
pub const I4: &str = "I4 no failure is answered where there was an effect";
pub const I5: &str = "I5 final answers agree";
pub const I8: &str = "I8 one owner at a time, fences grow";
pub const I9: &str = "I9 a superseded owner writes nothing";
pub const I10: &str = "I10 the claim is committed before the send";
pub const I11: &str = "I11 one gateway key";
pub const I12: &str = "I12 the cleaner deletes finished, expired records only";
pub const I18: &str = "I18 it resolves once the faults stop";
pub const I20: &str = "I20 released only where nothing was executed";

/// All that must hold.
pub const ALWAYS: [&str; 12] = [I1, I2, I3, I4, I5, I8, I9, I10, I11, I12, I18, I20];

pub fn properties() -> Vec<Property<Protocol>> {
    vec![
        always(I1, |_, state| state.gateway.effects <= 1),
        always(I2, |_, state| {
            !answered(state, Final::Created) || state.gateway.effects > 0
        }),
        always(I3, |_, state| {
            let declined = finished(&state.database, Verdict::Declined);
            !declined || state.gateway.effects == 0
        }),
        always(I4, |_, state| {
            let declined = answered(state, Final::Declined);
            holds(state, Invariant::NoFailureAfterEffect)
                && (!declined || state.gateway.effects == 0)
        }),
        always(I5, |_, state| {
            !answered(state, Final::Created) || !answered(state, Final::Declined)
        }),
        always(I8, |protocol, state| {
            holds(state, Invariant::FencesGrow) && writers(protocol, state) <= 1
        }),
        always(I9, |_, state| {
            holds(state, Invariant::SupersededOwnerWritesNothing)
        }),
        always(I10, |_, state| {
            holds(state, Invariant::ClaimCommittedBeforeSend)
        }),
        always(I11, |_, state| holds(state, Invariant::OneGatewayKey)),
        always(I12, |_, state| {
            holds(state, Invariant::CleanerDeletesExpiredOnly)
        }),
        always(I18, |protocol, state| {
            protocol.calm.resolves(protocol, state)
        }),
        always(I20, |_, state| {
            // Who has lost its memory cannot keep this promise: see the module's page.
            state.lost || !released(state) || state.gateway.effects == 0
        }),
        sometimes("a client gets 201", |_, state| {
            answered(state, Final::Created)
        }),
        sometimes("a client gets 402", |_, state| {
            answered(state, Final::Declined)
        }),
        sometimes("a client gets 410", |_, state| {
            answered(state, Final::Expired)
        }),
        sometimes("a record is released", |_, state| released(state)),
        sometimes("a payment is in review", |_, state| in_review(state)),
        sometimes("a superseded owner is still at work", |_, state| {
            let held = state.workers.iter().filter_map(|worker| worker.task.held());
            held.filter(|held| !state.database.is_held_by(*held))
                .count()
                > 0
        }),
        sometimes("a failover loses the record of an effect", |_, state| {
            state.lost && state.gateway.effects > 0 && !state.database.used
        }),
        sometimes("the gateway forgets an effect", |_, state| {
            state.gateway.effects > 0 && state.gateway.undecided(0)
        }),
    ]
}

type Condition = fn(&Protocol, &State) -> bool;

fn always(name: &'static str, condition: Condition) -> Property<Protocol> {
    Property::always(name, condition)
}

fn sometimes(name: &'static str, condition: Condition) -> Property<Protocol> {
    Property::sometimes(name, condition)
}

impl State {
    pub fn breached(&mut self, invariant: Invariant) {
        self.breach.get_or_insert(invariant);
    }

    /// Writes the table, and judges who does.
    pub fn write(&mut self, writer: Writer, after: Table) {
        let before = std::mem::replace(&mut self.database, after);
        if let (Some(old), Some(new)) = (before.record, after.record)
            && (new.fence < old.fence
                || new.fence == old.fence && changes_hands(old.owner, new.owner))
        {
            self.breached(Invariant::FencesGrow);
        }
        match writer {
            Writer::Acquirer => {}
            Writer::Holder(held) if before.is_held_by(held) => {}
            Writer::Holder(_) => self.breached(Invariant::SupersededOwnerWritesNothing),
            Writer::Cleaner if deletable(&before) => {}
            Writer::Cleaner => self.breached(Invariant::CleanerDeletesExpiredOnly),
        }
    }

    /// Judges an answer that is not final; it is not remembered.
    pub fn answered(&mut self, answer: Interim) {
        match answer {
            Interim::Released if self.gateway.effects > 0 && !self.lost => {
                self.breached(Invariant::NoFailureAfterEffect);
            }
            Interim::Released | Interim::Unresolved | Interim::OutcomeUnknown => {}
        }
    }
}

/// Letting a record rest takes it from its owner and gives it to nobody.
fn changes_hands(from: u8, to: u8) -> bool {
    to != from && to != NOBODY
}

pub fn in_review(state: &State) -> bool {
    let mut database = state.database;
    database
        .processing()
        .is_some_and(|it| it.doubt == Doubt::Review)
}

pub fn released(state: &State) -> bool {
    state
        .database
        .record
        .is_some_and(|it| it.stage == Stage::Released)
}

pub fn finished(table: &Table, with: Verdict) -> bool {
    table.record.is_some_and(
        |record| matches!(record.stage, Stage::Finished { verdict, .. } if verdict == with),
    )
}

fn answered(state: &State, answer: Final) -> bool {
    state.clients.contains(&Client::Done(answer))
}

fn holds(state: &State, invariant: Invariant) -> bool {
    state.breach != Some(invariant)
}

/// How many workers hold a right to write that the database would grant.
fn writers(protocol: &Protocol, state: &State) -> usize {
    let held = state.workers.iter().filter_map(|worker| worker.task.held());
    let mut table = state.database;
    let unfenced = protocol.scenario.has(super::scenario::Bug::NoFence);
    let open = table.processing().is_some();
    held.filter(|held| open && (unfenced || table.is_held_by(*held)))
        .count()
}

fn deletable(table: &Table) -> bool {
    match table.record.map(|record| record.stage) {
        Some(Stage::Finished { expired, .. }) => expired,
        Some(Stage::Released) => true,
        Some(Stage::Processing(_)) | None => false,
    }
}
