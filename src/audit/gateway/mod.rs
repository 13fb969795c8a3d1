//! The database held against the gateway's own list: was anyone charged without a record?
//!
//! The list is read before the snapshot of the database, and again after it. What is in the first
//! reading was claimed before the snapshot, so it must have a payment there; what the snapshot says is
//! settled must be in the second. Payments that go on meanwhile are in neither position, and a payment
//! that is not decided agrees with everything but another amount.
//!
//! An object is ours by the gateway key in its metadata. Those without are counted and left alone: an
//! account may have other users, and support staff who refund by hand.

mod payments;
mod refunds;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use super::{
    Breach,
    store::{Recorded, Sought},
};
use crate::gateways::{
    Gateway, GatewayReference,
    listing::{ListError, Listed, ListedState},
};

/// How far the clocks of gateway and service may differ. Objects are listed from that much before
/// the time in which payments are looked for, so that one at its edge is not missing from the list.
const CLOCKS_DIFFER_MAX: TimeDelta = TimeDelta::hours(1);

/// A gateway, and since when its objects are compared.
#[derive(Clone, Copy, Debug)]
pub struct Witness<'a> {
    pub gateway: &'a dyn Gateway,
    pub since: DateTime<Utc>,
}

/// How much was compared: an audit that looked at nothing finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Compared {
    pub since: DateTime<Utc>,
    /// The gateway's objects that have our key.
    pub objects: usize,
    /// Its objects that have not.
    pub foreign: usize,
    /// Payments of the database that were compared, made since then or named by an object.
    pub payments: usize,
}

/// One reading of the list.
#[derive(Debug)]
pub(super) struct Reading(Vec<Listed>);

impl Witness<'_> {
    pub(super) async fn read(&self) -> Result<Reading, ListError> {
        let since = self.since - CLOCKS_DIFFER_MAX;
        Ok(Reading(self.gateway.list(since).await?))
    }

    pub(super) fn compared(&self, before: &Reading, payments: &[Recorded]) -> Compared {
        let objects = before.ours().count();
        Compared {
            since: self.since,
            objects,
            foreign: before.0.len().saturating_sub(objects),
            payments: payments.len(),
        }
    }
}

/// What a reading names, for the snapshot that comes after it.
#[derive(Debug)]
pub(super) struct Names {
    gateway_keys: Vec<String>,
    references: Vec<String>,
}

impl Names {
    pub(super) fn sought<'a>(&'a self, witness: &Witness<'a>) -> Sought<'a> {
        Sought {
            gateway: witness.gateway.name(),
            gateway_keys: &self.gateway_keys,
            references: &self.references,
            since: witness.since,
        }
    }
}

impl Reading {
    pub(super) fn names(&self) -> Names {
        Names {
            gateway_keys: self.payments().map(|(key, _)| key.to_owned()).collect(),
            references: self
                .refunds()
                .filter_map(|(_, payment)| Some(payment?.0.clone()))
                .collect(),
        }
    }

    fn ours(&self) -> impl Iterator<Item = (&str, &Listed)> {
        self.0.iter().filter_map(|object| {
            let key = object.gateway_key.as_ref()?;
            Some((key.as_str(), object))
        })
    }

    /// Our payments, by their gateway key.
    fn payments(&self) -> impl Iterator<Item = (&str, &Listed)> {
        self.ours().filter(|(_, object)| {
            !matches!(
                object.state,
                ListedState::Refunded { .. } | ListedState::NotRefunded
            )
        })
    }

    /// Our refunds that were made or are under way, with the payments that they give back.
    fn refunds(&self) -> impl Iterator<Item = (&Listed, Option<&GatewayReference>)> {
        self.ours().filter_map(|(_, object)| match &object.state {
            ListedState::Refunded { payment } => Some((object, payment.as_ref())),
            _ => None,
        })
    }
}

/// Compares what the snapshot says with the readings before and after it.
pub(super) fn compare(before: &Reading, after: &Reading, recorded: &[Recorded]) -> Vec<Breach> {
    let by_key: BTreeMap<&str, &Recorded> = recorded
        .iter()
        .map(|payment| (payment.gateway_key.as_str(), payment))
        .collect();
    let mut breaches = payments::compare(before, after, &by_key);
    breaches.extend(refunds::compare(before, after, recorded));
    breaches
}

fn of_payment(
    check: &'static str,
    invariant: &'static str,
    payment: &Recorded,
    detail: String,
) -> Breach {
    Breach {
        merchant_id: Some(payment.merchant_id),
        payment_id: Some(payment.payment_id),
        ..breach(check, invariant, &payment.gateway_key, detail)
    }
}

fn breach(
    check: &'static str,
    invariant: &'static str,
    gateway_key: &str,
    detail: String,
) -> Breach {
    Breach {
        check,
        invariant,
        merchant_id: None,
        payment_id: None,
        key_hash: None,
        gateway_key: Some(gateway_key.to_owned()),
        detail,
    }
}
