//! How a client names its request: what is a key, what is refused, and what is echoed.

use reqwest::header::HeaderValue;

use crate::support::{
    app::TestApp,
    client::{Client, Reply, payment, raw_header, send},
    process::Process,
    raw::{Raw, payment_head},
};

/// Pays with these `Idempotency-Key` lines, as bytes.
async fn pay_with_lines(client: &Client, lines: &[&[u8]]) -> Reply {
    let mut request = client.payment_request(payment().to_string());
    for line in lines {
        let (name, value) = raw_header("idempotency-key", line);
        request = request.header(name, value);
    }
    send(request).await
}

/// The same over HTTP/1.1 without any library in between; `lines` are whole header lines.
async fn pay_raw(client: &Client, lines: &str) -> Reply {
    let body = payment().to_string();
    let mut raw = Raw::connect(client.base()).await;
    raw.send(payment_head(client.secret(), lines, body.len()))
        .await
        .send(body)
        .await
        .reply()
        .await
}

/// B66. The IETF draft (section 2.7) asks for a link to the policy.
#[tokio::test]
async fn a_missing_key_is_refused_with_a_link_to_the_policy() {
    let app = TestApp::start().await;

    let reply = pay_with_lines(&app.client, &[]).await;

    reply.assert_problem(400, "idempotency-key-missing");
    assert_eq!(
        reply.header("link"),
        Some("</v1/meta>; rel=\"describedby\"")
    );
    assert_eq!(reply.json()["retry_with"], "same_key");
    assert!(app.database.untouched().await);
}

/// B66: an empty value is an error and never "no key".
#[tokio::test]
async fn a_blank_key_is_refused_and_nothing_is_executed() {
    let app = TestApp::start().await;
    for line in [
        "idempotency-key:\r\n",
        "idempotency-key: \r\n",
        "idempotency-key:    \r\n",
        "idempotency-key:\t\r\n",
        "idempotency-key: \"\"\r\n",
    ] {
        let reply = pay_raw(&app.client, line).await;

        reply.assert_problem(400, "idempotency-key-invalid");
        let empty = ("Idempotency-Key".to_owned(), "empty".to_owned());
        assert_eq!(reply.errors(), [empty], "{line:?}");
    }
    assert!(app.database.untouched().await);
}

/// B65: joined lines would be one key here and another one at the next reader, who pays again.
#[tokio::test]
async fn two_key_lines_or_a_list_are_refused_in_both_versions_of_http() {
    let app = TestApp::start().await;
    for client in [app.client.clone(), app.client.http2()] {
        for (lines, code) in [
            (&[&b"K"[..], b"K"][..], "repeated"),
            (&[b"K", b"L"], "repeated"),
            (&[b"K", b""], "repeated"),
            (&[b"K,L"], "list"),
            (&[b"K, K"], "list"),
            (&[b"\"K\", \"L\""], "list"),
        ] {
            let reply = pay_with_lines(&client, lines).await;

            reply.assert_problem(400, "idempotency-key-invalid");
            assert_eq!(reply.errors()[0].1, code, "{lines:?}");
        }
    }
    let twice = "idempotency-key: K\r\nIDEMPOTENCY-KEY: K\r\n";
    let reply = pay_raw(&app.client, twice).await;
    reply.assert_problem(400, "idempotency-key-invalid");
    assert!(app.database.untouched().await);
}

/// B65: what was refused has used nothing up.
#[tokio::test]
async fn after_two_key_lines_the_single_line_pays_once_in_both_versions_of_http() {
    let app = TestApp::start().await;
    let http2 = app.client.http2();

    let refused = pay_with_lines(&app.client, &[b"K", b"K"]).await;
    let first = pay_with_lines(&app.client, &[b"K"]).await;
    let second = pay_with_lines(&http2, &[b"K"]).await;

    refused.assert_status(400);
    first.assert_status(201);
    second.assert_replays(&first);
    assert_eq!(app.effects(), 1);
}

/// B67.
#[tokio::test]
async fn a_key_of_255_bytes_pays_and_one_of_256_is_refused() {
    let app = TestApp::start().await;
    let longest = "k".repeat(255);
    let longer = "k".repeat(256);

    let paid = app.client.pay(&longest, &payment()).await;
    let refused = app.client.pay(&longer, &payment()).await;

    paid.assert_status(201);
    assert_eq!(paid.header("idempotency-key"), Some(longest.as_str()));
    refused.assert_problem(400, "idempotency-key-invalid");
    assert_eq!(refused.errors()[0].1, "too-long");
    assert_eq!(app.effects(), 1);
}

