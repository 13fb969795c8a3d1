//! Merchants and their API keys.
//!
//! It promises that an API key's secret is shown once, to whoever creates it, and is not stored:
//! the table has a hash. It refuses a presented secret that is malformed, unknown, wrong or
//! revoked with one and the same answer, so that nobody learns which it was.
//!
//! A merchant's name is for people only; nothing is looked up by it, and two may be equal.

pub mod api_key;
pub mod error;
mod store;

use std::fmt;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

pub use self::{
    api_key::ApiKeySecret,
    error::{AuthError, MerchantError},
};
use crate::ids::{ApiKeyId, MerchantId};

/// Longer names are texts pasted by mistake; this one fits on a line.
pub const NAME_CHARS_MAX: usize = 200;

/// The tenant: owner of all rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merchant {
    pub id: MerchantId,
    pub name: Name,
    pub created_at: DateTime<Utc>,
}

/// A credential, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    pub id: ApiKeyId,
    pub merchant_id: MerchantId,
    pub name: Option<String>,
    /// The public part of the secret, by which people recognise it.
    pub prefix: String,
    pub created_at: DateTime<Utc>,
    pub revoked_at: Option<DateTime<Utc>>,
}

/// Who sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authenticated {
    pub merchant_id: MerchantId,
    pub api_key_id: ApiKeyId,
}

/// A name for people: one line, not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    pub fn parse(text: &str) -> Result<Self, MerchantError> {
        let name = text.trim();
        let fits = (1..=NAME_CHARS_MAX).contains(&name.chars().count());
        if !fits || name.chars().any(char::is_control) {
            return Err(MerchantError::InvalidName);
        }
        Ok(Self(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Makes a merchant, and the counter that numbers its events, or neither.
pub async fn create_merchant(
    connection: &mut PgConnection,
    name: Name,
    now: DateTime<Utc>,
) -> Result<Merchant, MerchantError> {
    let merchant = Merchant {
        id: MerchantId::generate(now),
        name,
        created_at: now,
    };
    store::insert_merchant(connection, &merchant).await?;
    Ok(merchant)
}

/// Makes an API key. The secret is returned here and nowhere else: a caller that loses it, also by
/// dying, revokes the key and makes another.
pub async fn create_api_key(
    connection: &mut PgConnection,
    merchant_id: MerchantId,
    name: Option<Name>,
    now: DateTime<Utc>,
) -> Result<(ApiKey, ApiKeySecret), MerchantError> {
    let secret = ApiKeySecret::generate();
    let api_key = ApiKey {
        id: ApiKeyId::generate(now),
        merchant_id,
        name: name.map(|name| name.0),
        prefix: secret.prefix().to_owned(),
        created_at: now,
        revoked_at: None,
    };
    if store::insert_api_key(connection, &api_key, &secret.hash()).await? {
        Ok((api_key, secret))
    } else {
        Err(MerchantError::MerchantNotFound)
    }
}

/// A merchant's API keys, oldest first, revoked ones too.
pub async fn list_api_keys(
    connection: &mut PgConnection,
    merchant_id: MerchantId,
) -> Result<Vec<ApiKey>, MerchantError> {
    if !store::find_merchant(connection, merchant_id).await? {
        return Err(MerchantError::MerchantNotFound);
    }
    Ok(store::list_api_keys(connection, merchant_id).await?)
}

/// Refuses the key from now on. Repeating it changes nothing: the first time stays.
pub async fn revoke_api_key(
    connection: &mut PgConnection,
    id: ApiKeyId,
    now: DateTime<Utc>,
) -> Result<ApiKey, MerchantError> {
    store::mark_api_key_revoked(connection, id, now)
        .await?
        .ok_or(MerchantError::ApiKeyNotFound)
}

/// Says whose secret was presented. Asks the database every time; whoever caches the answer
/// decides how long a revoked key may still be accepted.
pub async fn authenticate(
    connection: &mut PgConnection,
    presented: &str,
) -> Result<Authenticated, AuthError> {
    let presented = ApiKeySecret::parse(presented).ok_or(AuthError::Refused)?;
    let stored = store::find_credential(connection, presented.prefix()).await?;
    api_key::check(&presented, stored.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_and_not_empty() {
        let longest = "ü".repeat(NAME_CHARS_MAX);
        assert_eq!(Name::parse("  Zoë & Sons ").unwrap().as_str(), "Zoë & Sons");
        assert!(Name::parse(&longest).is_ok());

        for refused in ["", "  ", "two\nlines", "nul\0", &format!("{longest}ü")] {
            assert!(Name::parse(refused).is_err(), "{refused:?} must be refused");
        }
    }
}
