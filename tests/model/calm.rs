//! Whether everything resolves once the faults stop.
//!
//! The checker's own `eventually` ignores cycles, and a client that retries is one. So from every
//! state that is reached, one calm future is followed: no process dies, no answer is lost, the
//! gateway is found by a search, time goes by, and clients repeat themselves. It has to end, and
//! to end well. Each state of it is remembered, so that the next one only has to lead there.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use super::{
    gateway::{Delivery, Search},
    invariants::{finished, in_review, released},
    protocol::{Action, Protocol},
    state::{Client, State, Task, Verdict},
    worker::Reply,
};

/// A calm future is over after this many steps or never: each of two workers has at most six steps
/// to its answer, and each of two clients and the rescuer needs a few tries.
const STEPS_MAX: usize = 100;

/// The states from which the calm future is known to end well.
#[derive(Debug, Default)]
pub struct Calm {
    resolving: Mutex<HashSet<State>>,
}

impl Calm {
    pub fn resolves(&self, protocol: &Protocol, state: &State) -> bool {
        let mut seen = Vec::new();
        let mut state = *state;
        let mut resolving = self
            .resolving
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while !resolving.contains(&state) {
            seen.push(state);
            if seen.len() > STEPS_MAX {
                return false;
            }
            match next(protocol, &state) {
                Some(after) => state = after,
                None if resolved(&state) => break,
                None => return false,
            }
        }
        resolving.extend(seen);
        true
    }
}

/// The next step of the calm future; `None` when nothing is left to do.
fn next(protocol: &Protocol, state: &State) -> Option<State> {
    let verdict = Verdict::Approved;
    let under_way = protocol.after(state, Action::DelayedSendArrives { verdict });
    let steps = (0..state.workers.len()).filter_map(|worker| step(state, worker));
    let at_work = || {
        steps
            .into_iter()
            .find_map(|action| protocol.after(state, action))
    };
    let time = || {
        protocol
            .after(state, Action::LeaseExpires)
            .filter(|_| !in_review(state))
    };
    let rescue = || protocol.after(state, Action::Rescue { worker: 0 });
    let waiting = state
        .clients
        .iter()
        .position(|client| *client == Client::Waiting);
    let retry = || {
        let client = waiting.filter(|_| !in_review(state))?;
        protocol.after(state, Action::Request { client, worker: 0 })
    };
    under_way
        .or_else(at_work)
        .or_else(time)
        .or_else(rescue)
        .or_else(retry)
}

fn step(state: &State, worker: usize) -> Option<Action> {
    match state.workers[worker].task {
        Task::Idle => None,
        Task::Claiming | Task::Reclaiming | Task::TakingOver { .. } | Task::Ending { .. } => {
            let reply = Reply::Arrives;
            Some(Action::Commit { worker, reply })
        }
        Task::Recognising(_) | Task::Looking | Task::Reading => Some(Action::Look { worker }),
        Task::Asking { .. } => {
            let search = Search::Answered;
            Some(Action::Find { worker, search })
        }
        Task::Poised { .. } => Some(Action::Send {
            worker,
            delivery: Delivery::Answered,
            verdict: Verdict::Approved,
        }),
    }
}

/// Every client has its final answer, or a person looks at the payment; what the gateway did is
/// what the record says, as long as the database has lost nothing.
fn resolved(state: &State) -> bool {
    if in_review(state) {
        return true;
    }
    let done = state
        .clients
        .iter()
        .all(|client| matches!(client, Client::Done(_)));
    let mut database = state.database;
    let told = finished(&database, Verdict::Approved) || state.gateway.effects == 0;
    let kept = database.record.is_some() && !released(state);
    database.processing().is_none() && done && (told || !kept)
}
