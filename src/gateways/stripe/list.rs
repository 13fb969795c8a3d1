//! Stripe's own lists: payment intents and refunds since a moment, page by page.
//!
//! A list is ordered by the moment of creation, the newest first, a hundred on a page, and each page
//! begins after the last object of the one before it. So what is made meanwhile stands before what was
//! read, and nothing is passed over; and unlike the search a list is never behind: what was
//! answered is in it.
//!
//! It is all or nothing. A page that cannot be read, is not about the time that was asked for, repeats
//! an object or promises more than it leads to makes the whole list unbelievable. What stands in
//! objects of other people is not judged beyond that.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;

use super::{
    Stripe,
    amount::from_wire,
    form::{self, KEY, PAGE_OBJECTS_MAX},
    state::reference,
    wire::{ListPage, ListedIntent, ListedRefund},
};
use crate::{
    gateways::{
        GatewayKey,
        listing::{LIST_MAX, ListError, Listed, ListedState},
    },
    payments::{currency::Currency, money::Money},
};

/// A page of a hundred objects with fifty metadata of five hundred characters each.
const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Lists what was made since then.
pub(super) async fn list(stripe: &Stripe, since: DateTime<Utc>) -> Result<Vec<Listed>, ListError> {
    let mut listed = pages::<ListedIntent>(stripe, "/v1/payment_intents", since).await?;
    listed.extend(pages::<ListedRefund>(stripe, "/v1/refunds", since).await?);
    Ok(listed)
}

/// An object as it stands on a page.
trait OnPage: DeserializeOwned {
    fn id(&self) -> &str;
    fn created(&self) -> i64;
    fn listed(self) -> Result<Listed, ListError>;
}

async fn pages<T: OnPage>(
    stripe: &Stripe,
    path: &str,
    since: DateTime<Utc>,
) -> Result<Vec<Listed>, ListError> {
    let since = since.timestamp();
    let (mut listed, mut seen) = (Vec::new(), BTreeSet::new());
    let mut after: Option<String> = None;
    while listed.len() < LIST_MAX {
        let page: ListPage<T> =
            read(stripe, &form::list_path(path, since, after.as_deref())).await?;
        if page.data.len() > PAGE_OBJECTS_MAX || (page.has_more && page.data.is_empty()) {
            return Err(malformed(
                "a page has more objects, or fewer, than it can have",
            ));
        }
        after = page.data.last().map(|last| last.id().to_owned());
        for object in page.data {
            if object.created() < since {
                return Err(malformed("an object is older than was asked for"));
            }
            if !seen.insert(object.id().to_owned()) {
                return Err(malformed("an object is listed twice"));
            }
            listed.push(object.listed()?);
        }
        if !page.has_more {
            return Ok(listed);
        }
    }
    Err(ListError::TooLong)
}

async fn read<T: DeserializeOwned>(stripe: &Stripe, path: &str) -> Result<T, ListError> {
    let reply = stripe.get(path, PAGE_BYTES_MAX).await;
    let reply = reply.map_err(|error| ListError::Unanswered(error.into()))?;
    if !reply.status.is_success() {
        return Err(ListError::Refused(reply.status));
    }
    // The error repeats no more than a word of the document.
    serde_json::from_slice(&reply.body).map_err(|error| malformed(&error.to_string()))
}

impl OnPage for ListedIntent {
    fn id(&self) -> &str {
        &self.id
    }

    fn created(&self) -> i64 {
        self.created
    }

    fn listed(mut self) -> Result<Listed, ListError> {
        let gateway_key = self.metadata.remove(KEY).map(GatewayKey::new);
        let currency = currency(&self.currency);
        let state = match self.status.as_str() {
            "succeeded" => ListedState::Taken {
                captured: currency.and_then(|currency| from_wire(self.amount_received, currency)),
            },
            "requires_capture" => ListedState::Held,
            "processing" => ListedState::Pending,
            "canceled" => ListedState::Canceled,
            "requires_payment_method" | "requires_confirmation" | "requires_action" => {
                ListedState::NotExecuted
            }
            _ if gateway_key.is_none() => ListedState::NotExecuted,
            _ => {
                return Err(malformed(
                    "a payment of ours has a status that there is not",
                ));
            }
        };
        Ok(Listed {
            reference: reference(&self.id),
            gateway_key,
            money: money(self.amount, currency),
            state,
        })
    }
}

impl OnPage for ListedRefund {
    fn id(&self) -> &str {
        &self.id
    }

    fn created(&self) -> i64 {
        self.created
    }

    fn listed(self) -> Result<Listed, ListError> {
        let gateway_key = self
            .metadata
            .and_then(|mut metadata| metadata.remove(KEY))
            .map(GatewayKey::new);
        let state = match self.status.as_deref() {
            Some("succeeded" | "pending" | "requires_action") => ListedState::Refunded {
                payment: self.payment_intent.as_deref().map(reference),
            },
            Some("failed" | "canceled") => ListedState::NotRefunded,
            _ if gateway_key.is_none() => ListedState::NotRefunded,
            _ => return Err(malformed("a refund of ours has a status that there is not")),
        };
        Ok(Listed {
            reference: reference(&self.id),
            gateway_key,
            money: money(self.amount, currency(&self.currency)),
            state,
        })
    }
}

fn money(amount: i64, currency: Option<Currency>) -> Option<Money> {
    let currency = currency?;
    Some(Money {
        amount_minor: from_wire(amount, currency)?,
        currency,
    })
}

/// Stripe writes codes in lower case, and only so.
fn currency(code: &str) -> Option<Currency> {
    let lower = code.bytes().all(|byte| byte.is_ascii_lowercase());
    Currency::from_code(&code.to_ascii_uppercase()).filter(|_| lower)
}

fn malformed(what: &str) -> ListError {
    ListError::Malformed(what.to_owned())
}
