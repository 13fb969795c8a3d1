//! Reads single options and collects what is wrong with them.

use std::{fmt::Display, net::SocketAddr, ops::RangeInclusive, time::Duration};

use bytesize::ByteSize;
use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::PgConnectOptions;

use super::{
    ConfigError,
    bounds::{BODY_MAX, BODY_MIN, DURATION_MAX, LEASE_MAX, LEASE_MIN},
};

/// What is wrong so far. A method that answers `None` has noted why.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) errors: Vec<ConfigError>,
}

impl Reader {
    pub(super) fn refuse(&mut self, name: &'static str, message: impl Into<String>) {
        self.errors.push(ConfigError {
            name,
            message: message.into(),
        });
    }

    /// A duration above zero, such as `30s`.
    pub(super) fn duration(&mut self, name: &'static str, text: &str) -> Option<Duration> {
        match humantime::parse_duration(text) {
            Ok(duration) if duration.is_zero() => {
                self.refuse(name, "must be longer than zero");
                None
            }
            Ok(duration) if duration > DURATION_MAX => {
                self.refuse(name, format!("must be at most {}", written(DURATION_MAX)));
                None
            }
            Ok(duration) => Some(duration),
            Err(_) => {
                self.refuse(name, "must be a duration such as 30s or 24h");
                None
            }
        }
    }

    pub(super) fn ttl(
        &mut self,
        name: &'static str,
        text: &str,
        shortest: Duration,
    ) -> Option<Duration> {
        let ttl = self.duration(name, text)?;
        if ttl < shortest {
            let shortest = written(shortest);
            self.refuse(
                name,
                format!("must be at least {shortest}, or start with --allow-short-ttl"),
            );
            return None;
        }
        Some(ttl)
    }

    pub(super) fn lease(&mut self, text: &str) -> Option<Duration> {
        const NAME: &str = "IDEMPOTENCY_LEASE_TTL";
        let lease = self.duration(NAME, text)?;
        if !(LEASE_MIN..=LEASE_MAX).contains(&lease) {
            let (shortest, longest) = (written(LEASE_MIN), written(LEASE_MAX));
            self.refuse(NAME, format!("must be between {shortest} and {longest}"));
            return None;
        }
        Some(lease)
    }

    pub(super) fn number(
        &mut self,
        name: &'static str,
        text: &str,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        let number = text.parse().ok().filter(|number| range.contains(number));
        if number.is_none() {
            let (least, most) = range.into_inner();
            self.refuse(
                name,
                format!("must be a whole number from {least} to {most}"),
            );
        }
        number
    }

    pub(super) fn body_limit(&mut self, text: &str) -> Option<usize> {
        let limit = text
            .parse::<ByteSize>()
            .ok()
            .map(|size| size.as_u64())
            .filter(|bytes| (BODY_MIN..=BODY_MAX).contains(bytes))
            .and_then(|bytes| usize::try_from(bytes).ok());
        if limit.is_none() {
            self.refuse(
                "BODY_LIMIT",
                "must be a size from 1KiB to 1MiB, such as 64KiB",
            );
        }
        limit
    }

    pub(super) fn address(&mut self, name: &'static str, text: &str) -> Option<SocketAddr> {
        let addr = text.parse().ok();
        if addr.is_none() {
            self.refuse(
                name,
                "must be an IP address and a port such as 127.0.0.1:8080",
            );
        }
        addr
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        text: &str,
        choices: &[(&'static str, T)],
    ) -> Option<T> {
        let choice = choices.iter().find(|(word, _)| *word == text);
        if choice.is_none() {
            let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
            self.refuse(name, format!("must be {}", words.join(" or ")));
        }
        choice.map(|(_, value)| *value)
    }

    pub(super) fn database_url(&mut self, url: Option<SecretString>) -> Option<SecretString> {
        const NAME: &str = "DATABASE_URL";
        let Some(url) = url.filter(|url| !url.expose_secret().is_empty()) else {
            self.refuse(NAME, "is missing; it says where PostgreSQL is");
            return None;
        };
        let text = url.expose_secret();
        let known = text.starts_with("postgres://") || text.starts_with("postgresql://");
        // The parser's own error is dropped: it repeats parts of the URL.
        if !known || text.parse::<PgConnectOptions>().is_err() {
            self.refuse(
                NAME,
                "must be a URL such as postgres://user:password@host:5432/name",
            );
            return None;
        }
        Some(url)
    }

    /// A secret or restricted key: a publishable one (`pk_…`) cannot charge.
    pub(super) fn stripe_secret_key(&mut self, key: Option<SecretString>) -> Option<SecretString> {
        const NAME: &str = "STRIPE_SECRET_KEY";
        let Some(key) = key.filter(|key| !key.expose_secret().is_empty()) else {
            self.refuse(NAME, "is missing; the stripe gateway needs it");
            return None;
        };
        let text = key.expose_secret();
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        if !plain || !(text.starts_with("sk_") || text.starts_with("rk_")) {
            self.refuse(NAME, "must be a secret key, which begins with sk_ or rk_");
            return None;
        }
        Some(key)
    }

    /// A scheme, a host and perhaps a port: paths are ours to add.
    pub(super) fn stripe_api_base(&mut self, text: &str) -> Option<Transport> {
        let transport = text.parse::<hyper::Uri>().ok().and_then(|uri| {
            let bare = uri.path() == "/" && uri.query().is_none() && !text.ends_with('?');
            let host = uri.authority()?;
            match uri.scheme_str()? {
                "https" if bare && !host.as_str().contains('@') => Some(Transport::Encrypted),
                "http" if bare && !host.as_str().contains('@') => Some(Transport::Clear),
                _ => None,
            }
        });
        if transport.is_none() {
            self.refuse(
                "STRIPE_API_BASE",
                "must be an address such as https://api.stripe.com",
            );
        }
        transport
    }
}

/// Whether what is sent can be read on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Clear,
    Encrypted,
}

/// Whether the key of a Stripe account moves real money. Test keys say so; what says nothing is
/// taken for live.
pub(super) fn is_live(secret_key: &SecretString) -> bool {
    let key = secret_key.expose_secret();
    !(key.starts_with("sk_test_") || key.starts_with("rk_test_"))
}

/// An option that was written and is not empty: compose files pass on variables that nobody set.
pub(super) fn given(text: Option<&String>) -> Option<&String> {
    text.filter(|text| !text.is_empty())
}

fn written(duration: Duration) -> impl Display {
    humantime::format_duration(duration)
}
