//! The audit finds each broken promise, and nothing where none is.

use std::path::PathBuf;

use oncepay::{
    audit::{self, Breach},
    gateways::sandbox::journal::{self, Journal, Kind, Line},
};

use crate::support::{
    app::TestApp,
    client::{payment, payment_with},
    command::oncepay,
    database::TestDatabase,
};

/// One payment of each kind, as the service leaves them.
async fn service_with_payments() -> TestApp {
    let app = TestApp::builder()
        .settings(|raw| "2s".clone_into(&mut raw.gateway.gateway_timeout))
        .start()
        .await;
    for (key, method, status) in [
        ("visa", "pm_card_visa", 201),
        ("declined", "pm_card_declined", 402),
        ("pending", "pm_pending_then_succeeds", 201),
        ("unknown", "pm_timeout_after_charge", 202),
        ("released", "pm_error_before_charge", 503),
    ] {
        let reply = app.client.pay(key, &payment_with(method)).await;
        reply.assert_status(status);
    }
    app
}

async fn audit(database: &TestDatabase, journal: Option<PathBuf>) -> Vec<Breach> {
    let mut connection = database.connect().await;
    match journal {
        None => audit::run(&mut connection, None).await.unwrap(),
        Some(path) => {
            let lines = move || journal::read(&path);
            audit::run(&mut connection, Some(&lines)).await.unwrap()
        }
    }
}

fn names(breaches: &[Breach]) -> Vec<&'static str> {
    let mut names: Vec<_> = breaches.iter().map(|breach| breach.check).collect();
    names.dedup();
    names
}

fn journal_of(app: &TestApp) -> PathBuf {
    app.sandbox.path().join(journal::FILE_NAME)
}

#[tokio::test]
async fn a_service_that_keeps_its_promises_has_no_breach() {
    let app = service_with_payments().await;

    let breaches = audit(&app.database, Some(journal_of(&app))).await;

    assert_eq!(breaches, []);
    let journal = journal_of(&app).display().to_string();
    let said = oncepay(&app.database.url(), &["audit", "--journal", &journal]);
    said.assert_code(0);
    let summary = serde_json::json!({"checks": audit::checks(), "journal": true, "breaches": 0});
    assert_eq!(said.objects(), [summary]);
}

/// A breach, seeded by the statement that only a bug or a stranger would execute.
const SEEDS: &[(&str, &str)] = &[
    (
        "gateway_key_shared",
        "UPDATE idempotency_keys SET gateway_key = 'same' WHERE key IN ('visa', 'declined')",
    ),
    (
        "record_without_payment",
        "DELETE FROM payments WHERE idempotency_key = 'unknown'",
    ),
    (
        "record_of_decided_payment",
        "UPDATE payments SET status = 'canceled' WHERE idempotency_key = 'unknown'",
    ),
    (
        "answer_contradicts_payment",
        "ALTER TABLE payments DISABLE TRIGGER payments_edge;
         UPDATE payments SET status = 'canceled', failure_code = NULL, failure_message = NULL
         WHERE idempotency_key = 'declined'",
    ),
    (
        "answer_contradicts_payment",
        "ALTER TABLE payments DISABLE TRIGGER payments_edge;
         UPDATE payments SET status = 'failed', amount_captured = 0, failure_code = 'x',
             failure_message = 'x'
         WHERE idempotency_key = 'visa'",
    ),
    (
        "answer_of_other_payment",
        "UPDATE idempotency_keys AS record SET response = other.response
         FROM idempotency_keys AS other
         WHERE record.key = 'visa' AND other.key = 'pending'",
    ),
    (
        "payment_of_other_request",
        "UPDATE payments SET amount = 2000 WHERE idempotency_key = 'visa'",
    ),
    (
        "payment_of_other_request",
        "UPDATE payments SET currency = 'USD' WHERE idempotency_key = 'visa'",
    ),
    ("key_not_used", "DELETE FROM used_keys WHERE key = 'visa'"),
    (
        "key_not_used",
        "UPDATE used_keys SET resource_id = gen_random_uuid() WHERE key = 'visa'",
    ),
    (
        "amounts_out_of_bounds",
        "ALTER TABLE payments DROP CONSTRAINT payments_captured;
         UPDATE payments SET amount_captured = 2000 WHERE idempotency_key = 'visa'",
    ),
    (
        "amounts_out_of_bounds",
        "ALTER TABLE payments DROP CONSTRAINT payments_refunded;
         UPDATE payments SET amount_refunded = 1000, refund_pending = 1000
         WHERE idempotency_key = 'visa'",
    ),
    (
        "feed_has_gaps",
        "UPDATE event_counters SET position = position + 1",
    ),
    (
        "feed_has_gaps",
        "UPDATE events SET position = position + 100 WHERE position = 2",
    ),
    (
        "payment_without_its_events",
        "UPDATE payments SET version = 2 WHERE idempotency_key = 'visa'",
    ),
    (
        "event_without_payment",
        "UPDATE events SET payment_id = gen_random_uuid() WHERE position = 1",
    ),
    ("table_not_durable", "ALTER TABLE used_keys SET UNLOGGED"),
    (
        "record_unattended",
        "UPDATE idempotency_keys SET lease_expires_at = now() - interval '16 minutes'
         WHERE key = 'unknown'",
    ),
    (
        "outcome_unknown_for_too_long",
        "UPDATE idempotency_keys SET unknown_since = now() - interval '27 hours'
         WHERE key = 'unknown'",
    ),
    ("payment_forgotten", "DELETE FROM pending_payments"),
    (
        "released_with_payment",
        "INSERT INTO payments (
             merchant_id, id, idempotency_key, status, amount, currency, payment_method,
             capture_method, gateway, gateway_key, created_at, updated_at
         )
         SELECT merchant_id, resource_id, key, 'processing', 1999, 'EUR', 'pm_card_visa',
             'automatic', gateway, gateway_key, created_at, created_at
         FROM idempotency_keys WHERE key = 'released'",
    ),
];

