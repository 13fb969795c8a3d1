//! A database of one test, and the two ways in which a test may touch it: a probe that reads, and
//! `age`, which moves the time of a row.

use std::sync::atomic::{AtomicU32, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use oncepay::ids::MerchantId;
use sqlx::{ConnectOptions as _, PgConnection, PgPool, postgres::PgConnectOptions};

use super::postgres::{Server, execute, server};

/// A migrated database that nobody else uses; dropped with its test.
#[derive(Debug)]
pub struct TestDatabase {
    server: &'static Server,
    name: String,
}

impl TestDatabase {
    pub async fn create() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = tokio::task::spawn_blocking(server).await.unwrap();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("oncepay_test_{}_{number}", std::process::id());
        let mut connection = server.options.connect().await.unwrap();
        let template = &server.template;
        execute(
            &mut connection,
            &format!("CREATE DATABASE {name} TEMPLATE {template}"),
        )
        .await;
        Self { server, name }
    }

    /// One that no migration has seen.
    pub async fn create_empty() -> Self {
        let database = Self::create().await;
        let name = &database.name;
        let mut connection = database.server.options.connect().await.unwrap();
        execute(&mut connection, &format!("DROP DATABASE {name}")).await;
        execute(&mut connection, &format!("CREATE DATABASE {name}")).await;
        database
    }

    pub fn options(&self) -> PgConnectOptions {
        self.server.options.clone().database(&self.name)
    }

    pub fn url(&self) -> String {
        self.options().to_url_lossy().to_string()
    }

    /// The password of the service, which must not be seen anywhere.
    pub fn password(&self) -> String {
        let url = self.url();
        let credentials = url.split('@').next().unwrap();
        credentials.rsplit(':').next().unwrap().to_owned()
    }

    pub async fn connect(&self) -> PgConnection {
        self.options().connect().await.unwrap()
    }

    /// A pool for whoever probes often.
    pub async fn pool(&self) -> PgPool {
        PgPool::connect_with(self.options()).await.unwrap()
    }

    /// One number that a query gives.
    pub async fn count(&self, query: &str) -> i64 {
        let mut connection = self.connect().await;
        sqlx::query_scalar(sqlx::AssertSqlSafe(query))
            .fetch_one(&mut connection)
            .await
            .unwrap()
    }

    /// One text that a query gives, or nothing where it gives no row.
    pub async fn text(&self, query: &str) -> Option<String> {
        let mut connection = self.connect().await;
        sqlx::query_scalar(sqlx::AssertSqlSafe(query))
            .fetch_optional(&mut connection)
            .await
            .unwrap()
            .flatten()
    }

    /// The texts that a query gives, one for each row.
    pub async fn texts(&self, query: &str) -> Vec<String> {
        let mut connection = self.connect().await;
        sqlx::query_scalar(sqlx::AssertSqlSafe(query))
            .fetch_all(&mut connection)
            .await
            .unwrap()
    }

    /// Records that finished and expired long ago, with their used keys, made without a service.
    pub async fn add_expired_records(&self, merchant_id: MerchantId, count: u32) {
        self.execute(&format!(
            "INSERT INTO used_keys (merchant_id, key, operation, resource_id)
             SELECT '{id}', 'expired-' || n, 'payments.create', gen_random_uuid()
             FROM generate_series(1, {count}) AS n;
             INSERT INTO idempotency_keys (
                merchant_id, key, operation, request_hash, hash_version, request, resource_id,
                gateway, gateway_key, first_sent_at, status, response_status, response_body,
                response_headers, fence, owner, attempts, request_id, created_at, completed_at,
                expires_at
             )
             SELECT '{id}', 'expired-' || n, 'payments.create',
                decode(repeat('00', 32), 'hex'), 1, '{{}}', gen_random_uuid(), 'sandbox',
                'gateway-key-' || n, now() - interval '2 days', 'completed', 201, '{{}}', '[]', 1,
                gen_random_uuid(), 1, 'request', now() - interval '2 days',
                now() - interval '2 days', now() - interval '1 day' - n * interval '1 ms'
             FROM generate_series(1, {count}) AS n",
            id = merchant_id.uuid(),
        ))
        .await;
    }

    /// Whether anything at all was written for payments: keys, records, payments or events.
    pub async fn untouched(&self) -> bool {
        let rows = "SELECT (SELECT count(*) FROM used_keys) + (SELECT count(*) FROM payments)
            + (SELECT count(*) FROM idempotency_keys) + (SELECT count(*) FROM events)";
        self.count(rows).await == 0
    }

    /// Runs a statement: for arranging what only an operator or a fault could do.
    pub async fn execute(&self, statement: &str) {
        execute(&mut self.connect().await, statement).await;
    }

    /// Runs a statement that may be refused; gives the SQLSTATE if it was.
    pub async fn try_execute(&self, statement: &str) -> Option<String> {
        let mut connection = self.connect().await;
        let done = sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
            .execute(&mut connection)
            .await;
        match done {
            Ok(_) => None,
            Err(error) => Some(error.as_database_error().unwrap().code().unwrap().into()),
        }
    }

    /// The one write of tests into records: everything about the key happened `by` earlier.
    pub async fn age(&self, key: &str, by: TimeDelta) {
        let which = format!("key = '{}'", key.replace('\'', "''"));
        let aged = age_in(&mut self.connect().await, &which, by).await;
        assert!(aged > 0, "there must be a record to age");
    }

    /// A merchant with an API key; gives the secret.
    pub async fn merchant(&self, name: &str) -> (MerchantId, String) {
        merchant_in(&mut self.connect().await, name).await
    }
}

/// Everything about the records that a condition names happened `by` earlier; says how many those
/// are.
pub async fn age_in(connection: &mut PgConnection, which: &str, by: TimeDelta) -> u64 {
    let statement = format!(
        "UPDATE idempotency_keys
         SET created_at = created_at - $1,
             first_sent_at = first_sent_at - $1,
             lease_expires_at = lease_expires_at - $1,
             unknown_since = unknown_since - $1,
             completed_at = completed_at - $1,
             expires_at = expires_at - $1
         WHERE {which}"
    );
    sqlx::query(sqlx::AssertSqlSafe(statement))
        .bind(by)
        .execute(connection)
        .await
        .unwrap()
        .rows_affected()
}

/// Whatever the gateway has still to decide is asked about at the next opportunity.
pub async fn poll_pending_in(connection: &mut PgConnection) {
    execute(
        connection,
        "UPDATE pending_payments SET next_poll_at = now() WHERE next_poll_at > now()",
    )
    .await;
}

/// A merchant with an API key in any database; gives the secret.
pub async fn merchant_in(connection: &mut PgConnection, name: &str) -> (MerchantId, String) {
    let now: DateTime<Utc> = sqlx::query_scalar("SELECT now()")
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    let name = oncepay::merchants::Name::parse(name).unwrap();
    let merchant = oncepay::merchants::create_merchant(connection, name, now)
        .await
        .unwrap();
    let (_key, secret) = oncepay::merchants::create_api_key(connection, merchant.id, None, now)
        .await
        .unwrap();
    (merchant.id, secret.expose().to_owned())
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let options = self.server.options.clone();
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // On the runtime that outlives the test; nobody waits for it.
        self.server.runtime.spawn(async move {
            if let Ok(mut connection) = options.connect().await {
                let dropped = sqlx::raw_sql(sqlx::AssertSqlSafe(statement));
                drop(dropped.execute(&mut connection).await);
            }
        });
    }
}
