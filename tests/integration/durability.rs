//! What was answered 201 is on disk.

use oncepay::db::{Database, embedded::Server, migrations};
use secrecy::ExposeSecret as _;
use sqlx::{ConnectOptions as _, PgPool, Row as _};

use crate::support::{
    client::{Client, payment},
    crash::{kill_with_children, open},
    database::{TestDatabase, merchant_in},
    postgres::execute,
    process::Process,
};

/// I15 and B98: service and database are killed right after the 201, on a database that was told to
/// confirm commits before they are on disk. The payment is there after the restart.
#[tokio::test]
async fn a_payment_survives_the_kill_of_service_and_database_right_after_its_answer() {
    let (folder, sandbox) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = open(folder.path()).await;
    migrations::apply(&server.connect_options("postgres"))
        .await
        .unwrap();
    let mut session = server.connect_options("postgres").connect().await.unwrap();
    let careless = "ALTER DATABASE postgres SET synchronous_commit = off";
    execute(&mut session, careless).await;
    let (_, secret) = merchant_in(&mut session, "T1").await;
    let start = |server: &Server| {
        let url = server.url("postgres");
        Process::at_url(url.expose_secret(), sandbox.path()).start()
    };
    let mut service = start(&server);
    let client = Client::new(service.base(), &secret);
    client.pay("before", &payment()).await.assert_status(201);

    let first = client.pay("K", &payment()).await;
    kill_with_children(server.postmaster_pid());
    service.kill();
    drop(server);
    let server = open(folder.path()).await;
    let service = start(&server);
    let second = Client::new(service.base(), &secret)
        .pay("K", &payment())
        .await;

    first.assert_status(201);
    second.assert_replays(&first);
    let journal = sandbox.path().join("journal.ndjson");
    assert_eq!(
        crate::support::app::effects(&journal),
        2,
        "one for each key"
    );
    drop(service);
    server.stop().await.unwrap();
}

/// What a session of the service has, on a database that was told otherwise.
async fn settings_of(pool: &PgPool) -> Vec<String> {
    let names = [
        "synchronous_commit",
        "lock_timeout",
        "idle_in_transaction_session_timeout",
        "statement_timeout",
        "application_name",
        "TimeZone",
    ];
    let mut values = Vec::new();
    for name in names {
        let row = sqlx::query("SELECT current_setting($1)").bind(name);
        let value: String = row.fetch_one(pool).await.unwrap().get(0);
        values.push(format!("{name}={value}"));
    }
    values
}

/// B98, D6.3: a session refuses what would lose a payment or cut a claim, wherever it comes from.
#[tokio::test]
async fn a_session_keeps_its_settings_on_a_database_with_others() {
    let database = TestDatabase::create().await;
    let name = database
        .text("SELECT current_database()::text")
        .await
        .unwrap();
    for (setting, value) in [
        ("synchronous_commit", "off"),
        ("lock_timeout", "0"),
        ("idle_in_transaction_session_timeout", "0"),
        ("statement_timeout", "7s"),
    ] {
        let set = format!("ALTER DATABASE {name} SET {setting} = '{value}'");
        database.execute(&set).await;
    }

    let service = Database::new(database.options(), 1);

    assert_eq!(
        settings_of(service.pool()).await,
        [
            "synchronous_commit=on",
            "lock_timeout=100ms",
            "idle_in_transaction_session_timeout=10s",
            "statement_timeout=0",
            "application_name=oncepay",
            "TimeZone=UTC",
        ]
    );
}

/// Stricter durability, for a synchronous standby, is left as it is.
#[tokio::test]
async fn a_session_leaves_stricter_durability_as_it_is() {
    let database = TestDatabase::create().await;
    let name = database
        .text("SELECT current_database()::text")
        .await
        .unwrap();
    let strict = format!("ALTER DATABASE {name} SET synchronous_commit = remote_apply");
    database.execute(&strict).await;

    let service = Database::new(database.options(), 1);

    let settings = settings_of(service.pool()).await;
    assert_eq!(settings.first().unwrap(), "synchronous_commit=remote_apply");
}
