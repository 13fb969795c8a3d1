//! The secret of an API key: `sk_<prefix>_<secret>`.
//!
//! The prefix is public and finds the row; the rest is 32 random bytes. A plain SHA-256 of the
//! whole is stored: with 256 bits of entropy there is nothing to guess, so a slow hash would only
//! slow down every request.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rand::{Rng, RngExt, distr::Alphanumeric};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{Authenticated, error::AuthError};
use crate::ids::{ApiKeyId, MerchantId};

/// Marks the text as one of our secrets, so that scanners of code and logs can find leaked ones.
const MARK: &str = "sk_";
/// 62^12 prefixes: two of the same will not be met, and the unique index refuses the second.
const PREFIX_CHARS: usize = 12;
/// More than any search can cover.
const SECRET_BYTES: usize = 32;
/// Base64 without padding: four characters for three bytes, rounded up.
const SECRET_CHARS: usize = (SECRET_BYTES * 4).div_ceil(3);
const CHARS: usize = MARK.len() + PREFIX_CHARS + 1 + SECRET_CHARS;

/// What is compared for a prefix that nobody has, so that its refusal takes as long as another.
/// No text is known whose hash this is.
const NOBODY: [u8; 32] = [0; 32];

/// A secret in its one valid spelling. `Debug` shows the public part only.
#[derive(Clone)]
pub struct ApiKeySecret {
    prefix: String,
    whole: SecretString,
}

/// What the table knows about the secret that has a prefix.
#[derive(Debug)]
pub(super) struct Credential {
    pub(super) api_key_id: ApiKeyId,
    pub(super) merchant_id: MerchantId,
    pub(super) secret_hash: Vec<u8>,
    pub(super) revoked: Revoked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Revoked {
    Yes,
    No,
}

impl ApiKeySecret {
    pub fn generate() -> Self {
        // The thread's generator is cryptographic and seeded by the operating system.
        let mut rng = rand::rng();
        let prefix: String = (&mut rng)
            .sample_iter(Alphanumeric)
            .take(PREFIX_CHARS)
            .map(char::from)
            .collect();
        let mut secret = [0; SECRET_BYTES];
        rng.fill_bytes(&mut secret);
        let whole = format!("{MARK}{prefix}_{}", URL_SAFE_NO_PAD.encode(secret));
        Self {
            prefix,
            whole: whole.into(),
        }
    }

    /// Reads what a client presented. Says nothing about whether the secret exists.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != CHARS {
            return None;
        }
        let rest = text.strip_prefix(MARK)?;
        let (prefix, secret) = rest.split_at_checked(PREFIX_CHARS)?;
        let secret = secret.strip_prefix('_')?;
        let canonical = prefix.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && URL_SAFE_NO_PAD.decode(secret).is_ok();
        canonical.then(|| Self {
            prefix: prefix.to_owned(),
            whole: text.into(),
        })
    }

    /// The public part.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The whole text, to be shown once.
    pub fn expose(&self) -> &str {
        self.whole.expose_secret()
    }

    pub(super) fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.expose()).into()
    }
}

impl fmt::Debug for ApiKeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}{}_[REDACTED]", self.prefix)
    }
}

/// Decides whether the presented secret is the stored one.
pub(super) fn check(
    presented: &ApiKeySecret,
    stored: Option<&Credential>,
) -> Result<Authenticated, AuthError> {
    let expected = stored.map_or(NOBODY.as_slice(), |stored| &stored.secret_hash);
    let equal = bool::from(presented.hash().ct_eq(expected));
    match stored {
        Some(stored) if equal && stored.revoked == Revoked::No => Ok(Authenticated {
            merchant_id: stored.merchant_id,
            api_key_id: stored.api_key_id,
        }),
        _ => Err(AuthError::Refused),
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn credential(secret: &ApiKeySecret, revoked: Revoked) -> Credential {
        Credential {
            api_key_id: ApiKeyId::generate(DateTime::UNIX_EPOCH),
            merchant_id: MerchantId::generate(DateTime::UNIX_EPOCH),
            secret_hash: secret.hash().to_vec(),
            revoked,
        }
    }

    #[test]
    fn a_generated_secret_reads_back_and_is_never_the_same() {
        let secret = ApiKeySecret::generate();

        let parsed = ApiKeySecret::parse(secret.expose()).unwrap();

        assert_eq!(secret.expose().len(), 59, "sk_ + 12 + _ + 43");
        assert_eq!(parsed.prefix(), secret.prefix());
        assert_eq!(parsed.hash(), secret.hash());
        assert_ne!(ApiKeySecret::generate().expose(), secret.expose());
    }

    #[test]
    fn anything_but_the_one_spelling_is_refused() {
        let secret = ApiKeySecret::generate();
        let text = secret.expose();
        let (head, _) = text.split_at(text.len() - 1);

        for refused in [
            String::new(),
            head.to_owned(),
            format!("{text}="),
            format!(" {head}"),
            format!("{head}+"),
            format!("{head}ü"),
            text.replacen("sk_", "pk_", 1),
            text.replacen(secret.prefix(), "------------", 1),
            text.replacen(secret.prefix(), "üüüüüü", 1),
            text.replacen(
                &format!("{}_", secret.prefix()),
                &format!("{}-", secret.prefix()),
                1,
            ),
        ] {
            assert!(ApiKeySecret::parse(&refused).is_none(), "{refused:?}");
        }
    }

    #[test]
    fn only_the_stored_secret_is_accepted_and_only_until_it_is_revoked() {
        let secret = ApiKeySecret::generate();
        let other = ApiKeySecret::generate();
        let valid = credential(&secret, Revoked::No);

        let accepted = check(&secret, Some(&valid)).unwrap();

        assert_eq!(accepted.merchant_id, valid.merchant_id);
        assert_eq!(accepted.api_key_id, valid.api_key_id);
        assert!(check(&other, Some(&valid)).is_err(), "another secret");
        assert!(check(&secret, None).is_err(), "unknown prefix");
        assert!(check(&secret, Some(&credential(&secret, Revoked::Yes))).is_err());
        let truncated = Credential {
            secret_hash: secret.hash()[..31].to_vec(),
            ..credential(&secret, Revoked::No)
        };
        assert!(check(&secret, Some(&truncated)).is_err(), "a short hash");
    }

    #[test]
    fn debug_shows_the_prefix_only() {
        let secret = ApiKeySecret::generate();

        let debug = format!("{secret:?}");

        assert_eq!(debug, format!("sk_{}_[REDACTED]", secret.prefix()));
    }
}
