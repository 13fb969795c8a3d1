//! Answers that no gateway should give, over a socket: what the stripe gateway concludes from them. It
//! is never a success, never a panic, and never a reason to send again.

use std::time::Duration;

use oncepay::gateways::{Call, Finding, Gateway as _, GatewayReference, Outcome, stripe::Stripe};
use secrecy::SecretString;
use serde_json::json;
use tokio::{io::AsyncWriteExt as _, net::TcpListener};

use crate::support::{
    nonsense::{broken_http, contradicting, intent, ok, raw, unreadable},
    says::{Says, read_request},
    stripe::{PATIENCE, authorize, find, find_at, told},
};

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
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let stripe = Stripe::new(&base, &SecretString::from("sk_test_x"), short).unwrap();
    let request = authorize("K");
    let trickle = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        loop {
            let hints = raw("HTTP/1.1 103 Early Hints\nlink: </>", "");
            let written = stream.write_all(&hints).await;
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
    for (name, answer) in unreadable().into_iter().chain(broken_http()) {
        let says = Says::start(move |_| answer.clone()).await;
        let stripe = stripe(&says);
        let payment = GatewayReference("pi_1".to_owned());
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
    let payment = GatewayReference("pi_1".to_owned());

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
