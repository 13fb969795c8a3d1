//! The stripe gateway against the sandbox server: what each fault looks like from here, what it
//! really did, and what a second send or a look-up makes of it.

use std::time::Duration;

use chrono::TimeDelta;
use oncepay::{
    gateways::{
        Authorize, Call, Cancel, Capture, Find, Finding, Gateway as _, GatewayKey,
        GatewayReference, NotExecuted, Outcome, Refund, Unknown, stripe::Stripe,
    },
    payments::{currency::Currency, model::CaptureMethod, money::Money},
};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::support::sandbox::{SandboxHere, fault, fault_status};

/// For calls that must be answered; only a test that fails waits as long.
const PATIENCE: Duration = Duration::from_secs(30);

/// For calls that are never answered.
const SHORT: Duration = Duration::from_millis(500);

fn money(amount_minor: i64, code: &str) -> Money {
    let currency = Currency::from_code(code).unwrap();
    Money {
        amount_minor,
        currency,
    }
}

fn authorize(key: &str) -> Authorize {
    Authorize {
        gateway_key: GatewayKey::new(key),
        money: money(1999, "EUR"),
        payment_method: "pm_card_visa".to_owned(),
        capture_method: CaptureMethod::Automatic,
        description: None,
    }
}

fn authorize_with(key: &str, payment_method: &str) -> Authorize {
    Authorize {
        payment_method: payment_method.to_owned(),
        ..authorize(key)
    }
}

fn hold(key: &str) -> Authorize {
    Authorize {
        capture_method: CaptureMethod::Manual,
        ..authorize(key)
    }
}

async fn find(stripe: &Stripe, call: Call, key: &str) -> Finding {
    let gateway_key = GatewayKey::new(key);
    stripe.find(&Find { call, gateway_key }).await
}

#[track_caller]
fn reference(outcome: &Outcome) -> GatewayReference {
    let Outcome::Approved { reference } = outcome else {
        panic!("it must be approved, but is {outcome:?}");
    };
    reference.clone()
}

/// The kind of an outcome, and its reason or code.
fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Approved { .. } => "approved".to_owned(),
        Outcome::Declined(decline) => format!("declined {}", decline.code),
        Outcome::Pending { .. } => "pending".to_owned(),
        Outcome::NotExecuted(NotExecuted::Refused) => "not-executed refused".to_owned(),
        Outcome::NotExecuted(NotExecuted::Unreachable) => "not-executed unreachable".to_owned(),
        Outcome::Unknown(reason) => format!("unknown {}", reason.as_str()),
    }
}

/// A fault; the first send and its effects; the second send of the key and the effects by then.
type Row = (Value, &'static str, usize, &'static str, usize);

fn faults() -> Vec<Row> {
    vec![
        (fault("refuse"), "not-executed refused", 0, "approved", 1),
        (
            json!({"fault": "delay", "delay_ms": 20}),
            "approved",
            1,
            "approved",
            1,
        ),
        // A 500 is kept with the key, and nothing will ever come of that key again.
        (
            fault("status_before"),
            "unknown gateway-error",
            0,
            "unknown gateway-error",
            0,
        ),
        (
            fault_status("status_before", 503),
            "unknown gateway-error",
            0,
            "approved",
            1,
        ),
        (
            fault_status("status_before", 429),
            "not-executed refused",
            0,
            "approved",
            1,
        ),
        (
            fault_status("status_before", 401),
            "not-executed refused",
            0,
            "approved",
            1,
        ),
        (
            fault_status("status_before", 402),
            "declined card-declined",
            0,
            "declined card-declined",
            0,
        ),
        (
            fault_status("status_before", 404),
            "declined gateway-rejected",
            0,
            "approved",
            1,
        ),
        (
            fault_status("status_before", 409),
            "unknown in-use",
            0,
            "approved",
            1,
        ),
        (
            fault("status_after"),
            "unknown gateway-error",
            1,
            "unknown gateway-error",
            1,
        ),
        (
            fault_status("status_after", 502),
            "unknown gateway-error",
            1,
            "approved",
            1,
        ),
        (
            fault("drop_after_effect"),
            "unknown lost-reply",
            1,
            "approved",
            1,
        ),
        (fault("hang_before"), "unknown timeout", 0, "approved", 1),
        (
            fault("hang_after_effect"),
            "unknown timeout",
            1,
            "approved",
            1,
        ),
        (
            fault("wrong_amount"),
            "unknown amount-differs",
            1,
            "unknown amount-differs",
            1,
        ),
    ]
}

