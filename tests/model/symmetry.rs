//! One state for all that differ in names only, so that a run without bounds on crashes, retries
//! and take-overs has finitely many states.
//!
//! Owners are compared with each other and nothing else, so they are numbered in the order in which
//! they appear. Fences are compared and raised by one: what counts is their order, and which of
//! them follow directly on each other. A larger gap is made one of two, which can only make fences
//! meet that would not have met: more behaviours, never fewer.

use super::{
    state::{State, Task},
    table::{Lease, NOBODY, Stage, Table},
};

/// More fences and owners than a state in normal form can have after one more step: two tables and
/// two workers know four of each, and gaps are of one.
const NAMES_MAX: usize = 16;

/// Brings a state to its normal form. `twins`: whether clients and workers are exchanged as well.
pub fn normalise(state: &mut State, twins: bool) {
    for table in [&mut state.database, &mut state.standby] {
        forget_holder(table);
    }
    forget_time(state);
    forget_vain_send(state);
    if twins {
        order_workers(state);
        order_clients(state);
    }
    rename_owners(state);
    close_gaps(state);
}

/// Nobody is compared with the holder of a record that is finished: each write asks for
/// `processing` first, and a released record keeps its fence only.
fn forget_holder(table: &mut Table) {
    let Some(record) = table.record.as_mut() else {
        return;
    };
    match record.stage {
        Stage::Processing(_) => {}
        Stage::Released => record.owner = NOBODY,
        Stage::Finished { .. } => {
            record.owner = NOBODY;
            record.fence = 1;
        }
    }
}

/// A failover happens once, and what it brings back is as old as it may be: a lease that has run
/// out can be renewed, an answer that is kept can expire.
fn forget_time(state: &mut State) {
    if state.lost {
        state.standby = Table::default();
    }
    if let Some(processing) = state.standby.processing() {
        processing.lease = Lease::Expired;
    }
    if let Some(record) = state.standby.record.as_mut()
        && let Stage::Finished { expired, .. } = &mut record.stage
    {
        *expired = false;
    }
}

/// What is under way for a key that the gateway has decided will change nothing.
fn forget_vain_send(state: &mut State) {
    let gateway = &mut state.gateway;
    gateway.under_way = gateway
        .under_way
        .filter(|key| gateway.remembers[*key].is_none());
}

fn order_workers(state: &mut State) {
    let task = |worker: usize| {
        (
            state.workers[worker].task,
            state.workers[worker].asker.is_some(),
        )
    };
    if task(1) < task(0) {
        state.workers.swap(0, 1);
    }
}

fn order_clients(state: &mut State) {
    let place = |client: usize| {
        let asked = state.workers.iter().position(|it| it.asker == Some(client));
        (state.clients[client], asked)
    };
    if place(1) >= place(0) {
        return;
    }
    state.clients.swap(0, 1);
    for worker in &mut state.workers {
        worker.asker = worker.asker.map(|client| 1 - client);
    }
}

fn rename_owners(state: &mut State) {
    let mut names = [0_u8; NAMES_MAX];
    let mut last = 0;
    each(state, |_, owner| {
        let name = &mut names[usize::from(*owner)];
        if *owner != NOBODY && *name == 0 {
            last += 1;
            *name = last;
        }
        *owner = *name;
    });
}

fn close_gaps(state: &mut State) {
    let mut present = 0_u16;
    each(state, |fence, _| present |= 1 << *fence);
    let mut names = [0_u8; NAMES_MAX];
    let mut last = 0_u8;
    let mut gap = false;
    for (fence, name) in names.iter_mut().enumerate().skip(1) {
        if present >> fence & 1 == 1 {
            last += if gap && last > 0 { 2 } else { 1 };
            *name = last;
            gap = false;
        } else {
            gap = true;
        }
    }
    each(state, |fence, _| *fence = names[usize::from(*fence)]);
}

/// Visits every pair of fence and owner that the system knows.
fn each(state: &mut State, mut visit: impl FnMut(&mut u8, &mut u8)) {
    for table in [&mut state.database, &mut state.standby] {
        if let Some(record) = table.record.as_mut() {
            visit(&mut record.fence, &mut record.owner);
        }
    }
    for worker in &mut state.workers {
        if let Task::TakingOver { seen } = &mut worker.task {
            let mut nobody = NOBODY;
            visit(seen, &mut nobody);
        }
        if let Some(held) = worker.task.held_mut() {
            visit(&mut held.fence, &mut held.owner);
        }
    }
}
