//! The commands of administration, through the binary.

use crate::support::{
    app::TestApp,
    client::{Client, payment, payment_with},
    command::{Said, oncepay},
    database::TestDatabase,
    process::Process,
};

fn text<'a>(object: &'a serde_json::Value, member: &str) -> &'a str {
    object[member]
        .as_str()
        .unwrap_or_else(|| panic!("{member} of {object}"))
}

/// Makes a merchant and an API key; gives the merchant's id and what `create` printed.
fn create(url: &str) -> (String, Said) {
    let merchant = oncepay(url, &["merchants", "create", "Shop"]);
    let merchant = merchant.assert_code(0).objects().remove(0);
    let id = text(&merchant, "id").to_owned();
    assert_eq!(merchant["name"], "Shop");
    let key = oncepay(
        url,
        &["api-keys", "create", "--merchant", &id, "--name", "till"],
    );
    key.assert_code(0);
    (id, key)
}

#[tokio::test]
async fn a_merchant_and_an_api_key_made_by_commands_can_pay() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let service = Process::builder(&database, folder.path()).start();

    let (_, key) = create(&database.url());
    let key = key.objects().remove(0);
    let client = Client::new(service.base(), text(&key, "secret"));
    let paid = client.pay("K", &payment()).await;

    paid.assert_status(201);
    assert_eq!(key["name"], "till");
    assert_eq!(key["revoked_at"], serde_json::Value::Null);
}

/// I17 and B73: the secret is on the stdout of `create`, once, and nowhere else.
#[tokio::test]
async fn the_secret_of_an_api_key_is_printed_once_and_kept_nowhere() {
    let database = TestDatabase::create().await;
    let url = database.url();

    let (merchant, created) = create(&url);
    let key = created.objects().remove(0);
    let secret = text(&key, "secret");
    let listed = oncepay(&url, &["api-keys", "list", "--merchant", &merchant]);
    let revoked = oncepay(&url, &["api-keys", "revoke", text(&key, "id")]);

    assert_eq!(created.stdout.matches(secret).count(), 1);
    for said in [&listed, &revoked] {
        said.assert_code(0);
        assert!(!said.stdout.contains(secret) && !said.stdout.contains("secret"));
    }
    let secret_part = secret.rsplit_once('_').map_or(secret, |(_, part)| part);
    for said in [&created, &listed, &revoked] {
        assert!(!said.stderr.contains(secret_part), "{}", said.stderr);
    }
    let kept = format!("SELECT count(*) FROM api_keys WHERE api_keys::text LIKE '%{secret_part}%'");
    assert_eq!(database.count(&kept).await, 0);
}

#[tokio::test]
async fn a_revoked_api_key_is_refused_and_the_others_of_the_merchant_are_not() {
    let database = TestDatabase::create().await;
    let url = database.url();
    let folder = tempfile::tempdir().unwrap();
    let service = Process::builder(&database, folder.path()).start();
    let (merchant, first) = create(&url);
    let first = first.objects().remove(0);
    let second = oncepay(&url, &["api-keys", "create", "--merchant", &merchant]);
    let second = second.objects().remove(0);

    let revoked = oncepay(&url, &["api-keys", "revoke", text(&first, "id")]);
    let again = oncepay(&url, &["api-keys", "revoke", text(&first, "id")]);
    let refused = Client::new(service.base(), text(&first, "secret"));
    let refused = refused.pay("K", &payment()).await;
    let paid = Client::new(service.base(), text(&second, "secret"));
    let paid = paid.pay("K", &payment()).await;

    refused.assert_problem(401, "unauthenticated");
    paid.assert_status(201);
    let revoked_at = |said: &Said| said.assert_code(0).objects().remove(0)["revoked_at"].clone();
    assert!(revoked_at(&revoked).is_string());
    assert_eq!(
        revoked_at(&again),
        revoked_at(&revoked),
        "the first one counts"
    );
    let listed = oncepay(&url, &["api-keys", "list", "--merchant", &merchant]).objects();
    assert_eq!(listed.len(), 2, "revoked keys are listed too");
    assert_eq!(listed[0]["revoked_at"], revoked_at(&revoked));
}

#[tokio::test]
async fn what_does_not_exist_is_refused_with_a_word_about_it() {
    let database = TestDatabase::create().await;
    let url = database.url();
    let merchant = "mer_0192f0c1a2b37c4d8e5f60718293a4b5";
    let key = "key_0192f0c1a2b37c4d8e5f60718293a4b5";

    let create = oncepay(&url, &["api-keys", "create", "--merchant", merchant]);
    let list = oncepay(&url, &["api-keys", "list", "--merchant", merchant]);
    let revoke = oncepay(&url, &["api-keys", "revoke", key]);
    let nameless = oncepay(&url, &["merchants", "create", ""]);

    for said in [&create, &list, &revoke, &nameless] {
        assert_ne!(said.code, 0, "{said:?}");
        assert_eq!(said.stdout, "");
        assert!(said.stderr.starts_with("error: "), "{}", said.stderr);
    }
    for said in [&create, &list] {
        assert!(said.stderr.contains("merchant"), "{}", said.stderr);
    }
    assert_eq!(database.count("SELECT count(*) FROM api_keys").await, 0);
}

#[tokio::test]
async fn a_command_refuses_a_schema_that_is_behind() {
    let database = TestDatabase::create_empty().await;

    let said = oncepay(&database.url(), &["merchants", "create", "Shop"]);

    said.assert_code(1);
    assert!(
        said.stderr.contains("run `oncepay migrate`"),
        "{}",
        said.stderr
    );
}

/// I17: the password of the database is in no message of a command that cannot connect.
#[tokio::test]
async fn a_command_that_cannot_reach_the_database_says_so_without_the_password() {
    let nowhere = "postgres://oncepay:hush-hush@127.0.0.1:1/oncepay";

    let said = oncepay(nowhere, &["merchants", "create", "Shop"]);

    said.assert_code(1);
    assert!(
        said.stderr.contains("database cannot be reached"),
        "{}",
        said.stderr
    );
    assert!(!said.stderr.contains("hush-hush"), "{}", said.stderr);
}

/// D7: for cron and Kubernetes: deletes what is expired in batches, says how much, and leaves what
/// is live or in progress.
#[tokio::test]
async fn cleanup_deletes_expired_records_in_batches_and_prints_how_many() {
    let app = TestApp::start().await;
    app.client.pay("live", &payment()).await.assert_status(201);
    let unknown = app.client.pay("unknown", &payment_with("pm_unknown")).await;
    unknown.assert_status(202);
    app.database.add_expired_records(app.merchant_id, 25).await;
    let url = app.database.url();
    let arguments = [
        "cleanup",
        "--cleanup-batch-size",
        "10",
        "--database-url",
        &url,
    ];

    let first = oncepay("postgres://nobody@127.0.0.1:1/nothing", &arguments);
    let second = oncepay(&url, &["cleanup"]);

    assert_eq!(
        first.assert_code(0).stdout,
        "{\"rows_deleted\":25,\"batches\":3}\n"
    );
    assert_eq!(
        second.assert_code(0).stdout,
        "{\"rows_deleted\":0,\"batches\":1}\n"
    );
    let left = app
        .database
        .texts("SELECT key FROM idempotency_keys ORDER BY key")
        .await;
    assert_eq!(left, ["live", "unknown"]);
}