#[tokio::test]
async fn each_fault_has_its_outcome_and_one_effect_at_most() {
    for (fault, first, effects, second, effects_then) in faults() {
        let sandbox = SandboxHere::start().await;
        let hangs = first == "unknown timeout";
        let first_timeout = if hangs { SHORT } else { PATIENCE };
        sandbox.control.fault(fault.clone()).await;

        let outcome = sandbox
            .control
            .stripe(first_timeout)
            .authorize(&authorize("K"))
            .await;

        assert_eq!(told(&outcome), first, "{fault}");
        assert_eq!(sandbox.control.effects(), effects, "{fault}");
        let stripe = sandbox.control.stripe(PATIENCE);
        let outcome = settled(&stripe, &authorize("K")).await;
        assert_eq!(told(&outcome), second, "{fault}, second send");
        assert_eq!(sandbox.control.effects(), effects_then, "{fault}");
    }
}

/// Sends until the gateway has noticed that the caller of an earlier send is gone.
async fn settled(stripe: &Stripe, request: &Authorize) -> Outcome {
    let sends = async {
        loop {
            let outcome = stripe.authorize(request).await;
            if outcome != Outcome::Unknown(Unknown::InUse) {
                return outcome;
            }
        }
    };
    tokio::time::timeout(PATIENCE, sends).await.unwrap()
}

#[tokio::test]
async fn what_was_done_is_found_whatever_was_answered() {
    for name in ["status_after", "drop_after_effect", "hang_after_effect"] {
        let sandbox = SandboxHere::start().await;
        sandbox.control.fault(fault(name)).await;
        let impatient = sandbox.control.stripe(SHORT);
        let sent = impatient.authorize(&authorize("K")).await;
        assert!(matches!(sent, Outcome::Unknown(_)), "{name}: {sent:?}");

        let finding = find(&sandbox.control.stripe(PATIENCE), Call::Authorize, "K").await;

        let Finding::Known(outcome) = finding else {
            panic!("{name}: it must be found");
        };
        assert_eq!(told(&outcome), "approved", "{name}");
    }
}

#[tokio::test]
async fn a_wrong_amount_is_found_as_wrong_and_not_as_success() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    sandbox.control.fault(fault("wrong_amount")).await;
    stripe.authorize(&authorize("K")).await;

    let finding = find(&stripe, Call::Authorize, "K").await;

    let differs = Outcome::Unknown(Unknown::AmountDiffers);
    assert_eq!(finding, Finding::Known(differs));
}

#[tokio::test]
async fn a_look_up_that_fails_has_not_found_that_there_is_nothing() {
    let sandbox = SandboxHere::start().await;
    for asked in [
        json!({"fault": "status_before", "call": "find", "status": 429}),
        json!({"fault": "status_before", "call": "find", "status": 404}),
        json!({"fault": "status_after", "call": "find"}),
        json!({"fault": "drop_after_effect", "call": "find"}),
        json!({"fault": "hang_before", "call": "find"}),
    ] {
        sandbox.control.fault(asked.clone()).await;

        let finding = find(&sandbox.control.stripe(SHORT), Call::Authorize, "K").await;

        assert!(
            matches!(finding, Finding::Known(Outcome::Unknown(_))),
            "{asked}: {finding:?}"
        );
    }
}

