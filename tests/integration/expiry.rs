//! A key whose time is over: it is told so for ever, and never executed again.

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::{
    app::TestApp,
    client::{Reply, payment, payment_with},
    gateway::Scripted,
};

const DELETE: &str = "SELECT delete_expired_idempotency_keys(1000)";

/// 410 with the payment, for the same request and for another one.
async fn assert_expired(app: &TestApp, same: &Value, payment_id: &Value) {
    let mut other = same.clone();
    other["amount"] = json!(2999);
    for body in [same, &other] {
        let reply = app.client.pay("K", body).await;
        reply.assert_problem(410, "idempotency-key-expired");
        assert_eq!(&reply.json()["payment_id"], payment_id);
        assert_eq!(reply.json()["retry_with"], "never");
        assert_eq!(reply.header("x-should-retry"), Some("false"));
    }
}

/// One request, its replay a minute before it expires, and everything after that.
async fn live_and_expire(app: &TestApp, body: &Value, payment_id: fn(&Reply) -> Value) {
    let first = app.client.pay("K", body).await;
    let payment_id = payment_id(&first);

    app.database
        .age("K", TimeDelta::hours(24) - TimeDelta::minutes(1))
        .await;
    let replay = app.client.pay("K", body).await;
    assert_eq!(app.database.count(DELETE).await, 0, "its time is not over");
    app.database.age("K", TimeDelta::minutes(2)).await;

    replay.assert_replays(&first);
    assert_expired(app, body, &payment_id).await;
    assert_eq!(app.database.count(DELETE).await, 1);
    assert_eq!(
        app.database
            .count("SELECT count(*) FROM idempotency_keys")
            .await,
        0
    );
    assert_expired(app, body, &payment_id).await;
}

/// B90, I1, I6. The TTL is 24 h: shortly before it ends the answer is replayed; after it the key is
/// refused, while its row is there and after the cleaner has deleted it.
#[tokio::test]
async fn a_paid_key_is_replayed_until_it_expires_and_refused_for_ever_after() {
    let gateway = Arc::new(Scripted::default());
    let app = TestApp::builder().gateway(&gateway).start().await;

    live_and_expire(&app, &payment(), |reply| reply.json()["id"].clone()).await;

    assert_eq!(gateway.sent().len(), 1, "a late retry never pays again");
    assert_eq!(app.database.count("SELECT count(*) FROM payments").await, 1);
}

/// B90 for a decline: that a card was refused is no leave to try it again under the old key.
#[tokio::test]
async fn a_declined_key_is_replayed_until_it_expires_and_refused_for_ever_after() {
    let app = TestApp::start().await;

    let body = payment_with("pm_card_declined");
    live_and_expire(&app, &body, |reply| reply.json()["payment_id"].clone()).await;

    assert_eq!(app.effects(), 0);
    assert_eq!(app.database.count("SELECT count(*) FROM payments").await, 1);
}
