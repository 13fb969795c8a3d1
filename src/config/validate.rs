//! From text to types. Reads everything before it gives up, so that all mistakes show at once.

use std::path::PathBuf;

use tracing_subscriber::EnvFilter;

use super::{
    CleanerSettings, ConfigErrors, DatabaseSettings, GatewayKind, GatewaySettings, HttpSettings,
    IdempotencySettings, KeyPolicy, LogFormat, LogSettings, RawCleaner, RawDatabase, RawGateway,
    RawHttp, RawIdempotency, RawLog, RawSettings, Settings,
    bounds::{BATCH_MAX, CLIENTS_MAX, CONNECTIONS_MAX, CONNECTIONS_MIN, TTL_FLOOR, TTL_MIN},
    reader::{Reader, Transport, given, is_live},
};

impl RawSettings {
    /// Checks every option and their relations.
    pub fn validate(self) -> Result<Settings, ConfigErrors> {
        let mut reader = Reader::default();
        let database = self.database.read(&mut reader);
        let http = self.http.read(&mut reader);
        let idempotency = self.idempotency.read(&mut reader);
        let gateway = self.gateway.read(&mut reader);
        let cleaner = self.cleaner.read(&mut reader);
        let log = self.log.read(&mut reader);
        if let (Some(http), Some(gateway)) = (&http, &gateway) {
            // Otherwise every slow payment would be a 202, whose answer was on its way.
            if http.request_timeout <= gateway.timeout {
                reader.refuse("REQUEST_TIMEOUT", "must be longer than GATEWAY_TIMEOUT");
            }
        }
        let settings = (|| {
            Some(Settings {
                database: database?,
                http: http?,
                idempotency: idempotency?,
                gateway: gateway?,
                cleaner: cleaner?,
                log: log?,
            })
        })();
        ConfigErrors::unless_any(reader.errors, settings)
    }
}

impl RawDatabase {
    /// For commands that need nothing but the database.
    pub fn validate(self) -> Result<DatabaseSettings, ConfigErrors> {
        let mut reader = Reader::default();
        let settings = self.read(&mut reader);
        ConfigErrors::unless_any(reader.errors, settings)
    }

    fn read(self, reader: &mut Reader) -> Option<DatabaseSettings> {
        let max_connections = reader.number(
            "DATABASE_MAX_CONNECTIONS",
            &self.database_max_connections,
            CONNECTIONS_MIN..=CONNECTIONS_MAX,
        );
        let url = reader.database_url(self.database_url);
        Some(DatabaseSettings {
            url: url?,
            max_connections: max_connections?,
        })
    }
}

impl RawHttp {
    fn read(&self, reader: &mut Reader) -> Option<HttpSettings> {
        let addr = reader.address("HTTP_ADDR", &self.http_addr);
        let metrics_addr = reader.address("METRICS_ADDR", &self.metrics_addr);
        // Port 0 means any free port, which two servers may both ask for.
        if addr.is_some_and(|addr| addr.port() != 0) && addr == metrics_addr {
            reader.refuse("METRICS_ADDR", "must differ from HTTP_ADDR");
        }
        let request_timeout = reader.duration("REQUEST_TIMEOUT", &self.request_timeout);
        let shutdown_timeout = reader.duration("SHUTDOWN_TIMEOUT", &self.shutdown_timeout);
        let header_read_timeout = reader.duration("HEADER_READ_TIMEOUT", &self.header_read_timeout);
        let body_read_timeout = reader.duration("BODY_READ_TIMEOUT", &self.body_read_timeout);
        let body_limit = reader.body_limit(&self.body_limit);
        let connections = reader.number("CONNECTIONS_MAX", &self.connections_max, 1..=CLIENTS_MAX);
        Some(HttpSettings {
            addr: addr?,
            metrics_addr: metrics_addr?,
            request_timeout: request_timeout?,
            shutdown_timeout: shutdown_timeout?,
            header_read_timeout: header_read_timeout?,
            body_read_timeout: body_read_timeout?,
            body_limit_bytes: body_limit?,
            connections_max: usize::try_from(connections?).ok()?,
        })
    }
}

impl RawIdempotency {
    /// For commands that store answers.
    pub fn validate(&self) -> Result<IdempotencySettings, ConfigErrors> {
        let mut reader = Reader::default();
        let settings = self.read(&mut reader);
        ConfigErrors::unless_any(reader.errors, settings)
    }

