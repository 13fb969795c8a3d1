//! What one call does, once its payment method and the fault that was asked for are put together.

use super::faults::FaultKind;
use crate::gateways::sandbox::plan::{Deed, Pause, Plan, Reply};

/// What one call does, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) before: Pause,
    pub(super) doing: Doing,
    pub(super) amount: Amount,
    pub(super) after: Pause,
    pub(super) ending: Ending,
    /// What made it so.
    pub(super) fault: Option<FaultKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Deed(Deed),
    /// Nothing; it is answered with this status.
    Fail(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    AsAsked,
    Wrong,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Says what happened.
    Tell,
    /// Says this instead.
    Status(u16),
    /// Closes the connection.
    Drop,
}

impl Script {
    /// The fault changes its part of the plan; the rest stays.
    pub(super) fn new(plan: Plan, fault: Option<FaultKind>) -> Self {
        let mut script = Self {
            before: plan.before,
            doing: Doing::Deed(plan.deed),
            amount: Amount::AsAsked,
            after: plan.after,
            ending: match plan.reply {
                Reply::Outcome => Ending::Tell,
                Reply::ServerError => Ending::Status(500),
            },
            fault,
        };
        match fault {
            None => {}
            Some(FaultKind::Refuse) => script.doing = Doing::Deed(Deed::Refuse),
            Some(FaultKind::Delay(delay)) => script.before = Pause::For(delay),
            Some(FaultKind::StatusBefore(status)) => script.doing = Doing::Fail(status),
            Some(FaultKind::StatusAfter(status)) => script.ending = Ending::Status(status),
            Some(FaultKind::DropAfterEffect) => script.ending = Ending::Drop,
            Some(FaultKind::HangBefore) => script.before = Pause::Forever,
            Some(FaultKind::HangAfterEffect) => script.after = Pause::Forever,
            Some(FaultKind::WrongAmount) => script.amount = Amount::Wrong,
        }
        script
    }
}
