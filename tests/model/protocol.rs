//! What may happen next, in any order: the protocol as stateright explores it.

use stateright::{Model, Property};

use super::{
    calm::Calm,
    client, database,
    gateway::{Delivery, Search},
    invariants,
    scenario::{Numbering, Scenario},
    state::{CLIENTS, Client, End, State, Task, Verdict, WORKERS},
    symmetry, time,
    worker::{self, Reply},
};

/// The model: a scenario, and the states from which the run is known to resolve.
#[derive(Debug)]
pub struct Protocol {
    pub scenario: Scenario,
    pub calm: Calm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A client sends its request.
    Request { client: usize, worker: usize },
    /// A client stops waiting for its answer.
    Disconnect { client: usize },
    /// The rescuer picks up a record whose lease has run out.
    Rescue { worker: usize },

    /// The worker's statement is committed.
    Commit { worker: usize, reply: Reply },
    /// The worker reads the record.
    Look { worker: usize },
    /// The worker asks the gateway.
    Find { worker: usize, search: Search },
    /// The worker sends to the gateway, which decides if it has not yet.
    Send {
        worker: usize,
        delivery: Delivery,
        verdict: Verdict,
    },
    /// The worker repeats a send that was refused.
    SendAgain { worker: usize },
    /// The worker renews its lease.
    Renew { worker: usize },
    /// The worker's own clock says that its lease is over.
    NoticeLeaseLost { worker: usize },
    /// The worker's process dies, or the worker gives up.
    Crash { worker: usize },

    /// A lease runs out, or the rest of a parked record is over.
    LeaseExpires,
    /// The key window is over but for its margin.
    MarginIsReached,
    /// The key window is over.
    GatewayForgets,
    /// A send that was given up arrives.
    DelayedSendArrives { verdict: Verdict },
    /// The answer is kept no longer.
    RecordExpires,
    /// The cleaner deletes the record.
    Clean,
    /// The standby catches up.
    Replicate,
    /// The standby takes over as it is.
    FailOver,
}

impl Protocol {
    pub fn new(scenario: Scenario) -> Self {
        Self {
            scenario,
            calm: Calm::default(),
        }
    }

    /// The state after `action`; `None` where it cannot happen or changes nothing.
    pub fn after(&self, before: &State, action: Action) -> Option<State> {
        let scenario = self.scenario;
        let mut after = *before;
        let state = &mut after;
        match action {
            Action::Request { client, worker } => {
                client::request(scenario, state, client, worker)?;
            }
            Action::Disconnect { client } => client::disconnect(state, client)?,
            Action::Rescue { worker } => client::rescue(state, worker)?,
            Action::Commit { worker, reply } => worker::commit(scenario, state, worker, reply)?,
            Action::Look { worker } => worker::look(scenario, state, worker)?,
            Action::Find { worker, search } => worker::find(scenario, state, worker, search)?,
            Action::Send {
                worker,
                delivery,
                verdict,
            } => worker::send(scenario, state, worker, (delivery, verdict))?,
            Action::SendAgain { worker } => worker::send_again(state, worker)?,
            Action::Renew { worker } => {
                let held = state.workers[worker].task.held()?;
                database::renew(state, held)?;
            }
            Action::NoticeLeaseLost { worker } => worker::notice_lease_lost(state, worker)?,
            Action::Crash { worker } => worker::crash(state, worker)?,
            Action::LeaseExpires => time::lease_expires(state)?,
            Action::MarginIsReached => time::margin_is_reached(state),
            Action::GatewayForgets => time::gateway_forgets(scenario, state)?,
            Action::DelayedSendArrives { verdict } => state.delayed_send_arrives(verdict)?,
            Action::RecordExpires => time::record_expires(state)?,
            Action::Clean => database::clean(scenario, state)?,
            Action::Replicate => time::replicate(scenario, state)?,
            Action::FailOver => time::fail_over(scenario, state)?,
        }
        symmetry::normalise(&mut after, self.scenario.numbering == Numbering::Symmetric);
        (after != *before).then_some(after)
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for worker in 0..WORKERS {
            let waiting = |client: &usize| state.clients[*client] == Client::Waiting;
            let clients = (0..CLIENTS).filter(waiting);
            actions.extend(clients.map(|client| Action::Request { client, worker }));
            steps(state, worker, actions);
        }
        actions.extend((0..CLIENTS).map(|client| Action::Disconnect { client }));
        if let Some(key) = state.gateway.under_way {
            let verdicts = verdicts(state, key);
            actions.extend(verdicts.map(|&verdict| Action::DelayedSendArrives { verdict }));
        }
        actions.extend([
            Action::LeaseExpires,
            Action::MarginIsReached,
            Action::GatewayForgets,
            Action::RecordExpires,
            Action::Clean,
            Action::Replicate,
            Action::FailOver,
        ]);
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        self.after(before, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        invariants::properties()
    }
}

/// Everything that the worker may do or suffer.
fn steps(state: &State, worker: usize, actions: &mut Vec<Action>) {
    let task = state.workers[worker].task;
    match task {
        Task::Idle => {
            actions.push(Action::Rescue { worker });
            return;
        }
        Task::Claiming | Task::Reclaiming | Task::TakingOver { .. } | Task::Ending { .. } => {
            let replies = [Reply::Arrives, Reply::Lost];
            actions.extend(replies.map(|reply| Action::Commit { worker, reply }));
        }
        Task::Recognising(_) | Task::Looking | Task::Reading => {
            actions.push(Action::Look { worker });
        }
        Task::Asking { .. } => {
            let searches = [Search::Answered, Search::Lags, Search::Silent];
            actions.extend(searches.map(|search| Action::Find { worker, search }));
        }
        Task::Poised { held, .. } => sends(state, worker, held.gateway_key, actions),
    }
    if let Task::Ending {
        end: End::Release, ..
    } = task
    {
        actions.push(Action::SendAgain { worker });
    }
    if task.held().is_some() {
        actions.push(Action::Renew { worker });
        actions.push(Action::NoticeLeaseLost { worker });
    }
    actions.push(Action::Crash { worker });
}

fn sends(state: &State, worker: usize, key: usize, actions: &mut Vec<Action>) {
    for &verdict in verdicts(state, key) {
        actions.extend(
            [Delivery::Answered, Delivery::ReplyLost].map(|delivery| Action::Send {
                worker,
                delivery,
                verdict,
            }),
        );
    }
    let unheard = [Delivery::Refused, Delivery::Dropped, Delivery::Delayed];
    actions.extend(unheard.map(|delivery| Action::Send {
        worker,
        delivery,
        verdict: Verdict::Approved,
    }));
}

/// What the gateway may decide when `key` arrives: one thing, if it has decided before.
fn verdicts(state: &State, key: usize) -> std::slice::Iter<'static, Verdict> {
    const ALL: [Verdict; 2] = [Verdict::Approved, Verdict::Declined];
    const ANY: [Verdict; 1] = [Verdict::Approved];
    if state.gateway.undecided(key) {
        ALL.iter()
    } else {
        ANY.iter()
    }
}
