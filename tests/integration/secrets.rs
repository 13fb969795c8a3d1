//! Nothing that must not leave a request gets anywhere: answers, logs, metrics, tables (I17, B73).

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    app::TestApp,
    client::{Client, Reply, payment, send},
    database::TestDatabase,
    process::Process,
};

const CARD: &str = "4111111111111111";
const SPELLINGS: [&str; 3] = [CARD, "4111 1111 1111 1111", "4111-1111-1111-1111"];

fn with_member(name: &str, value: impl Into<Value>) -> Value {
    let mut body = payment();
    body[name] = value.into();
    body
}

fn get(client: &Client, path: &str) -> reqwest::RequestBuilder {
    client.request(Method::GET, path)
}

/// Every column that can hold text, of every row of every table, as one text.
async fn dump(database: &TestDatabase) -> String {
    let columns = "SELECT string_agg(format('SELECT string_agg(%I::text, E''\\n'') FROM %I.%I',
            column_name, table_schema, table_name), ' UNION ALL ')
        FROM information_schema.columns
        WHERE table_schema = 'public'
          AND data_type IN ('text', 'jsonb', 'bytea', 'character varying', 'uuid')";
    let selects = database.text(columns).await.unwrap();
    let all = format!("SELECT string_agg(string_agg, E'\\n') FROM ({selects}) AS columns");
    let dumped = database.text(&all).await.unwrap();
    let bodies = "SELECT string_agg(convert_from(response_body, 'UTF8'), E'\\n')
        FROM idempotency_keys";
    dumped + &database.text(bodies).await.unwrap_or_default()
}

/// D4: refused in any string, member name, key or query; and no answer repeats it.
#[tokio::test]
async fn a_card_number_is_refused_anywhere_in_a_payment_and_never_repeated() {
    let app = TestApp::start().await;
    for card in SPELLINGS {
        for body in [
            with_member("payment_method", card),
            with_member("reference", card),
            with_member("description", card),
            with_member("customer", card),
            with_member("currency", card),
            with_member("capture_method", card),
            with_member("metadata", json!({ "k": card })),
            with_member("metadata", json!({ card: "v" })),
            with_member("unknown", json!([{ "deep": [card] }])),
            with_member(card, "x"),
            with_member(card, Value::Null),
        ] {
            let reply = app.client.pay("K", &body).await;

            reply.assert_problem(422, "validation-failed");
            assert!(reply.text().contains("card-number"), "{}", reply.text());
            assert!(!reply.text().contains(card), "{}", reply.text());
        }
        let key = app.client.pay(card, &payment()).await;
        key.assert_problem(400, "idempotency-key-invalid");
        assert!(!format!("{key:?}").contains(card));
    }
    assert!(app.database.untouched().await);
}

/// D4: the query is part of the request, whether or not anybody reads it.
#[tokio::test]
async fn a_card_number_in_a_query_or_path_is_refused_and_never_repeated() {
    let app = TestApp::start().await;
    let client = &app.client;
    for card in [CARD, "4111+1111%201111-1111", "%34111111111111111"] {
        let pay = |query: &str| {
            client
                .request(Method::POST, &format!("/v1/payments?{query}"))
                .header("content-type", "application/json")
                .header("idempotency-key", "K")
                .body(payment().to_string())
        };
        for (request, code) in [
            (pay(&format!("x={card}")), "query-invalid"),
            (pay(&format!("{card}=x")), "query-invalid"),
            (pay(card), "query-invalid"),
            (
                get(client, &format!("/v1/payments?reference={card}")),
                "query-invalid",
            ),
            (
                get(client, &format!("/v1/payments?{card}=1")),
                "query-invalid",
            ),
            (
                get(client, &format!("/v1/payments?idempotency_key={card}")),
                "query-invalid",
            ),
            (
                get(client, &format!("/v1/payments/pay_x?x={card}")),
                "query-invalid",
            ),
            (
                get(client, &format!("/v1/payments/{CARD}")),
                "payment-not-found",
            ),
            (
                get(client, &format!("/v1/idempotency-keys/{CARD}")),
                "idempotency-key-invalid",
            ),
            (get(client, &format!("/{CARD}")), "not-found"),
            (get(client, &format!("/problems/{CARD}")), "not-found"),
        ] {
            let reply = send(request).await;

            assert_eq!(reply.code(), code, "{card}");
            assert!(!format!("{reply:?} {}", reply.text()).contains(CARD));
        }
    }
    assert!(app.database.untouched().await);
}

