//! The edges of D8, in code and in SQL.

use oncepay::payments::state::PaymentStatus;

use crate::support::database::TestDatabase;

/// A payment in `status`, with everything else as the CHECKs want it.
fn insert(status: PaymentStatus) -> String {
    format!(
        "INSERT INTO payments (
             merchant_id, id, idempotency_key, status, amount, amount_captured, currency,
             payment_method, capture_method, failure_code, failure_message, gateway, gateway_key,
             created_at, updated_at
         )
         VALUES (
             gen_random_uuid(), gen_random_uuid(), 'K', '{status}', 100, {}, 'EUR',
             'pm_card_visa', 'manual', {}, {}, 'sandbox', '{status}', now(), now()
         )",
        captured(status),
        failure(status),
        failure(status),
    )
}

/// The same payment in another status, again with everything else as the CHECKs want it.
fn update(from: PaymentStatus, to: PaymentStatus) -> String {
    format!(
        "UPDATE payments
         SET status = '{to}', amount_captured = {}, failure_code = {}, failure_message = {}
         WHERE gateway_key = '{from}'",
        captured(to),
        failure(to),
        failure(to),
    )
}

fn captured(status: PaymentStatus) -> u8 {
    if status == PaymentStatus::Succeeded {
        100
    } else {
        0
    }
}

fn failure(status: PaymentStatus) -> &'static str {
    if status == PaymentStatus::Failed {
        "'x'"
    } else {
        "NULL"
    }
}

/// B24. The trigger refuses exactly the edges that the code does not know, whoever writes. Each
/// pair starts from a fresh row.
#[tokio::test]
async fn sql_refuses_every_edge_that_the_code_does_not_know() {
    let database = TestDatabase::create().await;
    let mut connection = database.connect().await;
    let pairs = PaymentStatus::ALL
        .into_iter()
        .flat_map(|from| PaymentStatus::ALL.map(|to| (from, to)))
        .filter(|(from, to)| from != to);

    for (from, to) in pairs {
        let statement = format!("BEGIN; {}; {};", insert(from), update(from, to));
        let done = sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
            .execute(&mut connection)
            .await;

        let refused_by = done.err().map(|error| {
            let error = error.into_database_error().unwrap();
            error.constraint().map(ToOwned::to_owned)
        });
        let expected = (!from.may_become(to)).then(|| Some("payments_edge".to_owned()));
        assert_eq!(refused_by, expected, "{from} → {to}");
        crate::support::postgres::execute(&mut connection, "ROLLBACK").await;
    }
}
