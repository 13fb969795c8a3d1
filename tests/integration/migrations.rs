//! The schema comes from the same files, whoever applies them, and a program that does not know it
//! does not start.

use std::{process::Command, time::Duration};

use sha2::{Digest as _, Sha384};

use crate::support::{
    client::{Client, payment},
    command::{Said, oncepay, run},
    database::TestDatabase,
    metrics,
    process::Process,
};

const MIGRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");

/// The names of the migration files, oldest first.
fn files() -> Vec<String> {
    let mut files: Vec<String> = std::fs::read_dir(MIGRATIONS)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    files
}

/// B36: four replicas of a first deployment start together, each with `--migrate`. One applies, the
/// others wait for its lock and find nothing to do.
#[tokio::test]
async fn four_services_that_migrate_an_empty_database_at_once_all_start() {
    let database = TestDatabase::create_empty().await;
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        Process::builder(&database, folder.path())
            .arg("--migrate")
            .start()
    };

    let services = std::thread::scope(|scope| {
        let starting = [(); 4].map(|()| scope.spawn(start));
        starting.map(|service| service.join().unwrap())
    });

    let versions = "SELECT count(*) FROM _sqlx_migrations";
    let count = i64::try_from(files().len()).unwrap();
    assert_eq!(database.count(versions).await, count, "one row per version");
    let (_, secret) = database.merchant("T1").await;
    for (number, service) in services.iter().enumerate() {
        let client = Client::new(service.base(), &secret);
        let ready = client.get("/readyz").await;
        ready.assert_status(200);
        let paid = client.pay(&format!("K{number}"), &payment()).await;
        paid.assert_status(201);
    }
}

#[tokio::test]
async fn a_check_lists_what_is_pending_and_exits_with_1_until_it_is_applied() {
    let database = TestDatabase::create_empty().await;
    let status = |said: &Said, status: &str| -> Vec<String> {
        let objects = said.objects();
        assert!(objects.iter().all(|object| object["status"] == status));
        let name = |object: &serde_json::Value| object["migration"].as_str().unwrap().to_owned();
        objects.iter().map(name).collect()
    };

    let before = oncepay(&database.url(), &["migrate", "--check"]);
    let applied = oncepay(&database.url(), &["migrate"]);
    let after = oncepay(&database.url(), &["migrate", "--check"]);
    let again = oncepay(&database.url(), &["migrate"]);

    assert_eq!(status(before.assert_code(1), "pending"), files());
    assert!(before.stderr.contains("oncepay migrate"), "{before:?}");
    assert_eq!(status(applied.assert_code(0), "applied"), files());
    assert_eq!(after.assert_code(0).stdout, "");
    assert_eq!(again.assert_code(0).stdout, "");
}

/// The files are in the format of sqlx-cli, and both programs keep the same list.
#[tokio::test]
async fn oncepay_and_sqlx_apply_the_same_migrations() {
    let by_sqlx = TestDatabase::create_empty().await;
    let by_oncepay = TestDatabase::create_empty().await;
    let sqlx = |database: &TestDatabase, what: &str| {
        let mut command = Command::new("sqlx");
        command.args(["migrate", what, "--source", MIGRATIONS]);
        command.args(["--database-url", &database.url()]);
        run(command, MIGRATIONS.as_ref())
    };
    if Command::new("sqlx").arg("--version").output().is_err() {
        // Nothing to compare with; CI has it.
        return;
    }

    let run = sqlx(&by_sqlx, "run");
    let check = oncepay(&by_sqlx.url(), &["migrate", "--check"]);
    let migrate = oncepay(&by_oncepay.url(), &["migrate"]);
    let info = sqlx(&by_oncepay, "info");

    for said in [&run, &check, &migrate, &info] {
        said.assert_code(0);
    }
    let installed = info.stdout.matches("/installed").count();
    assert_eq!(installed, files().len(), "{}", info.stdout);
    assert!(!info.stdout.contains("different"), "{}", info.stdout);
}

