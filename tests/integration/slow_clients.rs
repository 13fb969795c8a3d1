//! Clients that send slowly, or nothing, or too many at once, hold nothing up for long (I19).

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::support::{
    app::TestApp,
    client::payment,
    raw::{Raw, payment_head},
    wait::wait_until,
};

/// Above every limit that these tests set, and far below the defaults.
const SOON: Duration = Duration::from_secs(5);

async fn impatient() -> TestApp {
    TestApp::builder()
        .settings(|settings| {
            "500ms".clone_into(&mut settings.http.header_read_timeout);
            "500ms".clone_into(&mut settings.http.body_read_timeout);
        })
        .start()
        .await
}

/// Sends a byte again and again until the other side closes; says after how long it did.
async fn trickle(raw: &mut Raw, bytes: &[u8]) -> Duration {
    let started = Instant::now();
    for byte in bytes {
        if raw.closes_within(Duration::from_millis(50)).await || !raw.try_send([*byte]).await {
            break;
        }
        assert!(started.elapsed() < SOON, "the connection must be closed");
    }
    started.elapsed()
}

/// A silent connection costs a place; the default limit for connections is not infinite.
#[tokio::test]
async fn a_silent_connection_is_closed_within_the_header_limit() {
    let app = impatient().await;
    let mut raw = Raw::connect(app.client.base()).await;

    assert!(raw.closes_within(SOON).await);
}

#[tokio::test]
async fn headers_that_trickle_in_are_cut_off() {
    let app = impatient().await;
    let mut raw = Raw::connect(app.client.base()).await;

    raw.send("POST /v1/payments HTTP/1.1\r\nhost: localhost\r\nx-filler: ")
        .await;
    trickle(&mut raw, &[b'x'; 200]).await;

    assert!(raw.closes_within(SOON).await);
}

/// The first bytes could still become HTTP/2, so that no version's own limit applies yet.
#[tokio::test]
async fn a_preface_of_http2_that_trickles_in_is_cut_off() {
    let app = impatient().await;
    let mut raw = Raw::connect(app.client.base()).await;

    trickle(&mut raw, b"PRI * HTTP/2.0\r\n\r\nSM\r\n").await;

    assert!(raw.closes_within(Duration::from_millis(100)).await);
}

/// A connection that was used and is idle now is no different.
#[tokio::test]
async fn an_idle_connection_is_closed_after_its_answer() {
    let app = impatient().await;
    let mut raw = Raw::connect(app.client.base()).await;

    let reply = raw
        .send("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .reply()
        .await;

    reply.assert_status(200);
    assert!(raw.closes_within(SOON).await);
}

/// B54: half a body is no request.
#[tokio::test]
async fn a_body_that_stops_half_way_gets_408_and_leaves_no_record() {
    let app = impatient().await;
    let body = payment().to_string();
    let head = payment_head(app.client.secret(), "idempotency-key: K\r\n", body.len());
    let (half, _rest) = body.split_at(body.len() / 2);
    let mut raw = Raw::connect(app.client.base()).await;

    let reply = raw.send(head).await.send(half).await.reply().await;

    reply.assert_problem(408, "request-timeout");
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert!(raw.closes_within(SOON).await);
    assert!(app.database.untouched().await);
}

/// The limit is for the whole body: a byte now and then does not stretch it.
#[tokio::test]
async fn a_body_that_trickles_in_gets_408() {
    let app = impatient().await;
    let head = payment_head(app.client.secret(), "idempotency-key: K\r\n", 1000);
    let mut raw = Raw::connect(app.client.base()).await;

    raw.send(head).await;
    let started = Instant::now();
    let reply = loop {
        raw.try_send(" ").await;
        tokio::select! {
            reply = raw.reply() => break reply,
            () = sleep(Duration::from_millis(50)) => {}
        }
        assert!(started.elapsed() < SOON, "the body must be given up");
    };

    reply.assert_problem(408, "request-timeout");
    assert!(app.database.untouched().await);
}

/// A client that goes away half-way through its body has sent nothing.
#[tokio::test]
async fn a_client_that_goes_away_in_its_body_leaves_no_record() {
    let app = impatient().await;
    let body = payment().to_string();
    let head = payment_head(app.client.secret(), "idempotency-key: K\r\n", body.len());
    let (half, _rest) = body.split_at(body.len() - 1);
    let mut raw = Raw::connect(app.client.base()).await;

    raw.send(head).await.send(half).await;
    raw.end().await;
    let reply = raw.try_reply().await;

    if let Some(reply) = reply {
        reply.assert_status(400);
    }
    assert!(app.database.untouched().await);
}

/// A client that goes away after its request does not cancel it: the retry gets the answer.
#[tokio::test]
async fn a_client_that_goes_away_after_its_request_is_still_served_once() {
    let app = TestApp::start().await;
    let mut body = payment();
    body["payment_method"] = "pm_slow_300ms".into();
    let text = body.to_string();
    let head = payment_head(app.client.secret(), "idempotency-key: K\r\n", text.len());
    let mut raw = Raw::connect(app.client.base()).await;

    raw.send(head).await.send(text).await;
    let claimed = "SELECT count(*) FROM idempotency_keys";
    wait_until(SOON, async || app.database.count(claimed).await == 1).await;
    drop(raw);
    let retry = app.client.pay_preferring("K", &body, "wait=10").await;

    retry.assert_status(201);
    assert!(retry.replayed());
    assert_eq!(app.effects(), 1);
}

/// I19: beyond the limit connections wait in the kernel's queue, and come in when a place is free.
#[tokio::test]
async fn connections_beyond_the_limit_wait_until_a_place_is_free() {
    let app = TestApp::builder()
        .settings(|settings| "2".clone_into(&mut settings.http.connections_max))
        .start()
        .await;
    let livez = "GET /livez HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut one = Raw::connect(app.client.base()).await;
    let mut two = Raw::connect(app.client.base()).await;
    one.send(livez).await.reply().await.assert_status(200);
    two.send(livez).await.reply().await.assert_status(200);
    let mut three = Raw::connect(app.client.base()).await;
    three.send(livez).await;

    let waits = !three.closes_within(Duration::from_millis(300)).await && three.is_silent();
    drop(one);
    let served = three.reply().await;

    assert!(waits, "there is no place for a third");
    served.assert_status(200);
}
