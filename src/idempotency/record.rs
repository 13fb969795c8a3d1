//! The record of a key, as it is written and as it is found.

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{fingerprint::Fingerprint, key::IdempotencyKey, operation::Operation};
use crate::{gateways::GatewayKey, ids::MerchantId};

/// What a claim writes.
#[derive(Clone, Debug)]
pub struct NewRecord {
    pub merchant_id: MerchantId,
    pub key: IdempotencyKey,
    pub operation: Operation,
    pub fingerprint: Fingerprint,
    /// The members that were sent, for naming those that differ.
    pub request: serde_json::Value,
    pub resource_id: Uuid,
    pub gateway: &'static str,
    pub gateway_key: GatewayKey,
    /// Fresh for this acquisition.
    pub owner: Uuid,
    pub request_id: String,
    pub lease_ttl: Duration,
}

/// What an acquisition won: the right to write, as long as nobody has taken it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquired {
    pub merchant_id: MerchantId,
    pub key: IdempotencyKey,
    pub fence: i64,
    pub owner: Uuid,
    /// How often the record was acquired, this time included.
    pub attempts: i32,
}

/// What a look at a key found.
#[derive(Clone, Debug)]
pub enum Sighting {
    /// The key was never used.
    Absent,
    /// The key was used, and its record has been deleted since.
    Deleted {
        resource_id: Uuid,
        operation: String,
    },
    Present(Box<Record>),
}

/// The row of a key.
#[derive(Clone, Debug)]
pub struct Record {
    pub operation: String,
    pub request_hash: Vec<u8>,
    pub hash_version: i16,
    pub request: serde_json::Value,
    pub resource_id: Uuid,
    pub gateway: String,
    pub fence: i64,
    pub owner: Uuid,
    pub attempts: i32,
    pub request_id: String,
    pub created_at: DateTime<Utc>,
    pub completed_at: Option<DateTime<Utc>>,
    pub expires_at: Option<DateTime<Utc>>,
    pub age: Duration,
    pub state: RecordState,
}

/// Where a record stands, judged by the clock of the database at the moment of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordState {
    /// Somebody is trusted with it; or it rests, where it is not known what the gateway did.
    Held { unknown: bool },
    /// Its owner's lease has run out, or its rest is over: it may be taken over.
    Left { unknown: bool },
    /// Finished and replayed.
    Finished(StoredResponse),
    /// Nothing was executed; the same request may claim it again.
    Released,
    /// Finished, and past its time.
    Expired,
}

/// What is known of a record that may be taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftRecord {
    pub merchant_id: MerchantId,
    pub key: IdempotencyKey,
    /// The fence that was seen.
    pub fence: i64,
    pub resource_id: Uuid,
    /// The request that claimed it: its answer is stored under this id, whoever finishes.
    pub request_id: String,
    /// Whether it rested; otherwise its owner died or was stuck.
    pub unknown: bool,
}

/// Exactly what is replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    pub status: u16,
    /// In the order in which they are sent.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// A finished record's answer, and when and for whom it was first given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    pub response: StoredResponse,
    pub resource_id: Uuid,
    pub original_request_id: String,
    pub original_date: DateTime<Utc>,
}
