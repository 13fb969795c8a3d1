//! The worker of the model: claim, perform and settle, one statement or one call at a time.

use super::{
    database,
    gateway::{Delivery, Outcome, Search},
    scenario::{Bug, Scenario},
    state::{Client, End, Final, Held, Interim, Standing, State, Task, Verdict, Worker},
    table::{Age, Lease, Stage},
};

/// Whether the answer to a COMMIT reaches who sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    Arrives,
    Lost,
}

/// The worker's statement is committed.
pub fn commit(scenario: Scenario, state: &mut State, worker: usize, reply: Reply) -> Option<()> {
    let next = match state.workers[worker].task {
        Task::Claiming => match (database::claim(scenario, state), reply) {
            (Some(held), Reply::Arrives) => poised(held, Standing::First),
            (Some(held), Reply::Lost) => Task::Recognising(held),
            (None, _) => Task::Looking,
        },
        Task::Reclaiming => match (database::reclaim(scenario, state), reply) {
            (Some(held), Reply::Arrives) => poised(held, Standing::First),
            (Some(held), Reply::Lost) => Task::Recognising(held),
            (None, _) => Task::Looking,
        },
        Task::TakingOver { seen } => match (database::take_over(scenario, state, seen), reply) {
            (Some((held, age)), Reply::Arrives) => Task::Asking { held, age },
            (Some(_), Reply::Lost) => interim(state, worker, Interim::OutcomeUnknown),
            (None, _) => Task::Looking,
        },
        Task::Ending { held, end } => ended(scenario, state, worker, (held, end), reply),
        _ => return None,
    };
    state.workers[worker].task = next;
    Some(())
}

/// `finish::{settle, rest, release}`.
fn ended(
    scenario: Scenario,
    state: &mut State,
    worker: usize,
    (held, end): (Held, End),
    reply: Reply,
) -> Task {
    let met = database::end(scenario, state, held, end);
    match (end, reply) {
        (End::Park, _) => interim(state, worker, Interim::Unresolved),
        (_, _) if !met => Task::Reading,
        (End::Settle(verdict), Reply::Arrives) => last(state, worker, verdict.into()),
        // Repeated, the settle meets no row, and the record tells.
        (End::Settle(_) | End::Review, Reply::Lost) => Task::Reading,
        (End::Review, Reply::Arrives) => interim(state, worker, Interim::Unresolved),
        (End::Release, Reply::Arrives) => interim(state, worker, Interim::Released),
        (End::Release, Reply::Lost) => interim(state, worker, Interim::OutcomeUnknown),
    }
}

/// The worker reads the record: `acquire::see` and `decide`, the look after a lost claim in
/// `acquire::acquired_by`, or `finish::stored`.
pub fn look(scenario: Scenario, state: &mut State, worker: usize) -> Option<()> {
    let next = match state.workers[worker].task {
        Task::Recognising(held) => match state.database.record {
            Some(record) if record.owner == held.owner => poised(held, Standing::First),
            None if !state.database.used => interim(state, worker, Interim::OutcomeUnknown),
            Some(_) | None => Task::Looking,
        },
        Task::Reading => match database::stored(state) {
            Some(verdict) => last(state, worker, verdict.into()),
            None => interim(state, worker, Interim::OutcomeUnknown),
        },
        Task::Looking => decide(scenario, state, worker),
        _ => return None,
    };
    state.workers[worker].task = next;
    Some(())
}

fn decide(scenario: Scenario, state: &mut State, worker: usize) -> Task {
    let Some(record) = state.database.record else {
        if state.database.used {
            return last(state, worker, Final::Expired);
        }
        return Task::Claiming;
    };
    match record.stage {
        Stage::Finished { expired: true, .. } => last(state, worker, Final::Expired),
        Stage::Finished { verdict, .. } => last(state, worker, verdict.into()),
        Stage::Released => Task::Reclaiming,
        Stage::Processing(processing)
            if processing.lease == Lease::Expired && !scenario.has(Bug::NoTakeOver) =>
        {
            Task::TakingOver { seen: record.fence }
        }
        Stage::Processing(_) => interim(state, worker, Interim::Unresolved),
    }
}

