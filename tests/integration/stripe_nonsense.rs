//! Answers that no gateway should give, over a socket: what the stripe gateway concludes from them. It
//! is never a success, never a panic, and never a reason to send again.

use std::time::Duration;

use oncepay::gateways::{Call, Finding, Gateway as _, Outcome, stripe::Stripe};
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::support::{
    says::{Says, json_answer},
    stripe::{PATIENCE, authorize, find, find_at, told},
};

/// Longer than any answer that is read.
const HUGE: usize = 2 * 1024 * 1024;

/// What the answer to a payment under `K` would be, with these members changed.
fn intent(changes: Value) -> String {
    let mut intent = json!({
        "id": "pi_1",
        "object": "payment_intent",
        "status": "succeeded",
        "amount": 1999,
        "amount_received": 1999,
        "currency": "eur",
        "capture_method": "automatic",
        "metadata": {
            "oncepay_gateway_key": "K", "oncepay_amount": "1999", "oncepay_currency": "eur",
        },
        "last_payment_error": null,
    });
    let Value::Object(changes) = changes else {
        panic!("changes are an object");
    };
    intent.as_object_mut().unwrap().extend(changes);
    intent.to_string()
}

fn ok(changes: Value) -> Vec<u8> {
    json_answer(200, &intent(changes))
}

/// A head of these lines, and whatever follows it.
fn raw(head: &str, rest: impl AsRef<[u8]>) -> Vec<u8> {
    let head = head.replace('\n', "\r\n");
    [format!("{head}\r\n\r\n").as_bytes(), rest.as_ref()].concat()
}

/// The body of a success, compressed, which was not asked for.
fn gzip() -> Vec<u8> {
    let body =
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\xae\x05\x00\x43\xbf\xa6\xa3\x02\x00\x00\x00";
    let length = body.len();
    raw(
        &format!("HTTP/1.1 200 OK\ncontent-encoding: gzip\ncontent-length: {length}"),
        body,
    )
}

/// What is no HTTP, or breaks off.
fn broken_http() -> Vec<(&'static str, Vec<u8>)> {
    let body = intent(json!({}));
    let length = body.len();
    let endless = format!("HTTP/1.1 200 OK\nx: {}", "y".repeat(HUGE));
    vec![
        ("nothing", Vec::new()),
        ("another protocol", b"SSH-2.0-x\r\n".to_vec()),
        ("HTTP/2", b"\x00\x00\x12\x04\x00\x00\x00\x00\x00".to_vec()),
        ("HTTP/0.9", body.clone().into_bytes()),
        ("binary", vec![0xff; 5000]),
        ("half a status line", b"HTTP/1.1 200".to_vec()),
        ("half a head", b"HTTP/1.1 200 OK\r\ncontent-le".to_vec()),
        ("a status that is none", raw("HTTP/1.1 2000 OK", &body)),
        ("a head without end", endless.into_bytes()),
        (
            "half a body",
            raw(
                &format!("HTTP/1.1 200 OK\ncontent-length: {length}"),
                &body.as_bytes()[..length / 2],
            ),
        ),
        (
            "a body one byte short",
            raw(
                &format!("HTTP/1.1 200 OK\ncontent-length: {}", length + 1),
                &body,
            ),
        ),
        (
            "a negative length",
            raw("HTTP/1.1 200 OK\ncontent-length: -1", &body),
        ),
        (
            "a length that is none",
            raw("HTTP/1.1 200 OK\ncontent-length: all", &body),
        ),
        (
            "two lengths",
            raw(
                &format!("HTTP/1.1 200 OK\ncontent-length: {length}\ncontent-length: 2"),
                &body,
            ),
        ),
        (
            "a chunk that is cut",
            raw("HTTP/1.1 200 OK\ntransfer-encoding: chunked", "fff\r\n{"),
        ),
        (
            "a chunk of no size",
            raw(
                "HTTP/1.1 200 OK\ntransfer-encoding: chunked",
                "xyz\r\n{}\r\n",
            ),
        ),
        ("a promise only", raw("HTTP/1.1 100 Continue", "")),
        ("hints only", raw("HTTP/1.1 103 Early Hints\nlink: </>", "")),
    ]
}

