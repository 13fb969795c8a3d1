//! One key is executed once, and every retry gets the same bytes.

use crate::support::{
    app::TestApp,
    client::{payment, payment_with},
};

#[tokio::test]
async fn a_payment_succeeds_and_is_replayed_byte_for_byte() {
    let app = TestApp::start().await;

    let first = app.client.pay("K", &payment()).await;
    let second = app.client.pay("K", &payment()).await;

    first.assert_status(201);
    assert_eq!(first.header("idempotent-replayed"), Some("false"));
    assert_eq!(first.json()["status"], "succeeded");
    second.assert_replays(&first);
    assert_eq!(app.effects(), 1);
    assert_eq!(app.database.count("SELECT count(*) FROM payments").await, 1);
    assert_eq!(app.database.count("SELECT count(*) FROM events").await, 1);
}

#[tokio::test]
async fn a_decline_is_final_and_is_replayed_byte_for_byte() {
    let app = TestApp::start().await;

    let first = app.client.pay("K", &payment_with("pm_card_declined")).await;
    let second = app.client.pay("K", &payment_with("pm_card_declined")).await;

    first.assert_problem(402, "payment-declined");
    second.assert_replays(&first);
    assert_eq!(app.effects(), 0);
}
