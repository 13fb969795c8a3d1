//! What breaks below HTTP, and what the stripe gateway concludes from it.

use std::time::Duration;

use oncepay::gateways::{Gateway as _, stripe::Stripe};
use secrecy::SecretString;
use tokio::{io::AsyncWriteExt as _, net::TcpListener};

use crate::support::{
    says::read_request,
    stripe::{PATIENCE, authorize, told},
};

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

#[tokio::test]
async fn a_kept_connection_that_breaks_is_unknown_and_nothing_is_sent_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let stripe = stripe_at(&base, PATIENCE);
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        let answer = b"HTTP/1.1 500 x\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        read_request(&mut stream).await.unwrap();
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
        read_request(&mut stream).await.unwrap()
    };

    let (_outcome, seen) = tokio::join!(stripe.authorize(&request), serve);

    let seen = seen.to_ascii_lowercase();
    for line in [
        "post /v1/payment_intents http/1.1\r\n",
        "\r\nauthorization: bearer sk_test_x\r\n",
        "\r\nidempotency-key: k\r\n",
        "\r\nstripe-version: 2024-06-20\r\n",
        "\r\ncontent-type: application/x-www-form-urlencoded\r\n",
    ] {
        assert!(seen.contains(line), "{line} is missing in\n{seen}");
    }
}

/// A hidden retry would have connected by the time that the call was answered.
async fn assert_nobody_comes(listener: &TcpListener) {
    let accepted = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
    assert!(accepted.is_err(), "the request must not be sent again");
}