/// `perform::successor`, up to its send.
pub fn find(scenario: Scenario, state: &mut State, worker: usize, search: Search) -> Option<()> {
    let Task::Asking { held, age } = state.workers[worker].task else {
        return None;
    };
    let found = state.gateway.remembers[held.gateway_key];
    let over = age == Age::AtMargin && !scenario.has(Bug::SendAfterWindow);
    state.workers[worker].task = match (search, found) {
        (Search::Silent, _) => ending(held, End::Park),
        (Search::Answered, Some(verdict)) => ending(held, End::Settle(verdict)),
        (Search::Answered, None) | (Search::Lags, _) if over => ending(held, End::Review),
        (Search::Answered, None) | (Search::Lags, _) => poised(held, Standing::Successor),
    };
    Some(())
}

/// One send of `perform::first` or `perform::successor`, and what is concluded from it.
pub fn send(
    scenario: Scenario,
    state: &mut State,
    worker: usize,
    (delivery, verdict): (Delivery, Verdict),
) -> Option<()> {
    let Task::Poised { held, standing } = state.workers[worker].task else {
        return None;
    };
    let end = match state.send(held.gateway_key, delivery, verdict)? {
        Outcome::Decided(verdict) => End::Settle(verdict),
        Outcome::NotExecuted if standing == Standing::First => End::Release,
        Outcome::NotExecuted if scenario.has(Bug::ReleaseAfterUnknown) => End::Release,
        Outcome::Unknown if scenario.has(Bug::UnknownIsApproved) => End::Settle(Verdict::Approved),
        Outcome::Unknown if scenario.has(Bug::UnknownIsDeclined) => End::Settle(Verdict::Declined),
        Outcome::NotExecuted | Outcome::Unknown => End::Park,
    };
    state.workers[worker].task = ending(held, end);
    Some(())
}

/// A first holder whose every send was refused sends once more instead of releasing.
pub fn send_again(state: &mut State, worker: usize) -> Option<()> {
    match state.workers[worker].task {
        Task::Ending {
            held,
            end: End::Release,
        } => state.workers[worker].task = poised(held, Standing::First),
        _ => return None,
    }
    Some(())
}

/// The holder sees by its own clock that it is not to be trusted any more.
pub fn notice_lease_lost(state: &mut State, worker: usize) -> Option<()> {
    let held = state.workers[worker].task.held()?;
    let mut database = state.database;
    let valid = database.is_held_by(held)
        && database
            .processing()
            .is_some_and(|it| it.lease == Lease::Valid);
    if valid || matches!(state.workers[worker].task, Task::Recognising(_)) {
        return None;
    }
    state.workers[worker].task = Task::Reading;
    Some(())
}

/// The process dies; or it gives up, with an answer that is not final.
pub fn crash(state: &mut State, worker: usize) -> Option<()> {
    if state.workers[worker].task == Task::Idle {
        return None;
    }
    interim(state, worker, Interim::OutcomeUnknown);
    Some(())
}

/// The task is over, with an answer that ends the client's retries.
fn last(state: &mut State, worker: usize, answer: Final) -> Task {
    if let Some(client) = state.workers[worker].asker {
        state.clients[client] = Client::Done(answer);
    }
    state.workers[worker] = Worker::default();
    Task::Idle
}

/// The task is over, and the client will ask again.
fn interim(state: &mut State, worker: usize, answer: Interim) -> Task {
    state.answered(answer);
    if let Some(client) = state.workers[worker].asker {
        state.clients[client] = Client::Waiting;
    }
    state.workers[worker] = Worker::default();
    Task::Idle
}

fn poised(held: Held, standing: Standing) -> Task {
    Task::Poised { held, standing }
}

fn ending(held: Held, end: End) -> Task {
    Task::Ending { held, end }
}

impl From<Verdict> for Final {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Approved => Self::Created,
            Verdict::Declined => Self::Declined,
        }
    }
}
