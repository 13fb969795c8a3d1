//! What is refused, all at once, and that nobody can read the secret.

use clap::{Args, Command};

use super::*;

const URL: &str = "postgres://oncepay:hunter2@localhost:5432/oncepay";

fn raw() -> RawSettings {
    let mut raw = RawSettings::defaults();
    raw.database.database_url = Some(SecretString::from(URL));
    raw
}

fn refused(raw: RawSettings) -> Vec<&'static str> {
    let errors = raw.validate().expect_err("these settings must be refused");
    errors.as_slice().iter().map(|error| error.name).collect()
}

#[test]
fn the_defaults_and_a_database_are_enough() {
    let settings = Settings::for_database(URL).unwrap();

    assert_eq!(settings.database.max_connections, 20);
    assert_eq!(settings.http.body_limit_bytes, 64 * 1024);
    assert_eq!(settings.idempotency.ttl_failed, Duration::from_hours(24));
    assert_eq!(
        settings.idempotency.heartbeat_interval(),
        Duration::from_millis(7500)
    );
    assert!(matches!(
        settings.gateway.kind,
        GatewayKind::Sandbox { dir: None }
    ));
}

#[test]
fn a_ttl_per_status_replaces_the_key_ttl() {
    let mut raw = raw();
    raw.idempotency.idempotency_ttl_failed = Some("2h".to_owned());

    let settings = raw.validate().unwrap();

    assert_eq!(settings.idempotency.ttl_failed, Duration::from_hours(2));
    assert_eq!(settings.idempotency.ttl_completed, Duration::from_hours(24));
}

/// One way to break one option: its name, the value, and where to write it.
type Breakage = (&'static str, &'static str, fn(&mut RawSettings, String));

macro_rules! breakages {
    ($($name:literal $value:literal => $group:ident.$field:ident;)*) => {
        &[$(($name, $value, |raw, text| raw.$group.$field = text.into()),)*]
    };
}

const BREAKAGES: &[Breakage] = breakages! {
    "DATABASE_MAX_CONNECTIONS" "3" => database.database_max_connections;
    "DATABASE_MAX_CONNECTIONS" "1001" => database.database_max_connections;
    "HTTP_ADDR" "localhost" => http.http_addr;
    "METRICS_ADDR" "localhost:9090" => http.metrics_addr;
    "METRICS_ADDR" "127.0.0.1" => http.metrics_addr;
    "REQUEST_TIMEOUT" "10s" => http.request_timeout;
    "REQUEST_TIMEOUT" "0s" => http.request_timeout;
    "SHUTDOWN_TIMEOUT" "30" => http.shutdown_timeout;
    "HEADER_READ_TIMEOUT" "-1s" => http.header_read_timeout;
    "BODY_READ_TIMEOUT" "" => http.body_read_timeout;
    "BODY_LIMIT" "1023" => http.body_limit;
    "BODY_LIMIT" "2MiB" => http.body_limit;
    "CONNECTIONS_MAX" "0" => http.connections_max;
    "IDEMPOTENCY_KEY_TTL" "59m" => idempotency.idempotency_key_ttl;
    "IDEMPOTENCY_KEY_TTL" "400d" => idempotency.idempotency_key_ttl;
    "IDEMPOTENCY_TTL_COMPLETED" "59m" => idempotency.idempotency_ttl_completed;
    "IDEMPOTENCY_TTL_FAILED" "often" => idempotency.idempotency_ttl_failed;
    "ALLOW_SHORT_TTL" "yes" => idempotency.allow_short_ttl;
    "IDEMPOTENCY_LEASE_TTL" "1999ms" => idempotency.idempotency_lease_ttl;
    "IDEMPOTENCY_LEASE_TTL" "61m" => idempotency.idempotency_lease_ttl;
    "IDEMPOTENCY_KEY_POLICY" "Required" => idempotency.idempotency_key_policy;
    "RESCUE_INTERVAL" "0s" => idempotency.rescue_interval;
    "RESCUE_SEND_MAX_AGE" "0s" => idempotency.rescue_send_max_age;
    "GATEWAY" "paypal" => gateway.gateway;
    "GATEWAY_TIMEOUT" "soon" => gateway.gateway_timeout;
    "CLEANUP_INTERVAL" "0s" => cleaner.cleanup_interval;
    "CLEANUP_BATCH_SIZE" "0" => cleaner.cleanup_batch_size;
    "CLEANUP_BATCH_SIZE" "10001" => cleaner.cleanup_batch_size;
    "LOG_FORMAT" "xml" => log.log_format;
    "RUST_LOG" "oncepay=loud" => log.rust_log;
};

#[test]
fn each_bad_value_is_refused_by_its_own_name_only() {
    for (name, value, break_it) in BREAKAGES {
        let mut raw = raw();
        break_it(&mut raw, (*value).to_owned());

        assert_eq!(refused(raw), [*name], "{name}={value}");
    }
}

#[test]
fn a_database_url_that_names_no_postgresql_is_refused() {
    for url in [
        "",
        "oncepay",
        "mysql://a:b@c/d",
        "postgres://h/d?sslmode=perhaps",
    ] {
        let mut raw = raw();
        raw.database.database_url = Some(SecretString::from(url));

        assert_eq!(refused(raw), ["DATABASE_URL"], "{url:?}");
    }
}