/// B67: bytes that are no key are refused by us; bytes that are no HTTP, by the server below.
#[tokio::test]
async fn odd_keys_are_refused_and_never_a_server_error() {
    let app = TestApp::start().await;
    for key in [
        &b"\xFF\xFE"[..],
        "é".as_bytes(),
        "\u{1F4B6}".as_bytes(),
        b"a b",
        b"a\\b",
        b"a\"b",
        b"\"a\";p=1",
        b".",
        b"..",
    ] {
        let reply = pay_with_lines(&app.client, &[key]).await;

        reply.assert_problem(400, "idempotency-key-invalid");
    }
    let nul = pay_raw(&app.client, "idempotency-key: a\0b\r\n").await;
    nul.assert_status(400);
    let mut raw = Raw::connect(app.client.base()).await;
    let huge = format!("idempotency-key: {}\r\n", "k".repeat(1 << 20));
    raw.try_send(payment_head(app.client.secret(), &huge, 0))
        .await;
    if let Some(reply) = raw.try_reply().await {
        reply.assert_status(431);
    }
    assert!(app.database.untouched().await);
}

/// B67, D4: `"K"` ≡ `K`, white space around it is no part of it, and case is.
#[tokio::test]
async fn the_quoted_and_the_bare_form_are_one_key_and_another_case_is_another() {
    let app = TestApp::start().await;

    let bare = pay_with_lines(&app.client, &[b"K"]).await;
    let quoted = pay_with_lines(&app.client, &[b"\"K\""]).await;
    let spaced = pay_raw(&app.client, "idempotency-key: \t K \r\n").await;
    let lower = pay_with_lines(&app.client, &[b"k"]).await;

    bare.assert_status(201);
    quoted.assert_replays(&bare);
    spaced.assert_replays(&bare);
    assert_eq!(quoted.header("idempotency-key"), Some("K"));
    lower.assert_status(201);
    assert!(!lower.replayed());
    assert_eq!(app.effects(), 2);
}

/// D4: with a key, every answer echoes it and says whether it is a replay; also a refusal that
/// came before the claim, because the client corrects that and uses the key again.
#[tokio::test]
async fn a_key_is_echoed_on_every_answer_that_was_given_under_it() {
    let app = TestApp::start().await;
    let client = &app.client;
    let text = client
        .payment_request("{}")
        .header("idempotency-key", "\"K\"")
        .header("content-type", "text/plain");
    let replies = [
        (415, send(text).await),
        (400, client.pay_bytes("K", "{").await),
        (422, client.pay_bytes("K", "{}").await),
        (201, client.pay("K", &payment()).await),
        (201, client.pay("K", &payment()).await),
        (
            422,
            client.pay("K", &serde_json::json!({"amount": 1})).await,
        ),
    ];

    for (status, reply) in replies {
        reply.assert_status(status);
        assert_eq!(reply.header("idempotency-key"), Some("K"), "{status}");
        assert!(reply.header("idempotent-replayed").is_some(), "{status}");
        if status >= 400 {
            assert_eq!(reply.json()["idempotency_key"], "K", "{status}");
        }
    }
}

/// D4, policy `optional`: the client is told the key, and a retry with it is a replay. The metric
/// tells the operator who is not protected.
#[tokio::test]
async fn under_the_optional_policy_a_missing_key_is_made_echoed_and_counted() {
    let app = TestApp::start().await;
    let process = Process::builder(&app.database, app.sandbox.path())
        .env("IDEMPOTENCY_KEY_POLICY", "optional")
        .start();
    let client = app.client.at(process.base());

    let first = pay_with_lines(&client, &[]).await;
    let made = first.header("idempotency-key").unwrap().to_owned();
    let again = client.pay(&made, &payment()).await;
    let blank = pay_with_lines(&client, &[b""]).await;

    first.assert_status(201);
    again.assert_replays(&first);
    blank.assert_problem(400, "idempotency-key-invalid");
    assert_eq!(app.effects(), 1);
    for (outcome, count) in [("missing", 1.0), ("executed", 1.0), ("invalid", 1.0)] {
        let series = format!("idempotency_requests_total{{outcome=\"{outcome}\"}}");
        let counted = process.metric(&series).await;
        assert!((counted - count).abs() < 0.5, "{outcome}: {counted}");
    }
}

/// D4: a read is not guarded, and a client that thinks so is told.
#[tokio::test]
async fn a_key_on_a_read_is_ignored_and_the_answer_says_so() {
    let app = TestApp::start().await;
    for path in ["/v1/payments", "/v1/payments/pay_x", "/v1/meta", "/nowhere"] {
        let request = app.client.request(reqwest::Method::GET, path);
        let value = HeaderValue::from_static("\"");

        let with_key = send(request.header("idempotency-key", value)).await;
        let without = app.client.get(path).await;

        assert_eq!(with_key.header("idempotency-status"), Some("ignored"));
        assert_eq!(with_key.status, without.status, "{path}");
        assert_eq!(without.header("idempotency-status"), None);
    }
    let paid = app.client.pay("K", &payment()).await;
    assert_eq!(paid.header("idempotency-status"), None);
}
