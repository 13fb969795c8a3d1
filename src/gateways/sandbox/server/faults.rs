//! Faults that are asked for by name, for calls that arrive next, and a count of those that struck:
//! whoever tests against them must know that what was asked for has happened.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::gateways::sandbox::{journal::Call, method::DELAY_MAX};

/// Faults that wait for their call. Far more than any test asks for.
const FAULTS_MAX: usize = 1_000;

/// The faults that wait, and those that were.
#[derive(Debug, Default)]
pub(super) struct Faults {
    waiting: Vec<Fault>,
    struck: BTreeMap<(Name, Call), u64>,
}

/// What is asked for at `/_sandbox/faults`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Fault(Fault),
    /// All keys, at once: as if their window were over.
    ForgetKeys,
}

/// A fault, and how many calls it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    call: Option<Call>,
    left: u32,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    Refuse,
    Delay(Duration),
    StatusBefore(u16),
    StatusAfter(u16),
    DropAfterEffect,
    HangBefore,
    HangAfterEffect,
    WrongAmount,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    fault: Name,
    call: Option<Call>,
    times: Option<u32>,
    delay_ms: Option<u64>,
    status: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Name {
    Refuse,
    Delay,
    StatusBefore,
    StatusAfter,
    DropAfterEffect,
    HangBefore,
    HangAfterEffect,
    WrongAmount,
    ForgetKeys,
    WebhookTwice,
    WebhookReordered,
}

/// Reads what is asked for at `/_sandbox/faults`, or says what is wrong with it.
pub(super) fn read(body: &[u8]) -> Result<Wish, String> {
    let asked: Asked = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    if asked.fault == Name::ForgetKeys && (asked.call.is_some() || asked.times.is_some()) {
        return Err("`forget_keys` is for no call: it happens at once".to_owned());
    }
    let left = asked.times.unwrap_or(1);
    if left == 0 {
        return Err("`times` must be at least 1".to_owned());
    }
    if asked.delay_ms.is_some() && asked.fault != Name::Delay {
        return Err("`delay_ms` is for the fault `delay`".to_owned());
    }
    let takes_status = matches!(asked.fault, Name::StatusBefore | Name::StatusAfter);
    if asked.status.is_some() && !takes_status {
        return Err("`status` is for `status_before` and `status_after`".to_owned());
    }
    let status = asked.status.unwrap_or(500);
    if !(400..=599).contains(&status) {
        return Err("`status` must be from 400 to 599".to_owned());
    }
    Ok(match kind(&asked, status)? {
        None => Wish::ForgetKeys,
        Some(kind) => Wish::Fault(Fault {
            kind,
            call: asked.call,
            left,
        }),
    })
}

/// The kind of a fault that waits for a call.
fn kind(asked: &Asked, status: u16) -> Result<Option<FaultKind>, String> {
    Ok(Some(match asked.fault {
        Name::ForgetKeys => return Ok(None),
        Name::Refuse => FaultKind::Refuse,
        Name::Delay => FaultKind::Delay(delay(asked.delay_ms)?),
        Name::StatusBefore => FaultKind::StatusBefore(status),
        Name::StatusAfter => FaultKind::StatusAfter(status),
        Name::DropAfterEffect => FaultKind::DropAfterEffect,
        Name::HangBefore => FaultKind::HangBefore,
        Name::HangAfterEffect => FaultKind::HangAfterEffect,
        Name::WrongAmount if matches!(asked.call, Some(Call::Cancel | Call::Find)) => {
            return Err("a call without an amount cannot have a wrong one".to_owned());
        }
        Name::WrongAmount => FaultKind::WrongAmount,
        Name::WebhookTwice | Name::WebhookReordered => {
            return Err("this version sends no webhooks".to_owned());
        }
    }))
}

fn delay(delay_ms: Option<u64>) -> Result<Duration, String> {
    delay_ms
        .map(Duration::from_millis)
        .filter(|delay| *delay <= DELAY_MAX)
        .ok_or_else(|| "`delay` needs `delay_ms`, at most 60000".to_owned())
}

impl Faults {
    /// Adds a fault, unless there are too many.
    pub(super) fn add(&mut self, fault: Fault) -> Result<(), String> {
        if self.waiting.len() >= FAULTS_MAX {
            return Err(format!("there are {FAULTS_MAX} faults already"));
        }
        self.waiting.push(fault);
        Ok(())
    }

    /// Forgets what waits; what struck stays counted.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Takes the fault that is meant for this call: the oldest one that fits.
    pub(super) fn take(&mut self, call: Call) -> Option<FaultKind> {
        let place = self.waiting.iter().position(|fault| fault.is_for(call))?;
        let fault = self.waiting.get_mut(place)?;
        let kind = fault.kind;
        fault.left = fault.left.saturating_sub(1);
        if fault.left == 0 {
            self.waiting.remove(place);
        }
        if !kind.needs_deed() {
            self.count(kind.name(), call);
        }
        Some(kind)
    }

    /// The call has done its deed: a fault that comes after it strikes now.
    pub(super) fn deed_done(&mut self, kind: Option<FaultKind>, call: Call) {
        if let Some(kind) = kind.filter(|kind| kind.needs_deed()) {
            self.count(kind.name(), call);
        }
    }