#[test]
fn two_servers_do_not_share_an_address_unless_it_is_any_free_port() {
    let mut raw = raw();
    raw.http.metrics_addr.clone_from(&raw.http.http_addr);

    assert_eq!(refused(raw), ["METRICS_ADDR"]);
    assert!(Settings::for_database(URL).is_ok(), "two free ports");
}

#[test]
fn all_bad_values_are_reported_together() {
    let mut raw = RawSettings::defaults();
    for (_, value, break_it) in BREAKAGES {
        break_it(&mut raw, (*value).to_owned());
    }

    let reported = refused(raw);

    let broken = BREAKAGES.iter().map(|(name, ..)| *name);
    for name in broken.chain(["DATABASE_URL"]) {
        assert!(
            reported.contains(&name),
            "{name} is missing in {reported:?}"
        );
    }
}

#[test]
fn a_short_ttl_is_accepted_only_when_asked_for() {
    let mut raw = raw();
    raw.idempotency.idempotency_key_ttl = "10s".to_owned();
    assert_eq!(refused(raw.clone()), ["IDEMPOTENCY_KEY_TTL"]);

    raw.idempotency.allow_short_ttl = "true".to_owned();

    let settings = raw.clone().validate().unwrap();
    assert_eq!(settings.idempotency.ttl_completed, Duration::from_secs(10));

    // Below a microsecond it would be none in PostgreSQL, and no settle could store its answer.
    raw.idempotency.idempotency_key_ttl = "500ns".to_owned();
    assert_eq!(refused(raw), ["IDEMPOTENCY_KEY_TTL"]);
}

/// Settings for the stripe gateway.
fn stripe(api_base: &str, secret_key: &str) -> RawSettings {
    let mut raw = raw();
    "stripe".clone_into(&mut raw.gateway.gateway);
    api_base.clone_into(&mut raw.gateway.stripe_api_base);
    raw.gateway.stripe_secret_key = Some(SecretString::from(secret_key));
    raw
}

#[test]
fn stripe_needs_an_address_and_a_secret_key() {
    const BASE: &str = "https://api.stripe.com";
    assert!(stripe(BASE, "sk_live_x").validate().is_ok());
    assert!(stripe(BASE, "rk_live_x").validate().is_ok());
    for key in ["", "pk_live_x", "sk_live_x\n", "sk_live x"] {
        assert_eq!(refused(stripe(BASE, key)), ["STRIPE_SECRET_KEY"], "{key:?}");
    }
    for base in [
        "",
        "api.stripe.com",
        "ftp://h",
        "https://h/v1",
        "https://h?",
        "https://u:p@h",
    ] {
        let refused = refused(stripe(base, "sk_test_x"));
        assert_eq!(refused, ["STRIPE_API_BASE"], "{base:?}");
    }
}

#[test]
fn a_key_that_may_be_live_is_never_sent_in_the_clear() {
    const BASE: &str = "http://127.0.0.1:12111";
    assert!(stripe(BASE, "sk_test_x").validate().is_ok());
    for key in ["sk_live_x", "rk_live_x", "sk_x"] {
        assert_eq!(refused(stripe(BASE, key)), ["STRIPE_API_BASE"], "{key}");
    }
}

#[test]
fn the_stripe_key_is_in_no_debug_output() {
    let raw = stripe("https://api.stripe.com", "sk_live_hunter2");

    let debug = format!("{raw:?} {:?}", raw.clone().validate().unwrap());

    assert!(!debug.contains("hunter2"), "a secret is in: {debug}");
}

#[test]
fn the_password_is_in_no_debug_output_and_no_message() {
    let debug = format!("{:?} {:?}", raw(), Settings::for_database(URL).unwrap());
    let mut broken = raw();
    broken.database.database_url = Some(SecretString::from("postgres://h/d?sslmode=hunter2"));
    let message = broken.validate().unwrap_err().to_string();

    assert!(debug.contains("REDACTED"), "{debug}");
    for text in [debug, message] {
        assert!(!text.contains("hunter2"), "a secret is in: {text}");
    }
}

#[test]
fn help_hides_the_values_of_the_environment() {
    for arg in RawSettings::augment_args(Command::new("help")).get_arguments() {
        assert!(
            arg.is_hide_env_values_set(),
            "{} shows its value",
            arg.get_id()
        );
    }
}

/// `.env.example` and the options are two descriptions of one thing.
#[test]
fn the_example_file_lists_every_option_with_its_default() {
    let example = include_str!("../../.env.example");
    let mut expected = Vec::new();
    for arg in RawSettings::augment_args(Command::new("example")).get_arguments() {
        let name = arg.get_env().unwrap().to_str().unwrap();
        assert_eq!(
            arg.get_long().unwrap().to_uppercase().replace('-', "_"),
            name,
            "option and variable have one name"
        );
        match arg.get_default_values() {
            [default] => expected.push(format!("{name}={}", default.to_str().unwrap())),
            _ => expected.push(format!("# {name}=")),
        }
    }

    // Options without a default are shown as comments, with any example.
    let listed: Vec<_> = example
        .lines()
        .filter_map(|line| match line.strip_prefix("# ") {
            Some(comment) => {
                let (name, _) = comment.split_once('=')?;
                let named = name
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte == b'_');
                named.then(|| format!("# {name}="))
            }
            None => line.contains('=').then(|| line.to_owned()),
        })
        .collect();

    assert_eq!(
        listed, expected,
        "order, names and defaults are those of config/raw.rs"
    );
}