    fn read(&self, reader: &mut Reader) -> Option<IdempotencySettings> {
        let shortest = reader
            .choice(
                "ALLOW_SHORT_TTL",
                &self.allow_short_ttl,
                &[("false", TTL_MIN), ("true", TTL_FLOOR)],
            )
            .unwrap_or(TTL_MIN);
        let ttl = reader.ttl("IDEMPOTENCY_KEY_TTL", &self.idempotency_key_ttl, shortest);
        let mut ttl_of = |name, text: &Option<String>| match given(text.as_ref()) {
            Some(text) => reader.ttl(name, text, shortest),
            None => ttl,
        };
        let ttl_completed = ttl_of("IDEMPOTENCY_TTL_COMPLETED", &self.idempotency_ttl_completed);
        let ttl_failed = ttl_of("IDEMPOTENCY_TTL_FAILED", &self.idempotency_ttl_failed);
        let lease_ttl = reader.lease(&self.idempotency_lease_ttl);
        let key_policy = reader.choice(
            "IDEMPOTENCY_KEY_POLICY",
            &self.idempotency_key_policy,
            &[
                ("required", KeyPolicy::Required),
                ("optional", KeyPolicy::Optional),
            ],
        );
        let rescue_interval = reader.duration("RESCUE_INTERVAL", &self.rescue_interval);
        let max_age = reader.duration("RESCUE_SEND_MAX_AGE", &self.rescue_send_max_age);
        Some(IdempotencySettings {
            ttl_completed: ttl_completed?,
            ttl_failed: ttl_failed?,
            lease_ttl: lease_ttl?,
            key_policy: key_policy?,
            rescue_interval: rescue_interval?,
            rescue_send_max_age: max_age?,
        })
    }
}

impl RawGateway {
    /// For commands that ask the gateway and serve nothing.
    pub fn validate(self) -> Result<GatewaySettings, ConfigErrors> {
        let mut reader = Reader::default();
        let settings = self.read(&mut reader);
        ConfigErrors::unless_any(reader.errors, settings)
    }

    fn read(self, reader: &mut Reader) -> Option<GatewaySettings> {
        let timeout = reader.duration("GATEWAY_TIMEOUT", &self.gateway_timeout);
        let choices = [("sandbox", Chosen::Sandbox), ("stripe", Chosen::Stripe)];
        let kind = match reader.choice("GATEWAY", &self.gateway, &choices) {
            Some(Chosen::Sandbox) => Some(GatewayKind::Sandbox {
                dir: given(self.sandbox_dir.as_ref()).map(PathBuf::from),
            }),
            Some(Chosen::Stripe) => self.read_stripe(reader),
            None => None,
        };
        Some(GatewaySettings {
            kind: kind?,
            timeout: timeout?,
        })
    }

    fn read_stripe(self, reader: &mut Reader) -> Option<GatewayKind> {
        let secret_key = reader.stripe_secret_key(self.stripe_secret_key);
        let transport = reader.stripe_api_base(&self.stripe_api_base);
        let secret_key = secret_key?;
        // The key of a live account would cross the network in the clear.
        if transport? == Transport::Clear && is_live(&secret_key) {
            reader.refuse("STRIPE_API_BASE", "must be https:// with a live key");
            return None;
        }
        Some(GatewayKind::Stripe {
            api_base: self.stripe_api_base,
            secret_key,
        })
    }
}

#[derive(Clone, Copy)]
enum Chosen {
    Sandbox,
    Stripe,
}

impl RawCleaner {
    /// For the command that cleans on demand.
    pub fn validate(self) -> Result<CleanerSettings, ConfigErrors> {
        let mut reader = Reader::default();
        let settings = self.read(&mut reader);
        ConfigErrors::unless_any(reader.errors, settings)
    }

    fn read(&self, reader: &mut Reader) -> Option<CleanerSettings> {
        let interval = reader.duration("CLEANUP_INTERVAL", &self.cleanup_interval);
        let batch_size = reader.number(
            "CLEANUP_BATCH_SIZE",
            &self.cleanup_batch_size,
            1..=BATCH_MAX,
        );
        Some(CleanerSettings {
            interval: interval?,
            batch_size: batch_size?,
        })
    }
}

impl RawLog {
    /// For commands that only log.
    pub fn validate(self) -> Result<LogSettings, ConfigErrors> {
        let mut reader = Reader::default();
        let settings = self.read(&mut reader);
        ConfigErrors::unless_any(reader.errors, settings)
    }

    fn read(self, reader: &mut Reader) -> Option<LogSettings> {
        let formats = [("text", LogFormat::Text), ("json", LogFormat::Json)];
        let format = reader.choice("LOG_FORMAT", &self.log_format, &formats);
        if EnvFilter::builder().parse(&self.rust_log).is_err() {
            reader.refuse(
                "RUST_LOG",
                "must be filter directives such as warn,oncepay=info",
            );
        }
        Some(LogSettings {
            format: format?,
            filter: self.rust_log,
        })
    }
}
