//! Every answer has the headers of every answer, and every error is a problem document.

use std::{collections::BTreeSet, sync::Arc};

use chrono::TimeDelta;
use oncepay::{
    gateways::{NotExecuted, Outcome},
    http::problem::ProblemKind,
};
use reqwest::Method;

use crate::support::{
    app::TestApp,
    client::{Client, Reply, payment, payment_with, send},
    gateway::{Act, Scripted},
    raw::{Raw, payment_head},
};

/// What D4 says of every answer.
#[track_caller]
fn assert_common(reply: &Reply) {
    let context = format!("{} {:?}", reply.status, reply.headers);
    assert!(reply.header("request-id").is_some(), "{context}");
    assert_eq!(reply.header("cache-control"), Some("no-store"), "{context}");
    assert_eq!(
        reply.header("x-content-type-options"),
        Some("nosniff"),
        "{context}"
    );
}

/// What D4 says of every error.
#[track_caller]
fn assert_advice(reply: &Reply) {
    assert_common(reply);
    let document = reply.json();
    let retryable = document["retryable"].as_bool().unwrap().to_string();
    for name in ["x-should-retry", "stripe-should-retry"] {
        assert_eq!(reply.header(name), Some(retryable.as_str()), "{document}");
    }
    assert_eq!(
        reply.header("retry-after").is_some(),
        retryable == "true",
        "{document}"
    );
    let code = document["code"].as_str().unwrap();
    assert_eq!(document["type"], format!("/problems/{code}"));
    assert_eq!(document["status"], reply.status.as_u16());
    assert_eq!(
        reply.header("content-type"),
        Some("application/problem+json")
    );
}

/// Problems that a request can meet while everything works.
async fn ordinary(app: &TestApp) -> Vec<Reply> {
    let client = &app.client;
    let mut other = payment();
    other["amount"] = 1.into();
    client.pay("old", &payment()).await.assert_status(201);
    app.database.age("old", TimeDelta::hours(25)).await;
    client.pay("used", &payment()).await.assert_status(201);
    let mut slow = Raw::connect(client.base()).await;
    slow.send(payment_head(client.secret(), "idempotency-key: K\r\n", 9))
        .await;
    let text = client.payment_request("{}").header("idempotency-key", "K");
    vec![
        slow.reply().await,
        send(client.payment_request("{}")).await,
        client.pay(",", &payment()).await,
        client.pay_bytes("K", "{").await,
        client.get("/v1/payments?x=1").await,
        client.with_secret("x").get("/v1/payments").await,
        client.pay("D", &payment_with("pm_card_declined")).await,
        client.get("/nowhere").await,
        client.get("/v1/payments/pay_x").await,
        client.get("/v1/idempotency-keys/never").await,
        send(client.request(Method::DELETE, "/v1/payments")).await,
        client.pay("old", &payment()).await,
        client.pay_bytes("K", "x".repeat(70_000)).await,
        send(text.header("content-type", "text/plain")).await,
        client.pay_bytes("K", "{}").await,
        client.pay("used", &other).await,
    ]
}

/// Problems of a gateway that does not work, a bug of ours, and a database that refuses or goes.
async fn troubled() -> Vec<Reply> {
    let refused = || Act::Say(Outcome::NotExecuted(NotExecuted::Unreachable));
    let acts = [refused(), refused(), refused(), Act::Panic, Act::Hang];
    let gateway = Arc::new(Scripted::new(acts));
    let app = TestApp::builder().gateway(&gateway).start().await;
    let (client, body) = (&app.client, payment());
    let mut replies = vec![client.pay("A", &body).await, client.pay("B", &body).await];
    let in_progress = async {
        gateway.called(5).await;
        client.pay("C", &body).await
    };
    tokio::select! {
        _ = client.pay("C", &body) => panic!("the gateway hangs"),
        reply = in_progress => replies.push(reply),
    }
    app.database
        .execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
             AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse()",
        )
        .await;
    replies.push(client.pay("D", &body).await);
    app.database
        .execute("ALTER TABLE api_keys RENAME TO api_keys_gone")
        .await;
    replies.push(client.pay("E", &body).await);
    replies
}

/// T6: the catalogue has nothing that no request can meet.
#[tokio::test]
async fn every_problem_of_the_catalogue_is_met_and_carries_its_advice() {
    let app = TestApp::builder()
        .settings(|settings| "200ms".clone_into(&mut settings.http.body_read_timeout))
        .start()
        .await;

    let mut replies = ordinary(&app).await;
    replies.extend(troubled().await);

    for reply in &replies {
        assert_advice(reply);
    }
    let met: BTreeSet<String> = replies.iter().map(Reply::code).collect();
    let known: BTreeSet<String> = ProblemKind::ALL
        .iter()
        .map(|kind| kind.entry().code.to_owned())
        .collect();
    assert_eq!(met, known);
}

