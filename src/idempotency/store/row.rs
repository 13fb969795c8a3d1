//! The row of a key as the database gives it, and what it means.

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::millis;
use crate::idempotency::record::{Record, RecordState, Sighting, StoredResponse};

/// A used key, with its record where there still is one.
#[derive(Debug)]
pub(super) struct RecordRow {
    pub(super) place: i64,
    pub(super) used_resource_id: Uuid,
    pub(super) used_operation: String,
    pub(super) operation: Option<String>,
    pub(super) request_hash: Option<Vec<u8>>,
    pub(super) hash_version: Option<i16>,
    pub(super) request: Option<Value>,
    pub(super) gateway: Option<String>,
    pub(super) status: Option<String>,
    pub(super) retryable: Option<bool>,
    pub(super) response_status: Option<i16>,
    pub(super) response_body: Option<Vec<u8>>,
    pub(super) response_headers: Option<Value>,
    pub(super) fence: Option<i64>,
    pub(super) owner: Option<Uuid>,
    pub(super) attempts: Option<i32>,
    pub(super) request_id: Option<String>,
    pub(super) created_at: Option<DateTime<Utc>>,
    pub(super) completed_at: Option<DateTime<Utc>>,
    pub(super) expires_at: Option<DateTime<Utc>>,
    pub(super) expired: bool,
    pub(super) left: bool,
    pub(super) unknown: bool,
    pub(super) age_ms: i64,
}

impl RecordRow {
    pub(super) fn sighting(self) -> sqlx::Result<Sighting> {
        if self.status.is_none() {
            return Ok(Sighting::Deleted {
                resource_id: self.used_resource_id,
                operation: self.used_operation,
            });
        }
        let state = self.state().ok_or_else(impossible)?;
        self.record(state)
            .map(|record| Sighting::Present(Box::new(record)))
            .ok_or_else(impossible)
    }

    fn state(&self) -> Option<RecordState> {
        if self.status.as_deref() == Some("processing") {
            let unknown = self.unknown;
            return Some(if self.left {
                RecordState::Left { unknown }
            } else {
                RecordState::Held { unknown }
            });
        }
        // A released record that is past its time is still no more than released: it was never
        // executed, so there is nothing that a 410 could protect.
        if self.retryable? {
            return Some(RecordState::Released);
        }
        if self.expired {
            return Some(RecordState::Expired);
        }
        Some(RecordState::Finished(StoredResponse {
            status: u16::try_from(self.response_status?).ok()?,
            headers: serde_json::from_value(self.response_headers.clone()?).ok()?,
            body: self.response_body.clone()?,
        }))
    }

    fn record(self, state: RecordState) -> Option<Record> {
        Some(Record {
            operation: self.operation?,
            request_hash: self.request_hash?,
            hash_version: self.hash_version?,
            request: self.request?,
            resource_id: self.used_resource_id,
            gateway: self.gateway?,
            fence: self.fence?,
            owner: self.owner?,
            attempts: self.attempts?,
            request_id: self.request_id?,
            created_at: self.created_at?,
            completed_at: self.completed_at,
            expires_at: self.expires_at,
            age: millis(self.age_ms),
            state,
        })
    }
}

/// The CHECKs of the table exclude it; reading on with a guess could pay twice.
fn impossible() -> sqlx::Error {
    sqlx::Error::Decode("a record breaks the constraints of its table".into())
}
