//! Durations of the settings arrive in the database as what they say (B17): all of them are counted
//! by its clock.

use std::sync::Arc;

use oncepay::gateways::{NotExecuted, Outcome, Unknown};

use crate::support::{
    app::TestApp,
    client::{payment, payment_with},
    gateway::{Act, Scripted},
};

/// B17: a fraction of a second survives. The lease may have been renewed before it is read, so it
/// is compared with the age of the claim.
#[tokio::test]
async fn a_lease_of_2500_milliseconds_ends_2500_milliseconds_from_its_claim() {
    let gateway = Arc::new(Scripted::new([Act::Hang]));
    let app = TestApp::builder()
        .gateway(&gateway)
        .settings(|settings| "2500ms".clone_into(&mut settings.idempotency.idempotency_lease_ttl))
        .start()
        .await;
    let body = payment();
    let hanging = app.client.pay("K", &body);

    tokio::select! {
        reply = hanging => panic!("{reply:?}"),
        () = gateway.called(1) => {}
    }

    let right = "SELECT count(*) FROM idempotency_keys
        WHERE lease_expires_at - now() <= interval '2500 ms'
            AND lease_expires_at >= created_at + interval '2500 ms'
            AND first_sent_at = created_at";
    assert_eq!(app.database.count(right).await, 1);
}

#[tokio::test]
async fn each_status_expires_exactly_its_own_ttl_after_it_was_settled() {
    let refused = || Act::Say(Outcome::NotExecuted(NotExecuted::Refused));
    let declined = Outcome::Declined(oncepay::gateways::Decline {
        code: "card-declined".to_owned(),
        message: "No.".to_owned(),
        reference: None,
    });
    let acts = [refused(), refused(), refused(), Act::Say(declined)];
    let app = TestApp::builder()
        .gateway(&Arc::new(Scripted::new(acts)))
        .settings(|settings| {
            settings.idempotency.idempotency_ttl_completed = Some("90m 500ms".to_owned());
            settings.idempotency.idempotency_ttl_failed = Some("36h".to_owned());
        })
        .start()
        .await;

    app.client
        .pay("released", &payment())
        .await
        .assert_status(503);
    app.client
        .pay("failed", &payment())
        .await
        .assert_status(402);
    app.client
        .pay("completed", &payment())
        .await
        .assert_status(201);

    let ttls = app
        .database
        .texts(
            "SELECT key || ' ' || (EXTRACT(epoch FROM expires_at - completed_at) * 1000)::bigint
             FROM idempotency_keys ORDER BY key",
        )
        .await;
    assert_eq!(
        ttls,
        [
            "completed 5400500",
            "failed 129600000",
            "released 129600000"
        ]
    );
}

/// D6.7: two seconds, then four: the rest of a parked record.
#[tokio::test]
async fn a_parked_record_rests_exactly_two_seconds_first() {
    let acts = [Act::Say(Outcome::Unknown(Unknown::Timeout))];
    let app = TestApp::builder()
        .gateway(&Arc::new(Scripted::new(acts)))
        .start()
        .await;

    app.client
        .pay("K", &payment_with("pm_card_visa"))
        .await
        .assert_status(202);

    let rest = "SELECT (EXTRACT(epoch FROM lease_expires_at - unknown_since) * 1000)::bigint
        FROM idempotency_keys";
    assert_eq!(app.database.count(rest).await, 2000);
}