#[tokio::test]
async fn a_service_refuses_an_old_schema_and_says_what_to_do() {
    let empty = TestDatabase::create_empty().await;
    let behind = TestDatabase::create().await;
    let newest = files().pop().unwrap();
    let forget = "DELETE FROM _sqlx_migrations
        WHERE version = (SELECT max(version) FROM _sqlx_migrations)";
    behind.execute(forget).await;
    let folder = tempfile::tempdir().unwrap();

    let (status, said) = Process::builder(&empty, folder.path()).fail();
    let (status_behind, said_behind) = Process::builder(&behind, folder.path()).fail();

    assert_eq!(status.code(), Some(1), "{said}");
    assert!(files().iter().all(|file| said.contains(file)), "{said}");
    assert_eq!(status_behind.code(), Some(1), "{said_behind}");
    assert!(said_behind.contains(&newest), "{said_behind}");
    for said in [said, said_behind] {
        assert!(said.contains("run `oncepay migrate`"), "{said}");
    }
}

/// During a rolling update an instance of this release meets the schema of the next: one that
/// serves goes on, and one that starts does not.
#[tokio::test]
async fn a_newer_schema_stops_a_start_and_not_a_service_that_runs() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let running = Process::builder(&database, folder.path()).start();
    let (_, secret) = database.merchant("T1").await;
    let client = Client::new(running.base(), &secret);

    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum,
        execution_time) VALUES (29990101000001, 'next', true, '', 0)";
    database.execute(newer).await;
    let (status, said) = Process::builder(&database, folder.path()).fail();

    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("29990101000001"), "{said}");
    assert!(said.contains("newer than this program"), "{said}");
    client.get("/readyz").await.assert_status(200);
    client.pay("K", &payment()).await.assert_status(201);
}

/// B37: a checkout with CRLF has applied a migration. The error names the file and the statement
/// that puts it right, and that statement does.
#[tokio::test]
async fn a_migration_applied_with_crlf_is_named_together_with_the_fix() {
    let database = TestDatabase::create().await;
    let file = files().remove(0);
    let version = file.split_once('_').unwrap().0.to_owned();
    let unix = std::fs::read_to_string(format!("{MIGRATIONS}/{file}")).unwrap();
    let checksum = hex::encode(Sha384::digest(unix.replace('\n', "\r\n")));
    let set =
        format!("UPDATE _sqlx_migrations SET checksum = '\\x{checksum}' WHERE version = {version}");
    database.execute(&set).await;
    let folder = tempfile::tempdir().unwrap();

    let (status, said) = Process::builder(&database, folder.path()).fail();
    let fix = said.find("UPDATE").map(|start| said.split_at(start).1);
    database.execute(fix.expect(&said).trim()).await;
    let check = oncepay(&database.url(), &["migrate", "--check"]);

    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains(&file), "{said}");
    assert!(said.contains("CRLF"), "{said}");
    check.assert_code(0);
}

/// B38: what was applied and edited since is named, and nothing starts on a guess.
#[tokio::test]
async fn a_migration_that_was_edited_after_it_was_applied_stops_a_start() {
    let database = TestDatabase::create().await;
    let file = files().pop().unwrap();
    let edit = "UPDATE _sqlx_migrations SET checksum = '\\x00'
        WHERE version = (SELECT max(version) FROM _sqlx_migrations)";
    database.execute(edit).await;
    let folder = tempfile::tempdir().unwrap();

    let (status, said) = Process::builder(&database, folder.path()).fail();

    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains(&file), "{said}");
    assert!(said.contains("was edited"), "{said}");
}

/// B40: databases of many tests at once come from one template, whole and apart.
#[tokio::test]
async fn fifty_databases_at_once_are_whole_and_apart() {
    let databases = futures_util::future::join_all((0..50).map(|_| TestDatabase::create())).await;

    for (number, database) in databases.iter().enumerate() {
        let (merchant_id, _) = database.merchant(&format!("T{number}")).await;
        let others = format!(
            "SELECT count(*) FROM merchants WHERE id <> '{}'",
            merchant_id.uuid()
        );
        assert_eq!(database.count(&others).await, 0);
    }
}

/// D14: on a migrated database a service answers within a second of its start; ten times that here,
/// where others build and test on the same two cores.
#[tokio::test]
async fn a_service_on_a_migrated_database_answers_soon_after_its_start() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let (_, secret) = database.merchant("T1").await;
    let started = std::time::Instant::now();

    let service = Process::builder(&database, folder.path()).start();
    let paid = Client::new(service.base(), &secret)
        .pay("K", &payment())
        .await;

    paid.assert_status(201);
    assert!(started.elapsed() < Duration::from_secs(10));
    let restarts = "worker_restarts_total{worker=\"cleaner\"}";
    assert_eq!(
        metrics::value(&service.metrics().await, restarts),
        Some(0.0)
    );
}
