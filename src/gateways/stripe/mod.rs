//! Stripe: payment intents and refunds over HTTP, in Stripe's own wire format.
//!
//! It promises that each call is one request under the gateway key (created and confirmed at
//! once), that nothing is repeated behind the caller's back, and that an answer is believed only
//! when it is about what was asked: the same object, amount and currency. [`classify`] is the one
//! table of what an answer means.
//!
//! It refuses payments that need the payer (`error_on_requires_action`), and amounts that Stripe
//! cannot express ([`amount`]), before they are sent.
//!
//! Stripe is authoritative about the money. It remembers a key and its first answer for a day, and
//! an error of its own as well. A look-up goes by the payment's id where we know it, which is
//! never behind, and else by our metadata, because after a failover that is all that we still know.
//! What it can conclude: an object that carries the key and a final status is the truth, and so
//! is a final status that rules the call out ([`find`] has the table); *not found* proves nothing,
//! because Stripe's search lags behind by a minute, and more during an outage.

pub(super) mod amount;
mod classify;
mod decline;
mod find;
pub(super) mod form;
mod list;
mod state;
#[cfg(test)]
mod tests;
mod wire;

use std::{fmt, io, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use http_body_util::Full;
use hyper::{
    Method, Request,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use secrecy::{ExposeSecret as _, SecretString};

use self::form::{Asked, Form};
use super::{
    Authorize, Cancel, Capture, Find, Finding, Gateway, NotExecuted, Outcome, Refund,
    http_client::{ANSWER_BYTES_MAX, HttpClient, Reply, Scheme, TransportError},
    listing::{ListError, Listed},
};

/// Pinned: an account's own default may change under us, and with it the answers.
const API_VERSION: &str = "2024-06-20";

/// For how long Stripe remembers a key, by its documentation.
const KEY_WINDOW: Duration = Duration::from_hours(24);

const IDEMPOTENCY_KEY: &str = "idempotency-key";
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// The gateway. Cloning shares its connections.
#[derive(Clone)]
pub struct Stripe {
    client: HttpClient,
    base: String,
    authorization: HeaderValue,
}

impl Stripe {
    /// `base` begins with `https://`, or for a sandbox with `http://`. `timeout` is for one call.
    pub fn new(base: &str, secret_key: &SecretString, timeout: Duration) -> io::Result<Self> {
        let scheme = if base.starts_with("https://") {
            Scheme::Https
        } else {
            Scheme::Http
        };
        let bearer = format!("Bearer {}", secret_key.expose_secret());
        let mut authorization = HeaderValue::try_from(bearer).map_err(io::Error::other)?;
        authorization.set_sensitive(true);
        Ok(Self {
            client: HttpClient::new(scheme, timeout)?,
            base: base.trim_end_matches('/').to_owned(),
            authorization,
        })
    }

    async fn send(&self, asked: &Asked, form: Form) -> Outcome {
        let built = self
            .request(Method::POST, &form.path)
            .header(CONTENT_TYPE, FORM)
            .header(IDEMPOTENCY_KEY, &asked.gateway_key)
            .body(Full::new(Bytes::from(form.body)));
        match built {
            Ok(request) => {
                let reply = self.client.exchange(request, ANSWER_BYTES_MAX).await;
                classify::classify(asked, &reply)
            }
            Err(error) => {
                tracing::error!(%error, "a request to Stripe cannot be built");
                Outcome::NotExecuted(NotExecuted::Refused)
            }
        }
    }

    /// A look-up; `path` is one of [`form`]'s.
    async fn get(&self, path: &str, bytes_max: usize) -> Result<Reply, TransportError> {
        let built = self.request(Method::GET, path).body(Full::default());
        let request = built.map_err(|error| TransportError::Unreachable(error.into()))?;
        self.client.exchange(request, bytes_max).await
    }

    fn request(&self, method: Method, path: &str) -> hyper::http::request::Builder {
        Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(AUTHORIZATION, &self.authorization)
            .header("stripe-version", API_VERSION)
    }
}

/// Without the secret.
impl fmt::Debug for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stripe")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

/// A sum that cannot be put into Stripe's words is refused as Stripe would refuse it.
fn not_expressible() -> Outcome {
    Outcome::Declined(decline::with_code(
        decline::REJECTED,
        "The gateway cannot express this amount in this currency.",
        None,
    ))
}

#[async_trait]
impl Gateway for Stripe {
    fn name(&self) -> &'static str {
        "stripe"
    }

    fn key_window(&self) -> Duration {
        KEY_WINDOW
    }

    async fn authorize(&self, request: &Authorize) -> Outcome {
        match form::authorize(request) {
            Some((asked, form)) => self.send(&asked, form).await,
            None => not_expressible(),
        }
    }

    async fn capture(&self, request: &Capture) -> Outcome {
        match form::capture(request) {
            Some((asked, form)) => self.send(&asked, form).await,
            None => not_expressible(),
        }
    }

    async fn cancel(&self, request: &Cancel) -> Outcome {
        let (asked, form) = form::cancel(request);
        self.send(&asked, form).await
    }

    async fn refund(&self, request: &Refund) -> Outcome {
        match form::refund(request) {
            Some((asked, form)) => self.send(&asked, form).await,
            None => not_expressible(),
        }
    }

    async fn find(&self, sought: &Find) -> Finding {
        find::find(self, sought).await
    }

    async fn list(&self, since: DateTime<Utc>) -> Result<Vec<Listed>, ListError> {
        list::list(self, since).await
    }
}