/// Requests that carry what must not be found anywhere afterwards; gives all answers.
async fn indiscreet(client: &Client, key: &str) -> Vec<Reply> {
    let mut body = with_member("description", "body-canary");
    body["metadata"] = json!({"note": "metadata-canary"});
    let mut other = body.clone();
    other["description"] = "other-canary".into();
    let declined = {
        let mut declined = body.clone();
        declined["payment_method"] = "pm_card_declined_odd_text".into();
        declined
    };
    let wrong = client.with_secret(&client.secret().replace("sk_", "sk_wrong"));
    let header = client
        .payment_request(payment().to_string())
        .header("x-card", CARD)
        .header("cookie", "session=cookie-canary")
        .header("idempotency-key", format!("{key}-2"));
    vec![
        client.pay(key, &body).await,
        client.pay(key, &body).await,
        client.pay(key, &other).await,
        client.pay(&format!("{key}-1"), &declined).await,
        client.pay(CARD, &body).await,
        client.pay(key, &with_member("reference", CARD)).await,
        client.pay(key, &with_member(CARD, 1)).await,
        client.pay_bytes(key, format!("{{\"a\":\"{CARD}")).await,
        client.get(&format!("/v1/payments/{CARD}?x={CARD}")).await,
        client.get(&format!("/{CARD}?{CARD}={CARD}")).await,
        client.get(&format!("/v1/idempotency-keys/{CARD}")).await,
        client.get(&format!("/v1/idempotency-keys/{key}")).await,
        client
            .get(&format!("/v1/payments?idempotency_key={key}"))
            .await,
        wrong.pay(key, &body).await,
        send(header).await,
    ]
}

/// B73, I17, D11: a process with the loudest log that can be asked for. The key is what the
/// database must hold, and nothing else may; the body likewise.
#[tokio::test]
async fn neither_card_numbers_nor_keys_nor_bodies_nor_secrets_leave_the_request() {
    let app = TestApp::start().await;
    let process = Process::builder(&app.database, app.sandbox.path())
        .env("RUST_LOG", "trace")
        .start();
    let client = app.client.at(process.base());
    let key = "key-canary-8d1f";
    let secret = client.secret().to_owned();
    // `sk_`, the public prefix, and what nobody may see; that part may hold underscores of its own.
    let tail = secret.splitn(3, '_').nth(2).unwrap();
    let password = app.database.password();

    let replies = indiscreet(&client, key).await;
    let answers = replies
        .iter()
        .map(|reply| format!("{:?} {}", reply.headers, reply.text()))
        .collect::<Vec<_>>()
        .join("\n");
    let tables = dump(&app.database).await;
    let journal = std::fs::read_to_string(app.sandbox.path().join("journal.ndjson")).unwrap();
    let places = [
        ("log", process.log()),
        ("metrics", process.metrics().await),
        ("answers", answers),
        ("tables", tables),
        ("journal", journal),
    ];

    let canaries = [
        "body-canary",
        "metadata-canary",
        "other-canary",
        "cookie-canary",
    ];
    for (place, text) in &places {
        assert!(!text.is_empty(), "{place}");
        for forbidden in [CARD, tail, password.as_str()] {
            assert!(!text.contains(forbidden), "{forbidden} is in the {place}");
        }
        let kept = ["answers", "tables"].contains(place);
        assert_eq!(text.contains(key), kept, "the key in the {place}");
        for canary in canaries {
            let may_hold = kept && ["body-canary", "metadata-canary"].contains(&canary);
            assert!(
                may_hold || !text.contains(canary),
                "{canary} is in the {place}"
            );
        }
    }
    let (_, log) = &places[0];
    assert!(log.contains("\"level\":\"TRACE\"") || log.contains("\"level\":\"DEBUG\""));
}
