//! SIGTERM: what is under way ends, what cannot end is let go, and nobody else is waited for.

use std::time::Duration;

use futures_util::future::join_all;
use nix::sys::signal::Signal;
use reqwest::Method;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::Instant,
};

use crate::support::{
    client::{Client, payment_with, try_send},
    pair::Ground,
    process::Process,
    race::{PATIENCE, in_background},
    wait::wait_until,
};

/// Opens a connection and writes `text` on it.
async fn write(process: &Process, text: &str) -> TcpStream {
    let address = process.base().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// Whether a load balancer would still send requests.
async fn is_ready(client: &Client) -> bool {
    let reply = try_send(client.request(Method::GET, "/readyz")).await;
    reply.is_ok_and(|reply| reply.status == 200)
}

/// B33. Twenty payments are at the gateway; one connection is idle, one has sent half a head, and one
/// half a body. The payments end and are answered; the connections are not waited for.
#[tokio::test]
async fn sigterm_ends_what_is_under_way_and_waits_for_nothing_else() {
    let ground = Ground::create().await;
    let mut service = ground.service().env("SHUTDOWN_TIMEOUT", "10s").start();
    let client = ground.client(&service);
    let probe = client.clone();
    let _idle = write(&service, "GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let _half_a_head = write(&service, "POST /v1/payments HTTP/1.1\r\nho").await;
    let half_a_body = "POST /v1/payments HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{";
    let _half_a_body = write(&service, half_a_body).await;
    let pays = (0..20).map(move |number| {
        let client = client.clone();
        async move {
            client
                .pay(&format!("K{number}"), &payment_with("pm_slow_1s"))
                .await
        }
    });
    let pays = in_background(join_all(pays));
    wait_until(PATIENCE, async || ground.sends() == 20).await;

    service.signal(Signal::SIGTERM);
    let asked = Instant::now();
    wait_until(Duration::from_secs(1), async || !is_ready(&probe).await).await;
    let replies = pays.await.unwrap();
    let status = service.wait(Duration::from_secs(8));

    assert!(status.success(), "{}", service.log());
    assert!(
        asked.elapsed() < Duration::from_secs(5),
        "{:?}",
        asked.elapsed()
    );
    for reply in replies {
        reply.assert_status(201);
    }
    assert_eq!(ground.processing().await, 0);
    assert_eq!(ground.effects(), 20);
}

/// D6.12. A request whose last byte comes after SIGTERM, and after everything else has ended, is a
/// task like any other: it is waited for and answered, and the exit does not cut it in two.
#[tokio::test]
async fn a_request_that_completes_during_shutdown_is_waited_for_and_answered() {
    let ground = Ground::create().await;
    let mut service = ground.service().env("SHUTDOWN_TIMEOUT", "10s").start();
    let client = ground.client(&service);
    let body = payment_with("pm_slow_2s").to_string();
    let request = client.payment_request(body.clone()).build().unwrap();
    let token = request.headers()["authorization"].to_str().unwrap();
    let head = format!(
        "POST /v1/payments HTTP/1.1\r\nhost: x\r\nauthorization: {token}\r\nidempotency-key: K\r\n\
         expect: 100-continue\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut slow = write(&service, &head).await;
    let mut go_on = *b"HTTP/1.1 100 Continue\r\n\r\n";
    slow.read_exact(&mut go_on).await.unwrap();

    service.signal(Signal::SIGTERM);
    wait_until(PATIENCE, async || service.log().contains("stopping")).await;
    slow.write_all(body.as_bytes()).await.unwrap();
    let mut reply = String::new();
    slow.read_to_string(&mut reply).await.unwrap();
    let status = service.wait(Duration::from_secs(8));

    assert!(
        reply.starts_with("HTTP/1.1 201"),
        "{reply:?}\n{}",
        service.log()
    );
    assert!(status.success());
    assert_eq!(ground.processing().await, 0);
    assert_eq!(ground.effects(), 1);
}

/// D6.12. A payment that does not end in time is let go: its lease (30 s) ends now, it is not
/// released, and another instance finishes it at once.
#[tokio::test]
async fn what_cannot_end_in_time_is_let_go_and_another_instance_takes_it_at_once() {
    let ground = Ground::create().await;
    let mut service = ground.service().env("SHUTDOWN_TIMEOUT", "500ms").start();
    let other = ground.service().start();
    let body = payment_with("pm_slow_9s");
    let (client, lost_body) = (ground.client(&service), body.clone());
    let lost = in_background(async move { client.pay_or_break("K", &lost_body).await });
    wait_until(PATIENCE, async || ground.sends() == 1).await;

    service.signal(Signal::SIGTERM);
    let status = service.wait(Duration::from_secs(4));
    let left = "SELECT count(*) FROM idempotency_keys
        WHERE status = 'processing' AND lease_expires_at <= now()";
    let left = ground.database.count(left).await;
    let paid = ground.client(&other).pay("K", &body).await;

    assert_eq!(status.code(), Some(1), "not everything ended");
    assert!(lost.await.unwrap().is_err());
    assert_eq!(left, 1, "let go, and not released");
    paid.assert_status(201);
    assert_eq!(ground.effects(), 1);
}
