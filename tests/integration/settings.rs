//! Settings of a process: all mistakes at once, by name, and no value repeated.

use crate::support::{client::Client, database::TestDatabase, process::Process};

/// I17: a secret that was pasted into the wrong option must not be in the logs.
#[tokio::test]
async fn all_bad_settings_are_reported_together_by_name_and_without_their_values() {
    let folder = tempfile::tempdir().unwrap();
    let bad = [
        ("DATABASE_URL", "mysql://oncepay:hush-hush-1@localhost/x"),
        ("DATABASE_MAX_CONNECTIONS", "3"),
        ("HTTP_ADDR", "hush-hush-2"),
        ("METRICS_ADDR", "localhost"),
        ("REQUEST_TIMEOUT", "0s"),
        ("BODY_LIMIT", "64"),
        ("IDEMPOTENCY_KEY_TTL", "hush-hush-3"),
        ("IDEMPOTENCY_LEASE_TTL", "1500ms"),
        ("IDEMPOTENCY_KEY_POLICY", "never"),
        ("CLEANUP_INTERVAL", "-1s"),
        ("CLEANUP_BATCH_SIZE", "0"),
        ("GATEWAY", "hush-hush-4"),
        ("LOG_FORMAT", "xml"),
        ("RUST_LOG", "oncepay=hush-hush-5"),
    ];
    let mut builder = Process::at_url("", folder.path());
    for (name, value) in bad {
        builder = builder.env(name, value);
    }

    let (status, said) = builder.fail();

    assert_eq!(status.code(), Some(2), "{said}");
    for (name, _) in bad {
        assert!(said.contains(&format!("\n  {name}: ")), "{name} in {said}");
    }
    assert!(!said.contains("hush-hush"), "{said}");
}

#[tokio::test]
async fn settings_are_related_to_each_other() {
    let folder = tempfile::tempdir().unwrap();

    let (status, said) = Process::at_url("postgres://h/d", folder.path())
        .env("ALLOW_SHORT_TTL", "false")
        .env("IDEMPOTENCY_TTL_FAILED", "59m")
        .env("REQUEST_TIMEOUT", "10s")
        .env("GATEWAY_TIMEOUT", "10s")
        .fail();

    assert_eq!(status.code(), Some(2), "{said}");
    assert!(
        said.contains("IDEMPOTENCY_TTL_FAILED: must be at least 1h"),
        "{said}"
    );
    assert!(
        said.contains("REQUEST_TIMEOUT: must be longer than GATEWAY_TIMEOUT"),
        "{said}"
    );
}

#[tokio::test]
async fn a_file_named_env_is_read_and_the_environment_outranks_it() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let file = format!(
        "# comment\nDATABASE_URL={}\nIDEMPOTENCY_KEY_TTL=7s\nIDEMPOTENCY_TTL_FAILED=5s\n",
        database.url()
    );
    std::fs::write(folder.path().join(".env"), file).unwrap();

    let service = Process::builder(&database, folder.path())
        .env_remove("DATABASE_URL")
        .env("IDEMPOTENCY_TTL_FAILED", "6s")
        .start();

    let (_, secret) = database.merchant("T1").await;
    let meta = Client::new(service.base(), &secret).get("/v1/meta").await;
    let meta = meta.assert_status(200).json();
    let ttl = &meta["idempotency_key"]["ttl_seconds"];
    assert_eq!(ttl["completed"], 7, "of the file: {meta}");
    assert_eq!(ttl["failed"], 6, "of the environment: {meta}");
}

/// I17: the line that cannot be read may hold a secret.
#[tokio::test]
async fn a_malformed_file_named_env_is_refused_without_being_repeated() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(".env"), "DATABASE_URL 'hush-hush\n").unwrap();

    let (status, said) = Process::at_url("postgres://h/d", folder.path()).fail();

    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains(".env is malformed"), "{said}");
    assert!(!said.contains("hush-hush"), "{said}");
}
