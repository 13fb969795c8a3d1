//! No time zone changes an answer (B91): not the database's, not the role's, not a session's, not
//! the process's.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use oncepay::clock::{Clock as _, SystemClock};
use serde_json::Value;

use crate::support::{
    app::effects,
    client::{Client, payment},
    database::TestDatabase,
    process::Process,
};

/// Fourteen hours ahead of UTC, and where clocks are changed twice a year.
const FAR: &str = "Pacific/Kiritimati";
const CHANGING: &str = "America/New_York";

/// What a client sees of a payment from its start to the end of its key, without ids.
async fn life(database: &TestDatabase, service: &Process) -> Vec<String> {
    let (_, secret) = database.merchant("T1").await;
    let client = Client::new(service.base(), &secret);
    let ttl = TimeDelta::hours(24);
    let second = TimeDelta::seconds(5);
    let mut seen = Vec::new();

    let first = client.pay("K", &payment()).await;
    let created: DateTime<Utc> = text(&first.json(), "created_at").parse().unwrap();
    seen.push(format!(
        "fresh {}",
        (SystemClock.now() - created).abs() < TimeDelta::minutes(1)
    ));
    seen.push(format!(
        "utc {}",
        text(&first.json(), "created_at").ends_with('Z')
    ));
    database.age("K", ttl - second).await;
    let replay = client.pay("K", &payment()).await;
    seen.push(format!("{} {}", replay.status, replay.replayed()));
    database.age("K", second * 2).await;
    seen.push(client.pay("K", &payment()).await.code());
    let listed = client.get("/v1/idempotency-keys/K").await;
    seen.push(listed.status.to_string());
    let minute = TimeDelta::minutes(1);
    for (from, to) in [(-minute, minute), (minute, minute * 2)] {
        let between =
            |by: TimeDelta| (created + by).to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let path = format!(
            "/v1/payments?created_after={}&created_before={}",
            between(from),
            between(to)
        );
        let page = client.get(&path).await;
        seen.push(format!(
            "listed {}",
            page.json()["data"].as_array().unwrap().len()
        ));
    }
    seen
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn time_zones_of_database_role_and_process_change_no_answer() {
    let (usual, strange) = (TestDatabase::create().await, TestDatabase::create().await);
    let (folder, strange_folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let name = strange
        .text("SELECT current_database()::text")
        .await
        .unwrap();
    let role = strange.text("SELECT current_user::text").await.unwrap();
    for set in [
        format!("ALTER DATABASE {name} SET timezone = '{FAR}'"),
        format!("ALTER ROLE {role} IN DATABASE {name} SET timezone = '{CHANGING}'"),
        format!("ALTER DATABASE {name} SET datestyle = 'German'"),
        format!("ALTER DATABASE {name} SET intervalstyle = 'iso_8601'"),
    ] {
        strange.execute(&set).await;
    }
    let service = Process::builder(&usual, folder.path())
        .env("TZ", "UTC")
        .start();
    let elsewhere = Process::builder(&strange, strange_folder.path())
        .env("TZ", CHANGING)
        .env("PGTZ", FAR)
        .start();

    let expected = life(&usual, &service).await;
    let seen = life(&strange, &elsewhere).await;

    assert_eq!(seen, expected);
    assert_eq!(
        expected,
        [
            "fresh true",
            "utc true",
            "201 Created true",
            "idempotency-key-expired",
            "200 OK",
            "listed 1",
            "listed 0"
        ]
    );
    let journal = strange_folder.path().join("journal.ndjson");
    assert_eq!(effects(&journal), 1);
}

/// `pg_cron` and psql run the cleaner's function in sessions of their own zone.
#[tokio::test]
async fn the_cleaners_function_deletes_the_same_in_every_time_zone() {
    let database = Arc::new(TestDatabase::create().await);
    let (merchant_id, _) = database.merchant("T1").await;
    database.add_expired_records(merchant_id, 3).await;
    // One that expires in an hour, and one that did a second ago.
    for (key, span) in [("expired-1", "1 hour"), ("expired-2", "-1 second")] {
        database
            .execute(&format!(
                "UPDATE idempotency_keys SET expires_at = now() + interval '{span}'
                 WHERE key = '{key}'"
            ))
            .await;
    }

    for zone in [FAR, CHANGING, "Pacific/Pago_Pago"] {
        let clean = format!("SET TIME ZONE '{zone}'; SELECT delete_expired_idempotency_keys(1)");
        database.execute(&clean).await;
    }

    let left = database.texts("SELECT key FROM idempotency_keys").await;
    assert_eq!(left, ["expired-1"]);
}