#[tokio::test]
async fn the_payment_method_decides() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    for (method, expected) in [
        ("pm_card_declined", "declined card-declined"),
        ("pm_card_insufficient_funds", "declined insufficient-funds"),
        ("pm_card_expired", "declined card-expired"),
        ("pm_card_declined_odd_text", "declined card-declined"),
        ("pm_no_such", "declined gateway-rejected"),
        ("pm_error_before_charge", "not-executed refused"),
        ("pm_error_after_charge", "unknown gateway-error"),
        ("pm_unknown", "unknown gateway-error"),
        ("pm_pending_then_fails", "pending"),
        ("pm_slow_5ms", "approved"),
    ] {
        let outcome = stripe.authorize(&authorize_with(method, method)).await;

        assert_eq!(told(&outcome), expected, "{method}");
    }
    assert_eq!(sandbox.control.effects(), 2, "slow, and error after charge");
}

#[tokio::test]
async fn a_declined_payment_stays_declined_and_is_found_so() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    let request = authorize_with("K", "pm_card_declined");

    let first = stripe.authorize(&request).await;
    let second = stripe.authorize(&request).await;

    assert_eq!(told(&first), "declined card-declined");
    assert_eq!(first, second);
    assert_eq!(
        find(&stripe, Call::Authorize, "K").await,
        Finding::Known(first)
    );
}

#[tokio::test]
async fn a_pending_payment_is_decided_by_a_later_look_with_one_effect() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    let request = authorize_with("K", "pm_pending_then_succeeds");
    let accepted = stripe.authorize(&request).await;
    assert_eq!(told(&accepted), "pending");
    assert_eq!(sandbox.control.effects(), 0);

    sandbox.clock.advance(TimeDelta::seconds(2));
    let finding = find(&stripe, Call::Authorize, "K").await;
    find(&stripe, Call::Authorize, "K").await;

    let Finding::Known(outcome) = finding else {
        panic!("it must be found");
    };
    assert_eq!(told(&outcome), "approved");
    assert_eq!(sandbox.control.effects(), 1);
}

#[tokio::test]
async fn a_search_that_lags_finds_nothing_and_then_the_truth() {
    let sandbox = SandboxHere::with_lag(Duration::from_mins(1)).await;
    let stripe = sandbox.control.stripe(PATIENCE);
    let outcome = stripe.authorize(&authorize("K")).await;

    let at_once = find(&stripe, Call::Authorize, "K").await;
    sandbox.clock.advance(TimeDelta::minutes(1));
    let later = find(&stripe, Call::Authorize, "K").await;

    assert_eq!(at_once, Finding::Absent, "which proves nothing");
    assert_eq!(later, Finding::Known(outcome));
}

#[tokio::test]
async fn a_key_is_forgotten_after_its_window_and_charges_again() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    stripe.authorize(&authorize("K")).await;
    sandbox
        .clock
        .advance(TimeDelta::hours(24) - TimeDelta::seconds(1));
    stripe.authorize(&authorize("K")).await;
    assert_eq!(sandbox.control.effects(), 1, "it is remembered to the end");

    sandbox.clock.advance(TimeDelta::seconds(1));
    stripe.authorize(&authorize("K")).await;

    assert_eq!(sandbox.control.effects(), 2, "why nothing is sent so late");
    let finding = find(&stripe, Call::Authorize, "K").await;
    let differs = Outcome::Unknown(Unknown::AmountDiffers);
    assert_eq!(finding, Finding::Known(differs), "two are for a person");
}

#[tokio::test]
async fn a_key_with_other_parameters_is_for_a_person() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    stripe.authorize(&authorize("K")).await;
    let mut other = authorize("K");
    other.description = Some("another".to_owned());

    let outcome = stripe.authorize(&other).await;

    assert_eq!(told(&outcome), "unknown parameters-differ");
    assert_eq!(sandbox.control.effects(), 1);
}