#[tokio::test]
async fn every_breach_of_the_database_is_found() {
    for (check, seed) in SEEDS {
        let app = service_with_payments().await;
        assert_eq!(audit(&app.database, None).await, [], "before {seed}");

        app.database.execute(seed).await;

        let breaches = audit(&app.database, None).await;
        assert!(names(&breaches).contains(check), "{check}: {breaches:?}");
    }
}

#[tokio::test]
async fn a_seed_exists_for_every_check() {
    let mut seeded: Vec<_> = SEEDS.iter().map(|(check, _)| *check).collect();
    seeded.dedup();

    assert_eq!(seeded.len(), audit::checks());
}

/// A breach names the place and never the key in the clear, and the command says so by its code.
#[tokio::test]
async fn a_breach_is_a_line_and_a_failure() {
    let app = service_with_payments().await;
    let seed = "UPDATE payments SET amount = 2000 WHERE idempotency_key = 'visa'";
    app.database.execute(seed).await;

    let said = oncepay(&app.database.url(), &["audit"]);

    said.assert_code(1);
    assert!(said.stderr.contains("1 breaches"), "{}", said.stderr);
    assert!(!said.stdout.contains("visa"), "{}", said.stdout);
    let [breach, summary] = &said.objects()[..] else {
        panic!("one breach and the summary: {}", said.stdout);
    };
    assert_eq!(breach["check"], "payment_of_other_request");
    assert_eq!(breach["invariant"], "I6");
    assert_eq!(breach["merchant_id"], app.merchant_id.to_string());
    assert_eq!(breach["detail"], "asked for 1999 EUR, made 2000 EUR");
    assert_eq!(summary["breaches"], 1);
    assert_eq!(
        oncepay("nonsense", &["audit"]).code,
        2,
        "settings are wrong"
    );
}

