//! A duplicate of a request that is in progress: 409 with advice, or it waits (`Prefer: wait`).

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use oncepay::gateways::{NotExecuted, Outcome};
use tokio::time::{Instant, timeout};

use crate::support::{
    app::TestApp,
    client::{Reply, payment},
    gateway::{Act, Scripted, approved},
};

/// An answer that was waited for comes long before this.
const SOON: Duration = Duration::from_secs(10);

async fn with_gateway(acts: impl IntoIterator<Item = Act>) -> (Arc<Scripted>, TestApp) {
    let gateway = Arc::new(Scripted::new(acts));
    let app = TestApp::builder().gateway(&gateway).start().await;
    (gateway, app)
}

/// Sends a first request, does `then` while it waits at the gateway, and gives both results.
async fn while_in_flight<T>(
    app: &TestApp,
    gateway: &Scripted,
    then: impl Future<Output = T>,
) -> (Reply, T) {
    let body = payment();
    let first = app.client.pay("K", &body);
    let then = Box::pin(async {
        gateway.called(1).await;
        then.await
    });
    tokio::join!(first, then)
}

/// D4: `Retry-After` begins at 1 and grows with the age of the record to at most 5.
#[tokio::test]
async fn a_duplicate_in_flight_gets_409_and_is_told_to_wait_longer_as_it_gets_older() {
    let (gateway, app) = with_gateway([Act::WaitThenSay(approved())]).await;

    let (first, replies) = while_in_flight(&app, &gateway, async {
        let mut replies = Vec::new();
        for older_by in [0, 4, 6, 10] {
            app.database.age("K", TimeDelta::seconds(older_by)).await;
            replies.push(app.client.pay("K", &payment()).await);
        }
        gateway.open();
        replies
    })
    .await;

    first.assert_status(201);
    let mut waits = Vec::new();
    for reply in &replies {
        reply.assert_problem(409, "idempotency-key-in-progress");
        assert_eq!(reply.json()["retryable"], true);
        assert_eq!(reply.json()["retry_with"], "same_key");
        assert_eq!(reply.header("x-should-retry"), Some("true"));
        waits.push(reply.header("retry-after").unwrap());
    }
    assert_eq!(waits, ["1", "3", "5", "5"]);
    assert_eq!(gateway.sent().len(), 1);
}

/// I5. Interleaving: the first waits at the gateway, the duplicate waits for the first, then the
/// gateway answers.
#[tokio::test]
async fn a_duplicate_that_prefers_to_wait_gets_the_bytes_of_the_first() {
    let (gateway, app) = with_gateway([Act::WaitThenSay(approved())]).await;
    let body = payment();

    let (first, waited) = while_in_flight(&app, &gateway, async {
        let waiting = Box::pin(app.client.pay_preferring("K", &body, "wait=20"));
        let opening = async {
            // It is waiting when a second look finds it unanswered.
            app.client.pay("K", &body).await.assert_status(409);
            gateway.open();
        };
        timeout(SOON, async { tokio::join!(waiting, opening).0 })
            .await
            .unwrap()
    })
    .await;

    first.assert_status(201);
    waited.assert_replays(&first);
    assert_eq!(waited.header("preference-applied"), Some("wait=20"));
    assert_eq!(first.header("preference-applied"), None);
    assert_eq!(gateway.sent().len(), 1);
}

/// D4: N ≤ 25, and the answer says what was applied.
#[tokio::test]
async fn a_wait_is_capped_and_one_that_cannot_be_read_is_ignored() {
    let app = TestApp::start().await;
    for (prefer, applied) in [
        ("wait=3600", Some("wait=25")),
        ("respond-async, wait=7", Some("wait=7")),
        ("wait=0", Some("wait=0")),
        ("wait=-1", None),
        ("wait=1e3", None),
        ("wait=99999999999999999999", None),
    ] {
        let reply = app.client.pay_preferring("K", &payment(), prefer).await;

        reply.assert_status(201);
        assert_eq!(reply.header("preference-applied"), applied, "{prefer}");
    }
}

/// D4: a wait that ends before the first request does is answered like no wait.
#[tokio::test]
async fn a_wait_that_runs_out_ends_in_409() {
    let (gateway, app) = with_gateway([Act::WaitThenSay(approved())]).await;
    let started = Instant::now();

    let (first, waited) = while_in_flight(&app, &gateway, async {
        let waited = app.client.pay_preferring("K", &payment(), "wait=1").await;
        gateway.open();
        waited
    })
    .await;

    waited.assert_problem(409, "idempotency-key-in-progress");
    assert!(started.elapsed() >= Duration::from_secs(1));
    first.assert_status(201);
}

/// D6.8. Interleaving: the first is refused by the gateway three times and lets its key go, while
/// the duplicate waits; the key is free for the same request, which is the waiter's.
#[tokio::test]
async fn a_waiter_executes_when_the_first_request_is_released() {
    let refused = || Outcome::NotExecuted(NotExecuted::Refused);
    let acts = [
        Act::WaitThenSay(refused()),
        Act::Say(refused()),
        Act::Say(refused()),
    ];
    let (gateway, app) = with_gateway(acts).await;
    let body = payment();

    let (first, waited) = while_in_flight(&app, &gateway, async {
        let waiting = Box::pin(app.client.pay_preferring("K", &body, "wait=20"));
        let opening = async {
            app.client.pay("K", &body).await.assert_status(409);
            gateway.open();
        };
        timeout(SOON, async { tokio::join!(waiting, opening).0 })
            .await
            .unwrap()
    })
    .await;

    first.assert_problem(503, "gateway-unavailable");
    assert_eq!(first.json().get("payment_id"), None);
    assert!(first.header("retry-after").is_some());
    waited.assert_status(201);
    assert!(!waited.replayed(), "it was executed for the waiter");
    let sent = gateway.sent();
    assert_eq!(sent.len(), 4);
    assert!(
        sent.iter()
            .all(|send| send.gateway_key == sent[0].gateway_key)
    );
}
