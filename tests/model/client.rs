//! Who gives a worker its work: a client, which may go away, or the rescuer.

use super::{
    scenario::{Bug, Scenario},
    state::{Client, Held, Standing, State, Task, Worker},
    table::{Lease, Stage},
};

/// A client sends its request, for the first time or again (`run::run`).
pub fn request(scenario: Scenario, state: &mut State, client: usize, worker: usize) -> Option<()> {
    if state.clients[client] != Client::Waiting || state.workers[worker].task != Task::Idle {
        return None;
    }
    state.clients[client] = Client::Asking;
    let task = if scenario.has(Bug::ClaimAfterCall) {
        let held = Held {
            fence: 1,
            owner: state.fresh_owner(),
            gateway_key: 0,
        };
        Task::Poised {
            held,
            standing: Standing::First,
        }
    } else {
        Task::Claiming
    };
    state.workers[worker] = Worker {
        task,
        asker: Some(client),
    };
    Some(())
}

/// The rescuer finds a lease that has run out, and works like a request without a client.
pub fn rescue(state: &mut State, worker: usize) -> Option<()> {
    let record = state.database.record?;
    let Stage::Processing(processing) = record.stage else {
        return None;
    };
    if processing.lease == Lease::Valid || state.workers[worker].task != Task::Idle {
        return None;
    }
    state.workers[worker].task = Task::TakingOver { seen: record.fence };
    Some(())
}

/// The client goes away, and the work goes on.
pub fn disconnect(state: &mut State, client: usize) -> Option<()> {
    let worker = state
        .workers
        .iter_mut()
        .find(|it| it.asker == Some(client))?;
    worker.asker = None;
    state.clients[client] = Client::Waiting;
    Some(())
}
