//! What each payment method makes the sandbox do.
//!
//! Pure functions of the token and of how often the gateway key was sent: the same sends get the
//! same answers on every machine. Faults belong to the first send (or the first `n`), because what
//! is tested is the way back: a retry under the same key must find the truth.

use std::time::Duration;

use super::plan::{Deed, Ending, Pause, Plan, Reason, Reply};

/// Every payment method and what it does. `<time>` is `250ms` or `2s`, at most a minute; `<n>` is a
/// number. Any other token is declined with `payment-method-unknown`.
pub const METHODS: &[(&str, &str)] = &[
    ("pm_card_visa", "approves"),
    ("pm_card_mastercard", "approves"),
    ("pm_card_declined", "declines: `card-declined`"),
    (
        "pm_card_insufficient_funds",
        "declines: `insufficient-funds`",
    ),
    ("pm_card_expired", "declines: `card-expired`"),
    (
        "pm_card_declined_odd_text",
        "declines: `card-declined`, with a message of NUL, control and replacement characters",
    ),
    (
        "pm_slow_<time>",
        "waits on the first send, then approves; a caller that leaves meanwhile takes the effect away",
    ),
    (
        "pm_slow_after_charge_<time>",
        "approves, and on the first send answers that late",
    ),
    (
        "pm_timeout_before_charge",
        "never answers the first send and does nothing; approves the second",
    ),
    (
        "pm_timeout_after_charge",
        "approves, and never answers the first send",
    ),
    (
        "pm_error_before_charge",
        "refuses every send without an effect",
    ),
    (
        "pm_error_before_charge_<n>",
        "refuses the first n sends of the key without an effect, then approves",
    ),
    (
        "pm_error_after_charge",
        "approves, and answers the first send with a server error",
    ),
    (
        "pm_unknown",
        "has no effect, answers every send with a server error, and is never found",
    ),
    (
        "pm_pending_then_succeeds",
        "pending; a look-up two seconds later finds it approved, and that is its effect",
    ),
    (
        "pm_pending_then_fails",
        "pending; a look-up two seconds later finds it declined: `card-declined`",
    ),
];

/// The longest delay that can be asked for: longer than any timeout of the service, and short
/// enough that a mistyped one does not hold a test for an hour.
pub const DELAY_MAX: Duration = Duration::from_mins(1);

pub(super) const CARD_DECLINED: Reason = Reason::new("card-declined", "The card was declined.");
const INSUFFICIENT_FUNDS: Reason =
    Reason::new("insufficient-funds", "The card has insufficient funds.");
const CARD_EXPIRED: Reason = Reason::new("card-expired", "The card has expired.");
pub(super) const METHOD_UNKNOWN: Reason =
    Reason::new("payment-method-unknown", "There is no such payment method.");
/// What PostgreSQL cannot store as text (NUL), what a lone surrogate becomes in UTF-8, and what a
/// terminal would obey.
const ODD_TEXT: Reason = Reason::new(
    "card-declined",
    "Do not\u{0} honour\u{fffd}\r\n\u{1b}[31m\u{85}\u{202e}\u{7f}",
);

/// What the `send`th send (from 1) of an undecided gateway key does.
pub(super) fn plan(token: &str, send: u32) -> Plan {
    let approve = Plan::prompt(Deed::Approve);
    if let Some(refused) = token.strip_prefix("pm_error_before_charge_") {
        return match number(refused) {
            Some(refused) if u64::from(send) <= refused => Plan::prompt(Deed::Refuse),
            Some(_) => approve,
            None => Plan::prompt(Deed::Decline(METHOD_UNKNOWN)),
        };
    }
    match first_send(token) {
        Some(plan) if send == 1 => plan,
        Some(_) => approve,
        None => Plan::prompt(every_send(token)),
    }
}

