//! The names of our own rows: a prefix that says what it is, and a UUID.
//!
//! In tables the bare UUID is kept; the prefix exists in JSON, headers and logs only. Ids of rows
//! that are listed by age are version 7 (RFC 9562), so that their order is the order of creation.

use std::{fmt, str::FromStr};

use chrono::{DateTime, Utc};
use uuid::{NoContext, Timestamp, Uuid};

/// The text is not an id of the expected kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {kind} id")]
pub struct InvalidId {
    kind: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            pub const fn uuid(self) -> Uuid {
                self.0
            }

            /// A new id whose order follows `at`.
            pub fn generate(at: DateTime<Utc>) -> Self {
                Self(uuid_v7(at))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0.simple())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                text.strip_prefix($prefix)
                    .and_then(parse_simple)
                    .map(Self)
                    .ok_or(InvalidId { kind: $kind })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

id!(
    /// The tenant: owner of all rows.
    MerchantId, "mer_", "merchant"
);
id!(
    /// A merchant's credential; its secret is never stored.
    ApiKeyId, "key_", "API key"
);
id!(
    /// A payment.
    PaymentId, "pay_", "payment"
);
id!(
    /// A fact in the outbox.
    EventId, "evt_", "event"
);
id!(
    /// One HTTP request, as answered in `Request-Id`.
    RequestId, "req_", "request"
);

impl PaymentId {
    /// When the payment was first asked for, as its id says: whole milliseconds.
    pub fn created_at(self) -> Option<DateTime<Utc>> {
        let (seconds, nanoseconds) = self.0.get_timestamp()?.to_unix();
        DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanoseconds)
    }

    /// No id of the millisecond of `at`, or later, is below this one.
    pub fn lowest_at(at: DateTime<Utc>) -> Self {
        let millis = u64::try_from(at.timestamp_millis()).unwrap_or(0);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &[0; 10]).into_uuid())
    }
}

/// One spelling per id: 32 lower-case hexadecimal digits, nothing else that `Uuid` would accept.
fn parse_simple(text: &str) -> Option<Uuid> {
    let canonical = text.len() == 32
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'));
    canonical.then(|| Uuid::try_parse(text).ok()).flatten()
}

fn uuid_v7(at: DateTime<Utc>) -> Uuid {
    let seconds = u64::try_from(at.timestamp()).unwrap_or(0);
    Uuid::new_v7(Timestamp::from_unix(
        NoContext,
        seconds,
        at.timestamp_subsec_nanos(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let id = PaymentId::generate(DateTime::UNIX_EPOCH);
        let text = id.to_string();

        assert_eq!(text.parse(), Ok(id));
        for other in [
            text.to_uppercase(),
            text.replace("pay_", "mer_"),
            text.replace("pay_", ""),
            format!("pay_{}", id.uuid()),
            format!("{text}0"),
            "pay_".to_owned(),
        ] {
            assert!(
                other.parse::<PaymentId>().is_err(),
                "{other} must be refused"
            );
        }
    }

    #[test]
    fn an_id_is_bounded_by_the_time_at_which_it_was_made() {
        let at = DateTime::UNIX_EPOCH + chrono::TimeDelta::milliseconds(1_796_000_000_123);
        let id = PaymentId::generate(at);

        assert_eq!(id.created_at(), Some(at));
        assert!(PaymentId::lowest_at(at) <= id);
        assert!(id < PaymentId::lowest_at(at + chrono::TimeDelta::milliseconds(1)));
    }

    #[test]
    fn later_ids_sort_after_earlier_ones() {
        let early = PaymentId::generate(DateTime::UNIX_EPOCH);
        let late = PaymentId::generate(DateTime::UNIX_EPOCH + chrono::TimeDelta::milliseconds(1));

        assert!(early < late);
    }
}