    /// What waits and what struck, for `GET /_sandbox/faults`.
    pub(super) fn document(&self) -> Value {
        let struck: Vec<Value> = self
            .struck
            .iter()
            .map(|((fault, call), count)| json!({"fault": fault, "call": call, "count": count}))
            .collect();
        json!({"waiting": self.waiting.len(), "struck": struck})
    }

    fn count(&mut self, fault: Name, call: Call) {
        let count = self.struck.entry((fault, call)).or_default();
        *count = count.saturating_add(1);
    }
}

impl FaultKind {
    /// Whether it strikes only a call that does what was asked: a decline has nothing to follow.
    const fn needs_deed(self) -> bool {
        match self {
            Self::Refuse | Self::Delay(_) | Self::StatusBefore(_) | Self::HangBefore => false,
            Self::StatusAfter(_)
            | Self::DropAfterEffect
            | Self::HangAfterEffect
            | Self::WrongAmount => true,
        }
    }

    const fn name(self) -> Name {
        match self {
            Self::Refuse => Name::Refuse,
            Self::Delay(_) => Name::Delay,
            Self::StatusBefore(_) => Name::StatusBefore,
            Self::StatusAfter(_) => Name::StatusAfter,
            Self::DropAfterEffect => Name::DropAfterEffect,
            Self::HangBefore => Name::HangBefore,
            Self::HangAfterEffect => Name::HangAfterEffect,
            Self::WrongAmount => Name::WrongAmount,
        }
    }
}

impl Fault {
    fn is_for(&self, call: Call) -> bool {
        let has_amount = !matches!(call, Call::Cancel | Call::Find);
        let fits = self.kind != FaultKind::WrongAmount || has_amount;
        fits && self.call.is_none_or(|wanted| wanted == call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(bodies: &[&str]) -> Faults {
        let mut faults = Faults::default();
        for body in bodies {
            match read(body.as_bytes()).unwrap() {
                Wish::Fault(fault) => faults.add(fault).unwrap(),
                Wish::ForgetKeys => panic!("{body} waits for no call"),
            }
        }
        faults
    }

    #[test]
    fn a_fault_is_for_so_many_calls_of_its_kind() {
        let mut faults =
            with(&[r#"{"fault":"status_before","call":"capture","times":2,"status":503}"#]);

        assert_eq!(faults.take(Call::Authorize), None);
        let fault = Some(FaultKind::StatusBefore(503));
        assert_eq!(faults.take(Call::Capture), fault);
        assert_eq!(faults.take(Call::Capture), fault);
        assert_eq!(faults.take(Call::Capture), None);
    }

    #[test]
    fn a_wrong_amount_waits_for_a_call_with_an_amount() {
        let mut faults = with(&[r#"{"fault":"wrong_amount"}"#]);

        assert_eq!(faults.take(Call::Find), None);
        assert_eq!(faults.take(Call::Cancel), None);
        assert_eq!(faults.take(Call::Refund), Some(FaultKind::WrongAmount));
    }

    /// A fault that follows a deed has not struck a call that did nothing.
    #[test]
    fn a_fault_is_counted_when_it_strikes() {
        let mut faults = with(&[
            r#"{"fault":"refuse"}"#,
            r#"{"fault":"status_after"}"#,
            r#"{"fault":"status_after"}"#,
        ]);

        for _call in 0..3 {
            faults.take(Call::Authorize);
        }
        faults.deed_done(Some(FaultKind::StatusAfter(500)), Call::Authorize);
        faults.deed_done(Some(FaultKind::Refuse), Call::Authorize);
        faults.deed_done(None, Call::Authorize);

        assert_eq!(
            faults.document(),
            json!({"waiting": 0, "struck": [
                {"fault": "refuse", "call": "authorize", "count": 1},
                {"fault": "status_after", "call": "authorize", "count": 1},
            ]})
        );
    }

    #[test]
    fn keys_are_forgotten_at_once_and_for_no_call() {
        let read = |body: &str| read(body.as_bytes());

        assert_eq!(read(r#"{"fault":"forget_keys"}"#), Ok(Wish::ForgetKeys));
        assert!(read(r#"{"fault":"forget_keys","call":"find"}"#).is_err());
        assert!(read(r#"{"fault":"forget_keys","times":2}"#).is_err());
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for body in [
            "",
            "{}",
            r#"{"fault":"explode"}"#,
            r#"{"fault":"refuse","often":2}"#,
            r#"{"fault":"refuse","times":0}"#,
            r#"{"fault":"refuse","times":-1}"#,
            r#"{"fault":"refuse","status":500}"#,
            r#"{"fault":"refuse","delay_ms":5}"#,
            r#"{"fault":"refuse","call":"pay"}"#,
            r#"{"fault":"delay"}"#,
            r#"{"fault":"delay","delay_ms":60001}"#,
            r#"{"fault":"status_before","status":200}"#,
            r#"{"fault":"status_after","status":600}"#,
            r#"{"fault":"wrong_amount","call":"cancel"}"#,
            r#"{"fault":"wrong_amount","call":"find"}"#,
            r#"{"fault":"webhook_twice"}"#,
            r#"{"fault":"webhook_reordered"}"#,
        ] {
            assert!(read(body.as_bytes()).is_err(), "{body}");
        }
    }
}