/// The methods that misbehave once and then approve.
fn first_send(token: &str) -> Option<Plan> {
    let approve = Plan::prompt(Deed::Approve);
    let plan = match token {
        "pm_timeout_before_charge" => Plan {
            before: Pause::Forever,
            ..approve
        },
        "pm_timeout_after_charge" => Plan {
            after: Pause::Forever,
            ..approve
        },
        "pm_error_after_charge" => Plan {
            reply: Reply::ServerError,
            ..approve
        },
        _ => {
            if let Some(text) = token.strip_prefix("pm_slow_after_charge_") {
                Plan {
                    after: Pause::For(delay(text)?),
                    ..approve
                }
            } else {
                let text = token.strip_prefix("pm_slow_")?;
                Plan {
                    before: Pause::For(delay(text)?),
                    ..approve
                }
            }
        }
    };
    Some(plan)
}

/// The methods that do the same on every send.
fn every_send(token: &str) -> Deed {
    match token {
        "pm_card_visa" | "pm_card_mastercard" => Deed::Approve,
        "pm_card_declined" => Deed::Decline(CARD_DECLINED),
        "pm_card_insufficient_funds" => Deed::Decline(INSUFFICIENT_FUNDS),
        "pm_card_expired" => Deed::Decline(CARD_EXPIRED),
        "pm_card_declined_odd_text" => Deed::Decline(ODD_TEXT),
        "pm_error_before_charge" => Deed::Refuse,
        "pm_unknown" => Deed::Break,
        "pm_pending_then_succeeds" => Deed::Pend(Ending::Succeeds),
        "pm_pending_then_fails" => Deed::Pend(Ending::Fails),
        _ => Deed::Decline(METHOD_UNKNOWN),
    }
}

fn delay(text: &str) -> Option<Duration> {
    let delay = match text.strip_suffix("ms") {
        Some(text) => Duration::from_millis(number(text)?),
        None => Duration::from_secs(number(text.strip_suffix('s')?)?),
    };
    (delay <= DELAY_MAX).then_some(delay)
}

/// Digits only: `parse` would also take a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_method_is_known() {
        for (pattern, _) in METHODS {
            let token = pattern.replace("<time>", "5ms").replace("<n>", "2");

            assert_ne!(
                plan(&token, 1).deed,
                Deed::Decline(METHOD_UNKNOWN),
                "{token} is listed and must be known"
            );
        }
    }

    #[test]
    fn any_other_token_is_declined() {
        for token in [
            "",
            "pm_card_VISA",
            "pm_slow_",
            "pm_slow_5",
            "pm_slow_ms",
            "pm_slow_-1s",
            "pm_slow_+1s",
            "pm_slow_61s",
            "pm_slow_60001ms",
            "pm_slow_99999999999999999999s",
            "pm_slow_after_charge_61s",
            "pm_error_before_charge_",
            "pm_error_before_charge_x",
        ] {
            let unknown = Plan::prompt(Deed::Decline(METHOD_UNKNOWN));

            assert_eq!(plan(token, 1), unknown, "{token:?} must be declined");
            assert_eq!(plan(token, 2), unknown, "{token:?} must stay declined");
        }
    }

    #[test]
    fn a_delay_is_part_of_the_first_send_only() {
        let minute = Pause::For(DELAY_MAX);

        assert_eq!(plan("pm_slow_60s", 1).before, minute);
        assert_eq!(plan("pm_slow_60000ms", 1).before, minute);
        assert_eq!(plan("pm_slow_after_charge_60s", 1).before, Pause::None);
        assert_eq!(plan("pm_slow_after_charge_60s", 1).after, minute);
        for token in [
            "pm_slow_2s",
            "pm_slow_after_charge_2s",
            "pm_timeout_before_charge",
            "pm_timeout_after_charge",
            "pm_error_after_charge",
        ] {
            let prompt = Plan::prompt(Deed::Approve);

            assert_ne!(plan(token, 1), prompt, "{token} must misbehave once");
            assert_eq!(plan(token, 2), prompt, "{token} must misbehave only once");
        }
    }
}