/// Whole answers that cannot be read.
fn unreadable() -> Vec<(&'static str, Vec<u8>)> {
    let body = intent(json!({}));
    let length = body.len();
    vec![
        ("no body", json_answer(200, "")),
        ("no content", raw("HTTP/1.1 204 None", "")),
        (
            "a switch of protocols",
            raw(
                "HTTP/1.1 101 Switching\nupgrade: x\nconnection: upgrade",
                "",
            ),
        ),
        ("HTML", json_answer(200, "<html>It works!</html>")),
        ("null", json_answer(200, "null")),
        ("a list", json_answer(200, "[]")),
        ("a text", json_answer(200, "\"succeeded\"")),
        (
            "half a document",
            json_answer(200, body.split_at(length / 2).0),
        ),
        (
            "a length that cuts the document",
            raw(
                &format!("HTTP/1.1 200 OK\ncontent-length: {}", length - 1),
                &body,
            ),
        ),
        ("two documents", json_answer(200, &body.repeat(2))),
        ("a deep list", json_answer(200, &"[".repeat(HUGE / 4))),
        (
            "a deep document",
            json_answer(200, &"{\"last_payment_error\":".repeat(20_000)),
        ),
        ("a huge body", json_answer(200, &" ".repeat(HUGE))),
        ("a success and then too much", {
            json_answer(200, &format!("{body}{}", " ".repeat(HUGE)))
        }),
        ("gzip", gzip()),
        ("an error", {
            let error = json!({"error": {"type": "card_error", "code": "card_declined"}});
            json_answer(200, &error.to_string())
        }),
        ("no id", ok(json!({"id": null}))),
        ("an empty id", ok(json!({"id": ""}))),
        ("an id that is none", ok(json!({"id": "pi_1/../x"}))),
        ("a refund", ok(json!({"object": "refund"}))),
        ("an amount as text", ok(json!({"amount": "1999"}))),
        ("a fraction", ok(json!({"amount": 1999.5}))),
        ("a status as number", ok(json!({"status": 1}))),
        ("a status that there is not", ok(json!({"status": "sold"}))),
    ]
}

/// Whole answers about something else.
fn contradicting() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    vec![
        (
            "another amount",
            ok(json!({"amount": 199_900})),
            "unknown amount-differs",
        ),
        (
            "another amount taken",
            ok(json!({"amount_received": 1998})),
            "unknown amount-differs",
        ),
        (
            "another currency",
            ok(json!({"currency": "usd"})),
            "unknown amount-differs",
        ),
        (
            "another key",
            ok(json!({"metadata": {"oncepay_gateway_key": "L"}})),
            "unknown parameters-differ",
        ),
        (
            "no key",
            ok(json!({"metadata": {}})),
            "unknown parameters-differ",
        ),
    ]
}

fn stripe(says: &Says) -> Stripe {
    Stripe::new(&says.base, &SecretString::from("sk_test_x"), PATIENCE).unwrap()
}