/// D4: `type` leads somewhere.
#[tokio::test]
async fn every_problem_type_can_be_read() {
    let app = TestApp::start().await;
    for kind in ProblemKind::ALL {
        let entry = kind.entry();

        let reply = send(
            app.client
                .anonymous(Method::GET, &format!("/problems/{}", entry.code)),
        );
        let view = reply.await.assert_status(200).json();

        assert_eq!(view["code"], entry.code);
        assert_eq!(view["title"], entry.title);
        assert_eq!(view["status"], entry.status.as_u16());
        assert_eq!(view["retryable"], entry.retry_after.is_some());
    }
    let unknown = app.client.get("/problems/no-such-thing").await;
    unknown.assert_problem(404, "not-found");
}

/// Wherever it comes from: a router, a page of another crate, a method that nobody knows.
#[tokio::test]
async fn an_unknown_path_or_method_is_a_problem_document_in_both_versions_of_http() {
    let app = TestApp::start().await;
    for client in [app.client.clone(), app.client.http2()] {
        for (method, path, status) in [
            (Method::GET, "/", 404),
            (Method::GET, "/v1/payments/", 404),
            (Method::POST, "/v1/payments/pay_x/nothing", 404),
            (Method::GET, "/docs/no-such-asset.js", 404),
            (Method::PUT, "/v1/payments", 405),
            (Method::OPTIONS, "/v1/payments", 405),
            (Method::PATCH, "/v1/payments/pay_x", 405),
            (Method::POST, "/v1/meta", 405),
            (Method::POST, "/docs/", 405),
            (Method::from_bytes(b"BREW").unwrap(), "/v1/payments", 405),
        ] {
            let reply = send(client.request(method.clone(), path)).await;

            assert_eq!(reply.status, status, "{method} {path}");
            assert_advice(&reply);
            assert_eq!(reply.header("allow").is_some(), status == 405, "{path}");
        }
    }
}

/// A HEAD is answered like the GET, without the body.
#[tokio::test]
async fn a_head_request_has_the_headers_of_the_get_and_no_body() {
    let app = TestApp::start().await;
    for client in [app.client.clone(), app.client.http2()] {
        for path in ["/v1/payments", "/v1/payments/pay_x", "/nowhere", "/livez"] {
            let get = client.get(path).await;
            let head = send(client.request(Method::HEAD, path)).await;

            assert_eq!(head.status, get.status, "{path}");
            assert_eq!(head.body, b"", "{path}");
            assert_common(&head);
            let media_type = get.header("content-type");
            assert_eq!(head.header("content-type"), media_type, "{path}");
        }
    }
}

async fn successes(client: &Client) -> Vec<Reply> {
    let pending = payment_with("pm_unknown");
    vec![
        client.pay("K", &payment()).await,
        client.pay("K", &payment()).await,
        client.pay("U", &pending).await,
        client.get("/v1/payments").await,
        client.get("/v1/meta").await,
        client.get("/livez").await,
        client.get("/readyz").await,
        client.get("/openapi.json").await,
        client.get("/docs/").await,
    ]
}

#[tokio::test]
async fn every_answer_has_a_request_id_and_is_not_cached_or_guessed() {
    let app = TestApp::start().await;

    let replies = successes(&app.client).await;

    let mut request_ids = BTreeSet::new();
    for reply in &replies {
        assert!(reply.status.is_success(), "{}", reply.text());
        assert_common(reply);
        assert_eq!(reply.header("x-should-retry"), None);
        request_ids.insert(reply.header("request-id").unwrap());
    }
    assert_eq!(request_ids.len(), replies.len(), "each its own");
}

/// Requests that no client library sends: an answer, or a closed connection, and no 5xx.
#[tokio::test]
async fn broken_http_is_refused_and_the_service_goes_on() {
    let app = TestApp::start().await;
    for bytes in [
        &b"\r\n\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n",
        b"POST /v1/payments HTTP/1.1\r\nhost: x\r\ncontent-length: x\r\n\r\n",
        b"POST /v1/payments HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST /v1/payments HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\ngarbage-garbage-garbage",
    ] {
        let mut raw = Raw::connect(app.client.base()).await;

        raw.try_send(bytes).await;
        raw.end().await;

        if !bytes.starts_with(b"PRI")
            && let Some(reply) = raw.try_reply().await
        {
            assert!(reply.status.as_u16() < 500, "{bytes:?}: {}", reply.status);
        }
    }
    app.client.pay("K", &payment()).await.assert_status(201);
}
