//! What goes by and what goes wrong without anybody's doing: leases, key windows, failovers.

use super::{
    scenario::{Outage, Replication, Scenario},
    state::{End, State, Task},
    table::{Age, Lease, Stage, Table},
};

pub fn lease_expires(state: &mut State) -> Option<()> {
    state.database.processing()?.lease = Lease::Expired;
    Some(())
}

pub fn record_expires(state: &mut State) -> Option<()> {
    match &mut state.database.record.as_mut()?.stage {
        Stage::Finished { expired, .. } => *expired = true,
        Stage::Processing(_) | Stage::Released => return None,
    }
    Some(())
}

/// So much time goes by that no successor may send any more. It goes by for both copies.
pub fn margin_is_reached(state: &mut State) {
    for table in [&mut state.database, &mut state.standby] {
        if let Some(processing) = table.processing() {
            processing.age = Age::AtMargin;
        }
    }
}

/// The gateway forgets its keys, an hour after the margin: nobody is still between its last look at
/// its lease and its act, nothing is under way, and (unless the scenario says otherwise) the
/// database knows of what the gateway heard.
pub fn gateway_forgets(scenario: Scenario, state: &mut State) -> Option<()> {
    let about_to_act = |task: &Task| {
        matches!(
            task,
            Task::Recognising(_)
                | Task::Poised { .. }
                | Task::Asking {
                    age: Age::InWindow,
                    ..
                }
                | Task::Ending {
                    end: End::Release,
                    ..
                }
        )
    };
    let busy = state.workers.iter().any(|it| about_to_act(&it.task));
    let known = knows_the_gateway_heard(&state.database)
        && (!state.may_fail_over(scenario) || knows_the_gateway_heard(&state.standby));
    if busy || state.gateway.under_way.is_some() {
        return None;
    }
    if !known && scenario.outage == Outage::EndsInKeyWindow {
        return None;
    }
    state.gateway.remembers = Default::default();
    Some(())
}

impl State {
    fn may_fail_over(&self, scenario: Scenario) -> bool {
        scenario.replication == Replication::Asynchronous && !self.lost
    }
}

fn knows_the_gateway_heard(table: &Table) -> bool {
    match table.record.map(|record| record.stage) {
        Some(Stage::Processing(processing)) => processing.age == Age::AtMargin,
        Some(Stage::Finished { .. }) => true,
        Some(Stage::Released) => false,
        None => table.used,
    }
}

pub fn replicate(scenario: Scenario, state: &mut State) -> Option<()> {
    if !state.may_fail_over(scenario) {
        return None;
    }
    state.standby = state.database;
    Some(())
}

/// The standby takes over, once, without the commits that had not reached it.
pub fn fail_over(scenario: Scenario, state: &mut State) -> Option<()> {
    if !state.may_fail_over(scenario) || state.database == state.standby {
        return None;
    }
    state.database = state.standby;
    state.lost = true;
    Some(())
}
