//! The table: what is set up for each step and mode, so that a service comes by its points, and
//! what must follow. Where a point cannot be met in a mode, it says why.

use std::time::Duration;

use oncepay::crash::Moment;

use crate::support::stage::LEASE;

/// How many clients are at it, and what the key has behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One request under a key that nobody used, and its retries.
    Fresh,
    /// One request under a key with a history, and its retries.
    Retried,
    /// A storm of requests at two services, one of which dies.
    Duplicated,
}

pub(super) const MODES: [Mode; 3] = [Mode::Fresh, Mode::Retried, Mode::Duplicated];

/// Where it dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strike {
    /// By its own hand, at a named point.
    Point(&'static str, Moment),
    /// By ours, when the gateway has noted the call: before the effect.
    Heard,
    /// By ours, when the gateway has charged: before the answer.
    Charged,
}

/// What happened to the key before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum History {
    None,
    /// 503: the gateway refused three sends, and the key was given back.
    Released,
    /// 202: charged, and the answer got lost. It has rested.
    Charged,
    /// 202: the gateway failed without an effect. It has rested.
    Unheard,
    /// 201: the gateway has accepted and decides later. It is due to be asked.
    Pending,
    /// The same, and a replay was given.
    PendingReplayed,
}

/// When the point is armed, and so who comes by it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Armed {
    /// Before the requests: one of them comes by.
    AtOnce,
    /// When the gateway has the call: a worker comes by, while its process waits for the answer.
    DuringCall,
    /// A worker comes by while no request is under way.
    Idle,
}

/// One cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(super) history: History,
    /// Faults of the gateway, asked for after the history.
    pub(super) faults: &'static [&'static str],
    pub(super) armed: Armed,
    /// The request fails after the gateway's answer, so that it lets its lease go.
    pub(super) fails: bool,
    /// How soon after the death everybody has the final answer.
    pub(super) within: Duration,
}

/// What the issue allows: a lease, and two seconds.
const LEASE_AND_TWO: Duration = Duration::from_secs(LEASE.as_secs() + 2);

/// The second rest of a record takes four seconds, whoever dies in the meantime: what is asked too
/// early is asked in vain.
const REST_AND_TWO: Duration = Duration::from_secs(4 + 2);

const LOST: &str = r#"{"fault": "drop_after_effect"}"#;
const SLOW: &str = r#"{"fault": "delay", "call": "authorize", "delay_ms": 1500}"#;
const REFUSED: &str = r#"{"fault": "refuse", "times": 3}"#;
const FIND_FAILS: &str = r#"{"fault": "status_before", "call": "find", "status": 500}"#;
const HANGS: &str = r#"{"fault": "hang_before"}"#;
const HANGS_CHARGED: &str = r#"{"fault": "hang_after_effect"}"#;

const fn plan(history: History, faults: &'static [&'static str]) -> Plan {
    Plan {
        history,
        faults,
        armed: Armed::AtOnce,
        fails: false,
        within: LEASE_AND_TWO,
    }
}

impl Plan {
    /// A new key, and a gateway that works.
    pub(crate) const FRESH: Self = plan(History::None, &[]);

    const fn armed(self, armed: Armed) -> Self {
        Self { armed, ..self }
    }

    const fn fails(self) -> Self {
        Self {
            fails: true,
            ..self
        }
    }

    const fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }
}

/// A plan, or why there is none.
pub(super) type Cell = Result<Plan, &'static str>;

/// A step or a moment in it, and what it is like in each of [`MODES`].
pub(super) struct Row {
    pub(super) strikes: &'static [Strike],
    pub(super) cells: [Cell; 3],
}

const NEVER_RELEASED: Cell = Err("only a released key is claimed again");
const NOBODY_LEFT: Cell = Err("only what somebody left is taken over, and asked about");

/// Both points of a step.
macro_rules! both {
    ($step:literal) => {
        &[
            Strike::Point($step, Moment::Before),
            Strike::Point($step, Moment::After),
        ]
    };
}

