//! What is refused because of what it says: 422 with all errors at once, and nothing remembered.

use oncepay::gateways::sandbox::journal::{self, Kind};
use serde_json::json;

use crate::support::{app::TestApp, client::payment};

/// A valid body with `value` as it is in place of the amount.
fn with_amount(value: &str) -> String {
    payment()
        .to_string()
        .replace("\"amount\":1999", &format!("\"amount\":{value}"))
}

/// B50, B79: an amount is exact or refused, never rounded, and never executed.
#[tokio::test]
async fn an_amount_that_is_no_positive_integer_in_range_is_refused_and_not_remembered() {
    let app = TestApp::start().await;
    for (amount, code) in [
        ("-1", "out-of-range"),
        ("0", "out-of-range"),
        ("-0", "not-an-integer"),
        ("1e0", "not-an-integer"),
        ("1.0", "not-an-integer"),
        ("0.5", "not-an-integer"),
        ("1000000000001", "out-of-range"),
        ("9007199254740993", "out-of-range"),
        ("9223372036854775807", "out-of-range"),
        ("9223372036854775808", "not-an-integer"),
        ("1e400", "not-an-integer"),
        ("\"1999\"", "wrong-type"),
        ("\"\"", "wrong-type"),
        ("true", "wrong-type"),
        ("[]", "wrong-type"),
        ("{}", "wrong-type"),
        ("null", "required"),
    ] {
        let reply = app.client.pay_bytes("K", with_amount(amount)).await;

        reply.assert_problem(422, "validation-failed");
        let expected = ("/amount".to_owned(), code.to_owned());
        assert_eq!(reply.errors(), [expected], "{amount}");
    }
    assert!(app.database.untouched().await);
    assert_eq!(app.effects(), 0);
}

/// B50: the largest amount is exact all the way.
#[tokio::test]
async fn the_smallest_and_the_largest_amount_are_exact_in_answer_and_journal() {
    let app = TestApp::start().await;
    for amount in [1, 999_999_999_999, 1_000_000_000_000_i64] {
        let key = amount.to_string();

        let reply = app.client.pay_bytes(&key, with_amount(&key)).await;

        reply.assert_status(201);
        assert_eq!(reply.json()["amount"], amount);
        assert_eq!(reply.json()["amount_captured"], amount);
    }
    let charged: Vec<i64> = effects(&app).iter().map(|effect| effect.0).collect();
    assert_eq!(charged, [1, 999_999_999_999, 1_000_000_000_000]);
}

/// B79: the database refuses what the service should never send.
#[tokio::test]
async fn the_table_of_payments_refuses_amounts_that_are_not_positive() {
    let app = TestApp::start().await;
    app.client.pay("K", &payment()).await.assert_status(201);
    let mut connection = app.database.connect().await;
    for amount in ["0", "-1", "1000000000001"] {
        let statement = format!("UPDATE payments SET amount_captured = 0, amount = {amount}");

        let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
            .execute(&mut connection)
            .await
            .unwrap_err();

        let constraint = refused.as_database_error().unwrap().constraint();
        assert_eq!(constraint, Some("payments_amount_check"), "{amount}");
    }
}

/// B77: minor units from the request to the gateway, whatever the currency's exponent.
#[tokio::test]
async fn amounts_reach_the_gateway_in_the_minor_units_of_their_currency() {
    let app = TestApp::start().await;
    let sent = [("JPY", 500), ("KWD", 1234), ("EUR", 1999), ("HUF", 100)];
    for (currency, amount) in sent {
        let mut body = payment();
        body["currency"] = currency.into();
        body["amount"] = amount.into();

        let reply = app.client.pay(currency, &body).await;

        reply.assert_status(201);
        assert_eq!(reply.json()["amount"], amount);
        assert_eq!(reply.json()["currency"], currency);
    }
    let expected = sent.map(|(currency, amount)| (amount, currency.to_owned()));
    assert_eq!(effects(&app), expected);
}

/// B77.
#[tokio::test]
async fn an_unknown_or_lower_case_currency_is_refused() {
    let app = TestApp::start().await;
    for currency in ["XXX", "eur", "Eur", "EURO", "DEM", "XAU", "978", "", " EUR"] {
        let mut body = payment();
        body["currency"] = currency.into();

        let reply = app.client.pay("K", &body).await;

        reply.assert_problem(422, "validation-failed");
        let expected = ("/currency".to_owned(), "unknown-currency".to_owned());
        assert_eq!(reply.errors(), [expected], "{currency}");
    }
    assert!(app.database.untouched().await);
}

/// D4: all errors at once, each with its pointer, and no value repeated.
#[tokio::test]
async fn a_request_with_many_errors_is_told_all_of_them() {
    let app = TestApp::start().await;
    let body = json!({
        "amount": -5, "currency": "eur", "capture_method": "sometimes", "reference": "",
        "description": "a\u{7}", "metadata": {"a/b": 1, "k": "x".repeat(501)}, "amuont": 1,
        "customer": "secret-value".repeat(30),
    });

    let reply = app.client.pay("K", &body).await;

    assert!(!reply.text().contains("secret-value"));
    let errors: Vec<String> = reply
        .errors()
        .into_iter()
        .map(|(pointer, code)| format!("{pointer}: {code}"))
        .collect();
    insta::assert_snapshot!(errors.join("\n"), @r"
    /amount: out-of-range
    /currency: unknown-currency
    /payment_method: required
    /capture_method: unknown-value
    /reference: empty
    /description: control-character
    /customer: too-long
    /metadata/a~1b: wrong-type
    /metadata/k: too-long
    /amuont: unknown-member
    ");
}

/// The amounts and currencies of all effects, in their order.
fn effects(app: &TestApp) -> Vec<(i64, String)> {
    let lines = journal::read(app.sandbox.path().join(journal::FILE_NAME)).unwrap();
    lines
        .into_iter()
        .filter(|line| line.kind == Kind::Effect)
        .map(|line| (line.amount.unwrap(), line.currency.unwrap()))
        .collect()
}

/// RFC 9457 and D4: the document as clients read it.
#[tokio::test]
async fn a_problem_is_a_document_with_advice() {
    let app = TestApp::start().await;

    let reply = app.client.pay_bytes("K", "{}").await;

    reply.assert_problem(422, "validation-failed");
    let document = reply.json();
    assert_eq!(document["instance"], reply.header("request-id").unwrap());
    insta::assert_json_snapshot!(document, { ".instance" => "req_…", ".errors[1:]" => "…" }, @r#"
    {
      "code": "validation-failed",
      "detail": "3 members of the request are not valid.",
      "errors": [
        {
          "code": "required",
          "message": "is required",
          "pointer": "/amount"
        },
        "…",
        "…"
      ],
      "idempotency_key": "K",
      "instance": "req_…",
      "retry_with": "same_key",
      "retryable": false,
      "status": 422,
      "title": "The request is not valid",
      "type": "/problems/validation-failed"
    }
    "#);
}
