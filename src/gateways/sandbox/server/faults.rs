//! Faults that are asked for by name, for calls that arrive next.

use std::time::Duration;

use serde::Deserialize;

use crate::gateways::sandbox::{journal::Call, method::DELAY_MAX};

/// Faults that wait for their call. Far more than any test asks for.
const FAULTS_MAX: usize = 1_000;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
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
    WebhookTwice,
    WebhookReordered,
}

/// Reads what is asked for at `/_sandbox/faults`, or says what is wrong with it.
pub(super) fn read(body: &[u8]) -> Result<Fault, String> {
    let asked: Asked = serde_json::from_slice(body).map_err(|error| error.to_string())?;
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
    Ok(Fault {
        kind: kind(&asked, status)?,
        call: asked.call,
        left,
    })
}

fn kind(asked: &Asked, status: u16) -> Result<FaultKind, String> {
    Ok(match asked.fault {
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
    })
}

fn delay(delay_ms: Option<u64>) -> Result<Duration, String> {
    delay_ms
        .map(Duration::from_millis)
        .filter(|delay| *delay <= DELAY_MAX)
        .ok_or_else(|| "`delay` needs `delay_ms`, at most 60000".to_owned())
}

/// Adds a fault; gives it back where there are too many.
pub(super) fn add(faults: &mut Vec<Fault>, fault: Fault) -> Result<(), String> {
    if faults.len() >= FAULTS_MAX {
        return Err(format!("there are {FAULTS_MAX} faults already"));
    }
    faults.push(fault);
    Ok(())
}

/// Takes the fault that is meant for this call: the oldest one that fits.
pub(super) fn take(faults: &mut Vec<Fault>, call: Call) -> Option<FaultKind> {
    let place = faults.iter().position(|fault| fault.is_for(call))?;
    let fault = faults.get_mut(place)?;
    let kind = fault.kind;
    fault.left = fault.left.saturating_sub(1);
    if fault.left == 0 {
        faults.remove(place);
    }
    Some(kind)
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

    #[test]
    fn a_fault_is_for_so_many_calls_of_its_kind() {
        let mut faults = Vec::new();
        let body = br#"{"fault":"status_before","call":"capture","times":2,"status":503}"#;
        add(&mut faults, read(body).unwrap()).unwrap();

        assert_eq!(take(&mut faults, Call::Authorize), None);
        let fault = Some(FaultKind::StatusBefore(503));
        assert_eq!(take(&mut faults, Call::Capture), fault);
        assert_eq!(take(&mut faults, Call::Capture), fault);
        assert_eq!(take(&mut faults, Call::Capture), None);
    }

    #[test]
    fn a_wrong_amount_waits_for_a_call_with_an_amount() {
        let mut faults = vec![read(br#"{"fault":"wrong_amount"}"#).unwrap()];

        assert_eq!(take(&mut faults, Call::Find), None);
        assert_eq!(take(&mut faults, Call::Cancel), None);
        assert_eq!(
            take(&mut faults, Call::Refund),
            Some(FaultKind::WrongAmount)
        );
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