/// What the journal knows and the database does not, and the other way round.
#[tokio::test]
async fn every_difference_to_the_journal_is_found() {
    for (check, seed) in [
        (
            "effect_without_payment",
            "UPDATE payments SET gateway_key = 'lost' WHERE idempotency_key = 'visa'",
        ),
        (
            "payment_without_effect",
            "UPDATE payments SET gateway_key = 'lost' WHERE idempotency_key = 'visa'",
        ),
        (
            "amount_differs",
            "UPDATE payments SET amount = 2000 WHERE idempotency_key = 'visa'",
        ),
        (
            "amount_differs",
            "UPDATE payments SET currency = 'USD' WHERE idempotency_key = 'visa'",
        ),
        (
            "effect_of_undone_payment",
            "UPDATE payments SET status = 'failed', failure_code = 'x', failure_message = 'x'
             WHERE idempotency_key = 'unknown'",
        ),
        (
            "effect_of_undone_payment",
            "UPDATE payments SET status = 'canceled' WHERE idempotency_key = 'unknown'",
        ),
    ] {
        let app = service_with_payments().await;

        app.database.execute(seed).await;

        let breaches = audit(&app.database, Some(journal_of(&app))).await;
        assert!(names(&breaches).contains(&check), "{check}: {breaches:?}");
    }
}

#[tokio::test]
async fn a_second_effect_under_one_gateway_key_is_found() {
    let app = TestApp::start().await;
    app.client.pay("K", &payment()).await.assert_status(201);
    let path = journal_of(&app);
    let lines = journal::read(&path).unwrap();
    let effect = lines.iter().find(|line| line.kind == Kind::Effect).unwrap();
    Journal::open(&path).unwrap().append(effect).unwrap();

    let breaches = audit(&app.database, Some(path)).await;

    assert_eq!(names(&breaches), ["more_than_one_effect"]);
    assert!(breaches[0].payment_id.is_some());
}

/// What is in front of a person is a state and no breach; what that person decides is held against
/// the journal again.
#[tokio::test]
async fn an_amount_that_differs_is_a_breach_when_its_payment_is_decided() {
    let app = TestApp::builder()
        .settings(|raw| "200ms".clone_into(&mut raw.gateway.gateway_timeout))
        .start()
        .await;
    let unknown = payment_with("pm_timeout_after_charge");
    app.client.pay("K", &unknown).await.assert_status(202);

    for (status, captured, breach) in [
        ("processing", 0, false),
        ("requires_review", 0, false),
        ("succeeded", 2000, true),
    ] {
        let change = format!(
            "UPDATE payments
             SET amount = 2000, amount_captured = {captured}, status = '{status}'"
        );
        app.database.execute(&change).await;

        let breaches = audit(&app.database, Some(journal_of(&app))).await;
        let found = names(&breaches).contains(&"amount_differs");
        assert_eq!(found, breach, "{status}: {breaches:?}");
    }
}

/// A canceled payment was authorised before; its cancel is in the journal under another key.
#[tokio::test]
async fn a_cancel_in_the_journal_explains_the_effect_of_a_canceled_payment() {
    let app = TestApp::start().await;
    let mut manual = payment();
    manual["capture_method"] = "manual".into();
    let reply = app.client.pay("K", &manual).await;
    let reference = reply.json()["gateway_reference"]
        .as_str()
        .unwrap()
        .to_owned();
    app.database
        .execute("UPDATE payments SET status = 'canceled'")
        .await;
    let path = journal_of(&app);
    let before = audit(&app.database, Some(path.clone())).await;

    let lines = journal::read(&path).unwrap();
    let writing = Journal::open(&path).unwrap();
    for (kind, object_id) in [
        (Kind::Request, reference),
        (Kind::Effect, "sb_can_1".to_owned()),
    ] {
        let line = Line {
            kind,
            call: journal::Call::Cancel,
            gateway_key: "cancel".to_owned(),
            object_id: Some(object_id),
            ..lines[0].clone()
        };
        writing.append(&line).unwrap();
    }

    assert_eq!(names(&before), ["effect_of_undone_payment"]);
    assert_eq!(audit(&app.database, Some(path)).await, []);
}

/// The audit must not take part in what it looks at.
#[tokio::test]
async fn an_audit_needs_no_right_to_write() {
    let app = service_with_payments().await;
    let role = format!("auditor_{}", std::process::id());
    app.database
        .execute(&format!(
            "CREATE ROLE {role}; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}"
        ))
        .await;
    let mut connection = app.database.connect().await;
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("SET ROLE {role}")))
        .execute(&mut connection)
        .await
        .unwrap();

    let breaches = audit::run(&mut connection, None).await.unwrap();

    drop(connection);
    app.database
        .execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .await;
    assert_eq!(breaches, []);
}