/// Fresh, retried, duplicated.
pub(super) const ROWS: &[Row] = &[
    Row {
        strikes: both!("claim"),
        cells: [
            Ok(plan(History::None, &[])),
            Ok(plan(History::Charged, &[])),
            Ok(plan(History::None, &[])),
        ],
    },
    Row {
        strikes: both!("reclaim"),
        cells: [
            NEVER_RELEASED,
            Ok(plan(History::Released, &[])),
            Ok(plan(History::Released, &[])),
        ],
    },
    Row {
        strikes: both!("send"),
        cells: [
            Ok(plan(History::None, &[])),
            Ok(plan(History::Unheard, &[])),
            Ok(plan(History::None, &[SLOW])),
        ],
    },
    Row {
        strikes: &[Strike::Heard],
        cells: [
            Ok(plan(History::None, &[HANGS])),
            Ok(plan(History::Released, &[HANGS])),
            Ok(plan(History::None, &[HANGS])),
        ],
    },
    Row {
        strikes: &[Strike::Charged],
        cells: [
            Ok(plan(History::None, &[HANGS_CHARGED])),
            Ok(plan(History::Released, &[HANGS_CHARGED])),
            Ok(plan(History::None, &[HANGS_CHARGED])),
        ],
    },
    Row {
        strikes: both!("ask"),
        cells: [
            NOBODY_LEFT,
            Ok(plan(History::Charged, &[])),
            Ok(plan(History::Charged, &[])),
        ],
    },
    Row {
        strikes: both!("settle"),
        cells: [
            Ok(plan(History::None, &[])),
            Ok(plan(History::Charged, &[])),
            Ok(plan(History::None, &[SLOW])),
        ],
    },
    Row {
        strikes: both!("park"),
        cells: [
            Ok(plan(History::None, &[LOST])),
            Ok(plan(History::Charged, &[FIND_FAILS]).within(REST_AND_TWO)),
            Ok(plan(History::None, &[LOST])),
        ],
    },
    Row {
        strikes: both!("release"),
        cells: [
            Ok(plan(History::None, &[REFUSED])),
            Ok(plan(History::Released, &[REFUSED])),
            Ok(plan(History::None, &[REFUSED])),
        ],
    },
    Row {
        strikes: both!("renew"),
        cells: [
            Ok(plan(History::None, &[SLOW]).armed(Armed::DuringCall)),
            Ok(plan(History::Released, &[SLOW]).armed(Armed::DuringCall)),
            Ok(plan(History::None, &[SLOW]).armed(Armed::DuringCall)),
        ],
    },
    Row {
        strikes: both!("take_over"),
        cells: [
            NOBODY_LEFT,
            Ok(plan(History::Charged, &[])),
            Ok(plan(History::Unheard, &[])),
        ],
    },
    Row {
        strikes: both!("let_go"),
        cells: [
            Ok(plan(History::None, &[]).fails()),
            Ok(plan(History::Charged, &[]).fails()),
            Ok(plan(History::None, &[SLOW]).fails()),
        ],
    },
    Row {
        strikes: both!("list_left"),
        cells: [
            Ok(plan(History::None, &[SLOW]).armed(Armed::DuringCall)),
            Ok(plan(History::Charged, &[]).armed(Armed::Idle)),
            Ok(plan(History::None, &[SLOW]).armed(Armed::DuringCall)),
        ],
    },
    Row {
        strikes: both!("delete_expired"),
        cells: [
            Ok(plan(History::None, &[SLOW]).armed(Armed::DuringCall)),
            Ok(plan(History::Charged, &[]).armed(Armed::Idle)),
            Ok(plan(History::None, &[SLOW]).armed(Armed::DuringCall)),
        ],
    },
    Row {
        strikes: both!("take_due"),
        cells: [
            Ok(plan(History::Pending, &[]).armed(Armed::Idle)),
            Ok(plan(History::PendingReplayed, &[]).armed(Armed::Idle)),
            Ok(plan(History::Pending, &[])),
        ],
    },
    Row {
        strikes: both!("follow"),
        cells: [
            Ok(plan(History::Pending, &[]).armed(Armed::Idle)),
            Ok(plan(History::PendingReplayed, &[]).armed(Armed::Idle)),
            Ok(plan(History::Pending, &[])),
        ],
    },
];