#[tokio::test]
async fn a_key_under_way_is_in_use_and_its_effect_is_one() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    sandbox.control.fault(fault("hang_before")).await;
    let request = authorize("K");
    let hanging = stripe.authorize(&request);
    tokio::pin!(hanging);
    let arrived = async {
        while sandbox.control.lines().is_empty() {
            tokio::task::yield_now().await;
        }
        stripe.authorize(&request).await
    };

    let second = tokio::select! {
        first = &mut hanging => panic!("it must hang, but said {first:?}"),
        second = arrived => second,
    };

    assert_eq!(told(&second), "unknown in-use");
    assert_eq!(sandbox.control.effects(), 0);
}

#[tokio::test]
async fn a_hold_is_captured_in_part_refunded_in_parts_and_never_beyond() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    let authorization = reference(&stripe.authorize(&hold("hold")).await);
    let capture = Capture {
        gateway_key: GatewayKey::new("capture"),
        authorization: authorization.clone(),
        money: money(1500, "EUR"),
    };
    let refund = |key: &str, amount| Refund {
        gateway_key: GatewayKey::new(key),
        charge: authorization.clone(),
        money: money(amount, "EUR"),
    };

    let captured = stripe.capture(&capture).await;
    let first = stripe.refund(&refund("first", 1000)).await;
    let beyond = stripe.refund(&refund("beyond", 501)).await;
    let rest = stripe.refund(&refund("rest", 500)).await;

    assert_eq!(reference(&captured), authorization);
    assert_eq!(told(&first), "approved");
    assert_eq!(told(&beyond), "declined gateway-rejected");
    assert_eq!(told(&rest), "approved");
    assert_eq!(sandbox.control.effects(), 4);
    assert_eq!(stripe.capture(&capture).await, captured, "a replay");
    assert_eq!(
        find(&stripe, Call::Capture, "capture").await,
        Finding::Known(captured)
    );
    assert_eq!(
        find(&stripe, Call::Refund, "rest").await,
        Finding::Known(rest)
    );
    assert_eq!(find(&stripe, Call::Refund, "beyond").await, Finding::Absent);
}

#[tokio::test]
async fn a_canceled_hold_stays_canceled() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    let authorization = reference(&stripe.authorize(&hold("hold")).await);
    let cancel = |key: &str| Cancel {
        gateway_key: GatewayKey::new(key),
        authorization: authorization.clone(),
    };
    let capture = Capture {
        gateway_key: GatewayKey::new("late"),
        authorization: authorization.clone(),
        money: money(1999, "EUR"),
    };

    let canceled = stripe.cancel(&cancel("cancel")).await;
    let late = stripe.capture(&capture).await;

    assert_eq!(told(&canceled), "approved");
    assert_eq!(told(&late), "declined gateway-rejected");
    // As after the key was forgotten: what was asked for is so.
    assert_eq!(told(&stripe.cancel(&cancel("again")).await), "approved");
    assert_eq!(sandbox.control.effects(), 2);
}

#[tokio::test]
async fn the_journal_has_the_amount_that_was_asked_for_in_every_currency() {
    let sandbox = SandboxHere::start().await;
    let stripe = sandbox.control.stripe(PATIENCE);
    for (amount, code) in [(500, "JPY"), (12340, "KWD"), (500, "ISK"), (50_000, "MGA")] {
        let mut request = authorize(code);
        request.money = money(amount, code);

        reference(&stripe.authorize(&request).await);

        let effects = sandbox.control.lines();
        let effect = effects
            .iter()
            .find(|line| line.gateway_key == code && line.object_id.is_some())
            .unwrap();
        assert_eq!(effect.amount, Some(amount), "{code}");
        assert_eq!(effect.currency.as_deref(), Some(code));
    }
}

#[tokio::test]
async fn nobody_there_is_not_executed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);

    let outcome = stripe_at(&base, PATIENCE).authorize(&authorize("K")).await;

    assert_eq!(told(&outcome), "not-executed unreachable");
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_has_got_no_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("https://{}", listener.local_addr().unwrap());
    let stripe = stripe_at(&base, PATIENCE);
    let plain = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
    };

    let request = authorize("K");
    let (outcome, ()) = tokio::join!(stripe.authorize(&request), plain);

    assert_eq!(told(&outcome), "not-executed unreachable");
}

