//! Bodies that are refused before anything is claimed, and in which order.

use reqwest::{Method, RequestBuilder, header::HeaderMap};

use crate::support::{
    app::TestApp,
    client::{Client, payment, send},
    raw::{Raw, payment_head},
};

/// A valid payment with `member` in addition.
fn with_member(member: &str) -> String {
    let plain = payment().to_string();
    format!("{},{member}}}", plain.trim_end_matches('}'))
}

/// A request under the key `K` with one content type, whatever the client would add.
fn typed(client: &Client, body: String, types: &[&str]) -> RequestBuilder {
    let mut headers = HeaderMap::new();
    headers.insert("idempotency-key", "K".parse().unwrap());
    for media_type in types {
        headers.append("content-type", media_type.parse().unwrap());
    }
    client
        .request(Method::POST, "/v1/payments")
        .headers(headers)
        .body(body)
}

/// B49 and duplicates: what two readers could understand differently, or PostgreSQL cannot store,
/// is refused with a pointer before any claim, so that the corrected request may use the key.
#[tokio::test]
async fn text_that_cannot_be_stored_is_refused_with_a_pointer_before_any_claim() {
    let app = TestApp::start().await;
    for (member, code, pointer) in [
        (
            r#""description":"a\u0000b""#,
            "nul-character",
            "/description",
        ),
        (
            r#""description":"\ud800""#,
            "lone-surrogate",
            "/description",
        ),
        (
            r#""metadata":{"k":"\udfff"}"#,
            "lone-surrogate",
            "/metadata/k",
        ),
        (
            r#""metadata":{"a\u0000":"v"}"#,
            "nul-character",
            "/metadata",
        ),
        (r#""amount":1"#, "duplicate-member", "/amount"),
        (r#""\u0061mount":1999"#, "duplicate-member", "/amount"),
        (
            r#""metadata":{"k":"1","k":"1"}"#,
            "duplicate-member",
            "/metadata/k",
        ),
    ] {
        let reply = app.client.pay_bytes("K", with_member(member)).await;

        reply.assert_problem(400, "json-malformed");
        let expected = (pointer.to_owned(), code.to_owned());
        assert_eq!(reply.errors(), [expected], "{member}");
    }
    assert!(app.database.untouched().await);

    let corrected = app.client.pay("K", &payment()).await;

    corrected.assert_status(201);
}

#[tokio::test]
async fn what_is_no_json_object_is_refused() {
    let app = TestApp::start().await;
    for body in [
        &b""[..],
        b"{",
        b"[]",
        b"null",
        b"\"text\"",
        b"{\"a\":1}x",
        b"\xFF",
        b"\xEF\xBB\xBF{}",
        b"{'a':1}",
        b"{\"a\":NaN}",
    ] {
        let reply = app.client.pay_bytes("K", body).await;

        reply.assert_problem(400, "json-malformed");
    }
    let deep = format!("{{\"metadata\":{}{}}}", "[".repeat(9000), "]".repeat(9000));
    let reply = app.client.pay_bytes("K", deep).await;
    assert_eq!(reply.errors()[0].1, "nested-too-deep");
    assert!(app.database.untouched().await);
}

/// The body is JSON in UTF-8, not compressed: a small body could be a large one.
#[tokio::test]
async fn another_content_type_charset_or_encoding_is_refused() {
    let app = TestApp::start().await;
    let body = payment().to_string();
    for types in [
        &[][..],
        &["text/plain"],
        &["application/x-www-form-urlencoded"],
        &["application/json; charset=iso-8859-1"],
        &["application/jsonp"],
        &["application/json", "application/json"],
    ] {
        let reply = send(typed(&app.client, body.clone(), types)).await;

        reply.assert_problem(415, "unsupported-media-type");
    }
    for encoding in ["gzip", "identity", "br"] {
        let request = typed(&app.client, body.clone(), &["application/json"]);

        let reply = send(request.header("content-encoding", encoding)).await;

        reply.assert_problem(415, "unsupported-media-type");
    }
    assert!(app.database.untouched().await);

    let quoted = ["APPLICATION/json ; charset=\"UTF-8\""];
    let reply = send(typed(&app.client, body, &quoted)).await;

    reply.assert_status(201);
}

/// B54: what fails before the claim is not remembered under the key.
#[tokio::test]
async fn an_invalid_request_leaves_its_key_to_the_corrected_one() {
    let app = TestApp::builder()
        .settings(|settings| "300ms".clone_into(&mut settings.http.body_read_timeout))
        .start()
        .await;
    let body = payment().to_string();
    let mut bad_currency = payment();
    bad_currency["currency"] = "eur".into();
    let mut slow = Raw::connect(app.client.base()).await;
    let head = payment_head(app.client.secret(), "idempotency-key: K\r\n", body.len());
    slow.send(head).await.send("{\"amount\":").await;
    let plain = typed(&app.client, body.clone(), &["text/plain"]);
    let large = with_member(&format!("\"description\":\"{}\"", "x".repeat(70_000)));

    let replies = [
        (408, slow.reply().await),
        (422, app.client.pay("K", &bad_currency).await),
        (415, send(plain).await),
        (413, app.client.pay_bytes("K", large).await),
        (400, app.client.pay_bytes("K", "{").await),
    ];
    assert!(app.database.untouched().await);
    let corrected = app.client.pay("K", &payment()).await;

    for (status, reply) in replies {
        reply.assert_status(status);
    }
    corrected.assert_status(201);
    assert!(!corrected.replayed());
}

/// D4: each check before the next. Every request here is wrong in all the ways that come later.
#[tokio::test]
async fn checks_come_in_their_documented_order() {
    let app = TestApp::start().await;
    let nobody = app.client.with_secret("sk_nobody");
    let large = "x".repeat(70_000);
    let request = |client: &Client, body: &str, key: &str, media_type: &str| {
        client
            .request(Method::POST, "/v1/payments")
            .header("idempotency-key", key)
            .header("content-type", media_type)
            .body(body.to_owned())
    };
    let client = &app.client;
    for (expected, code, request) in [
        (413, "body-too-large", request(&nobody, &large, ",", "x/y")),
        (401, "unauthenticated", request(&nobody, "{", ",", "x/y")),
        (
            400,
            "idempotency-key-invalid",
            request(client, "{", ",", "x/y"),
        ),
        (
            415,
            "unsupported-media-type",
            request(client, "{", "K", "x/y"),
        ),
        (
            400,
            "json-malformed",
            request(client, "{", "K", "application/json"),
        ),
        (
            422,
            "validation-failed",
            request(client, "{}", "K", "application/json"),
        ),
    ] {
        let reply = send(request).await;

        reply.assert_problem(expected, code);
    }
    assert!(app.database.untouched().await);
}

/// B71: too large is refused and never executed without protection; and the client can read that,
/// although it was still sending.
#[tokio::test]
async fn a_body_of_two_mebibytes_is_refused_and_nothing_is_executed() {
    let app = TestApp::start().await;
    let filler = "x".repeat(2 << 20);
    let body = with_member(&format!("\"metadata\":{{\"filler\":\"{filler}\"}}"));
    for round in 0..20 {
        let client = if round % 2 == 0 {
            app.client.clone()
        } else {
            app.client.http2()
        };

        let reply = client.pay_bytes("K", body.clone()).await;

        reply.assert_problem(413, "body-too-large");
    }
    assert!(app.database.untouched().await);
    assert_eq!(app.effects(), 0);
}

/// B71, for a client that reads only after it has sent everything: the refusal must not get lost
/// in a connection that is reset under it.
#[tokio::test]
async fn a_client_that_sends_all_before_it_reads_still_learns_of_the_refusal() {
    let app = TestApp::start().await;
    // More than the buffers of the sockets hold.
    let body = vec![b' '; 7 << 20];
    let head = payment_head(app.client.secret(), "idempotency-key: K\r\n", body.len());
    for _round in 0..3 {
        let mut raw = Raw::connect(app.client.base()).await;

        raw.send(&head).await.send(&body).await;
        let reply = raw.reply().await;

        reply.assert_problem(413, "body-too-large");
    }
}

/// B71 without a length: the limit counts what arrives.
#[tokio::test]
async fn a_chunked_body_beyond_the_limit_is_refused() {
    let app = TestApp::start().await;
    let head = format!(
        "POST /v1/payments HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\nidempotency-key: K\r\ntransfer-encoding: chunked\r\n\r\n",
        app.client.secret()
    );
    let chunk = format!("{:x}\r\n{}\r\n", 0x4000, " ".repeat(0x4000));
    let mut raw = Raw::connect(app.client.base()).await;

    raw.send(head).await;
    for _chunk in 0..5 {
        raw.send(&chunk).await;
    }
    let reply = raw.reply().await;

    reply.assert_problem(413, "body-too-large");
    assert!(app.database.untouched().await);
}

/// A client that asks first (`Expect: 100-continue`) is not told to send what is refused.
#[tokio::test]
async fn a_declared_length_beyond_the_limit_is_refused_without_the_body() {
    let app = TestApp::start().await;
    let lines = "idempotency-key: K\r\nexpect: 100-continue\r\n";
    let mut raw = Raw::connect(app.client.base()).await;

    let head = payment_head(app.client.secret(), lines, 2 << 20);
    let reply = raw.send(head).await.reply().await;

    reply.assert_problem(413, "body-too-large");
}
