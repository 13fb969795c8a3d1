//! Answers to a payment under the gateway key `K` that no gateway should give, byte for byte.

use serde_json::{Value, json};

use super::says::json_answer;

/// Longer than any answer that is read.
const HUGE: usize = 2 * 1024 * 1024;

/// What the answer to a payment under `K` would be, with these members changed.
pub fn intent(changes: Value) -> String {
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

/// A whole answer with them.
pub fn ok(changes: Value) -> Vec<u8> {
    json_answer(200, &intent(changes))
}

/// A head of these lines, and whatever follows it.
pub fn raw(head: &str, rest: impl AsRef<[u8]>) -> Vec<u8> {
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
pub fn broken_http() -> Vec<(&'static str, Vec<u8>)> {
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
pub fn unreadable() -> Vec<(&'static str, Vec<u8>)> {
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
pub fn contradicting() -> Vec<(&'static str, Vec<u8>, &'static str)> {
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