fn stripe_at(base: &str, timeout: Duration) -> Stripe {
    Stripe::new(base, &SecretString::from("sk_test_x"), timeout).unwrap()
}

/// What a broken server says, and what it means.
fn broken() -> Vec<(Vec<u8>, &'static str)> {
    let head = |status: &str, length: usize| {
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n").into_bytes()
    };
    let with = |mut head: Vec<u8>, rest: &[u8]| {
        head.extend_from_slice(rest);
        head
    };
    let huge = 2 * 1024 * 1024;
    vec![
        (Vec::new(), "unknown lost-reply"),
        (b"SSH-2.0-x\r\n".to_vec(), "unknown lost-reply"),
        (b"HTTP/1.1 200".to_vec(), "unknown lost-reply"),
        (
            with(head("200 OK", 100), b"\r\n{\"id\""),
            "unknown lost-reply",
        ),
        (with(head("200 OK", 0), b"\r\n"), "unknown gateway-error"),
        (
            with(
                head("200 OK", huge),
                &[b"\r\n", vec![b' '; huge].as_slice()].concat(),
            ),
            "unknown gateway-error",
        ),
        (
            with(head("307 Moved", 0), b"location: /v1/refunds\r\n\r\n"),
            "unknown gateway-error",
        ),
        (with(head("204 None", 0), b"\r\n"), "unknown gateway-error"),
    ]
}

#[tokio::test]
async fn a_broken_answer_is_unknown_and_nothing_is_sent_again() {
    for (answer, expected) in broken() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let stripe = stripe_at(&base, PATIENCE);
        let request = authorize("K");
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_request(&mut stream).await;
            // The client may hang up in the middle of a long answer.
            drop(stream.write_all(&answer).await);
        };

        let (outcome, ()) = tokio::join!(stripe.authorize(&request), serve);

        assert_eq!(told(&outcome), expected, "{:?}", head_of(&answer));
        assert_nobody_comes(&listener).await;
    }
}

#[tokio::test]
async fn a_kept_connection_that_breaks_is_unknown_and_nothing_is_sent_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let stripe = stripe_at(&base, PATIENCE);
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        let answer = b"HTTP/1.1 500 x\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        read_request(&mut stream).await;
    };
    let send = async {
        let first = stripe.authorize(&authorize("K")).await;
        (first, stripe.authorize(&authorize("K")).await)
    };

    let ((first, second), ()) = tokio::join!(send, serve);

    assert_eq!(told(&first), "unknown gateway-error");
    assert_eq!(told(&second), "unknown lost-reply");
    assert_nobody_comes(&listener).await;
}

#[tokio::test]
async fn the_request_says_who_asks_under_which_key_and_version() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let stripe = stripe_at(&base, PATIENCE);
    let request = authorize("K");
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await
    };

    let (_outcome, seen) = tokio::join!(stripe.authorize(&request), serve);

    let seen = seen.to_ascii_lowercase();
    for line in [
        "post /v1/payment_intents http/1.1\r\n",
        "authorization: bearer sk_test_x\r\n",
        "idempotency-key: k\r\n",
        "stripe-version: 2024-06-20\r\n",
        "content-type: application/x-www-form-urlencoded\r\n",
    ] {
        assert!(seen.contains(line), "{line} is missing in\n{seen}");
    }
}

/// Reads a request to its end.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    loop {
        let mut part = [0; 4096];
        let read = stream.read(&mut part).await.unwrap();
        assert!(read > 0, "a whole request must come: {text}");
        text.push_str(std::str::from_utf8(&part[..read]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        if body.len() >= length {
            return text;
        }
    }
}

/// A hidden retry would have connected by the time that the call was answered.
async fn assert_nobody_comes(listener: &TcpListener) {
    let accepted = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
    assert!(accepted.is_err(), "the request must not be sent again");
}

fn head_of(answer: &[u8]) -> String {
    String::from_utf8_lossy(&answer[..answer.len().min(40)]).into_owned()
}