/// Sends one payment to a server that says `answer`.
async fn sent(name: &str, answer: Vec<u8>) -> String {
    let says = Says::start(move |_| answer.clone()).await;

    let outcome = stripe(&says).authorize(&authorize("K")).await;

    assert_eq!(says.requests(), 1, "{name}: it must not be sent again");
    told(&outcome)
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_a_lost_reply() {
    for (name, answer) in broken_http() {
        assert_eq!(sent(name, answer).await, "unknown lost-reply", "{name}");
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_unknown() {
    for (name, answer) in unreadable() {
        assert_eq!(sent(name, answer).await, "unknown gateway-error", "{name}");
    }
}

#[tokio::test]
async fn an_answer_about_something_else_is_for_a_person() {
    for (name, answer, expected) in contradicting() {
        assert_eq!(sent(name, answer).await, expected, "{name}");
    }
}

/// It would take the request and its secret to somewhere else.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    for status in [300, 301, 302, 303, 307, 308] {
        let elsewhere = Says::start(|_| ok(json!({}))).await;
        let head = format!(
            "HTTP/1.1 {status} Moved\ncontent-length: 0\nlocation: {}/v1/payment_intents",
            elsewhere.base
        );

        let outcome = sent("a redirect", raw(&head, "")).await;

        assert_eq!(outcome, "unknown gateway-error", "{status}");
        assert_eq!(elsewhere.requests(), 0, "{status}");
    }
}

/// The same server with a right answer: what makes the others fail is what is wrong with them.
#[tokio::test]
async fn a_right_answer_is_a_success_also_after_hints_and_in_chunks() {
    let body = intent(json!({}));
    let chunks = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let early = raw("HTTP/1.1 103 Early Hints\nlink: </>", ok(json!({})));
    for (name, answer) in [
        ("plain", ok(json!({}))),
        ("with a member that nobody knows", ok(json!({"x": [[{}]]}))),
        ("until the end", raw("HTTP/1.1 200 OK", &body)),
        (
            "in chunks",
            raw("HTTP/1.1 200 OK\ntransfer-encoding: chunked", chunks),
        ),
        ("after hints", early),
    ] {
        assert_eq!(sent(name, answer).await, "approved", "{name}");
    }
}

/// A server that trickles is one that does not answer in time, whatever it says in between.
#[tokio::test]
async fn an_answer_that_trickles_is_over_with_its_time() {
    let short = Duration::from_millis(300);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let stripe = Stripe::new(&base, &SecretString::from("sk_test_x"), short).unwrap();
    let request = authorize("K");
    let trickle = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        crate::support::says::read_request(&mut stream).await;
        loop {
            let hints = raw("HTTP/1.1 103 Early Hints\nlink: </>", "");
            let written = tokio::io::AsyncWriteExt::write_all(&mut stream, &hints).await;
            if written.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::task::yield_now().await;
        }
    };

    let outcome = tokio::select! {
        outcome = stripe.authorize(&request) => outcome,
        () = trickle => panic!("it has no end"),
    };

    assert_eq!(told(&outcome), "unknown timeout");
}

/// Nothing that was not understood may be taken for *not found*, which allows another send.
#[tokio::test]
async fn a_look_up_that_is_answered_with_nonsense_has_found_nothing_out() {
    let wrapped = unreadable().into_iter().chain(broken_http());
    for (name, answer) in wrapped {
        let says = Says::start(move |_| answer.clone()).await;
        let stripe = stripe(&says);
        let payment = oncepay::gateways::GatewayReference("pi_1".to_owned());
        for call in [Call::Authorize, Call::Capture, Call::Refund] {
            assert_unknown(name, &find(&stripe, call, "K").await);
        }
        for call in [Call::Authorize, Call::Capture, Call::Cancel, Call::Refund] {
            assert_unknown(name, &find_at(&stripe, call, "K", &payment).await);
        }
    }
}

/// The payment that was asked about by its id, and another one came.
#[tokio::test]
async fn a_look_up_by_id_that_shows_another_payment_has_found_nothing_out() {
    let says = Says::start(|_| ok(json!({"id": "pi_2", "status": "canceled"}))).await;
    let payment = oncepay::gateways::GatewayReference("pi_1".to_owned());

    for call in [Call::Authorize, Call::Capture, Call::Cancel] {
        let finding = find_at(&stripe(&says), call, "K", &payment).await;
        assert_unknown("another payment", &finding);
    }
}

#[track_caller]
fn assert_unknown(name: &str, finding: &Finding) {
    assert!(
        matches!(finding, Finding::Known(Outcome::Unknown(_))),
        "{name}: {finding:?}"
    );
}
