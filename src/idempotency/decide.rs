//! What a request may do about a key that somebody used before: one pure function, in the order
//! expired > other request > replay > claim again > take over > wait.

use std::time::Duration;

use uuid::Uuid;

use super::{
    difference::differing_members,
    document::Document,
    fingerprint::Fingerprint,
    operation::Operation,
    record::{Record, RecordState, Replay, Sighting},
};
use crate::seeded::{Bug, seeded};

/// The part of a request that its record is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub operation: Operation,
    pub fingerprint: &'a Fingerprint,
    pub document: &'a Document,
}

/// What to do next.
#[derive(Clone, Debug)]
pub enum Decision {
    /// There is no record and the key was never used: it went between two statements.
    Claim,
    /// The record was released and the request is the same.
    Reclaim(Box<Record>),
    /// The owner's lease has run out.
    TakeOver(Box<Record>),
    Answer(Known),
}

/// What the record alone answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    Replay(Replay),
    /// Somebody works on it.
    InProgress {
        resource_id: Uuid,
        age: Duration,
    },
    /// It is not known what the gateway did.
    Unresolved {
        resource_id: Uuid,
    },
    /// The key belongs to another request.
    Mismatch {
        operation: String,
        members: Vec<String>,
    },
    /// The key was used, and its answer is no longer kept.
    Expired {
        resource_id: Uuid,
        operation: String,
    },
}

/// Decides what `asked` may do about what was seen of its key.
pub fn decide(sighting: Sighting, asked: Asked<'_>) -> Decision {
    let record = match sighting {
        Sighting::Absent => return Decision::Claim,
        Sighting::Deleted {
            resource_id,
            operation,
        } => {
            return Decision::Answer(Known::Expired {
                resource_id,
                operation,
            });
        }
        Sighting::Present(record) => record,
    };
    if record.state == RecordState::Expired {
        let Record {
            resource_id,
            operation,
            ..
        } = *record;
        return Decision::Answer(Known::Expired {
            resource_id,
            operation,
        });
    }
    if !same_request(&record, asked) && !seeded(Bug::MismatchIgnored) {
        return Decision::Answer(mismatch(*record, asked));
    }
    let resource_id = record.resource_id;
    match &record.state {
        RecordState::Finished(response) => Decision::Answer(Known::Replay(Replay {
            response: response.clone(),
            resource_id,
            original_request_id: record.request_id,
            original_date: record.completed_at.unwrap_or(record.created_at),
        })),
        RecordState::Released => Decision::Reclaim(record),
        RecordState::Left { .. } => Decision::TakeOver(record),
        RecordState::Held { unknown: true } => Decision::Answer(Known::Unresolved { resource_id }),
        RecordState::Held { unknown: false } => Decision::Answer(Known::InProgress {
            resource_id,
            age: record.age,
        }),
        RecordState::Expired => Decision::Answer(Known::Expired {
            resource_id,
            operation: record.operation,
        }),
    }
}

fn same_request(record: &Record, asked: Asked<'_>) -> bool {
    record.operation == asked.operation.as_str()
        && record.hash_version == asked.fingerprint.version
        && record.request_hash == asked.fingerprint.hash
}

/// Names what differs, where the operation is the same; never a value.
fn mismatch(record: Record, asked: Asked<'_>) -> Known {
    let members = if record.operation == asked.operation.as_str() {
        differing_members(&record.request, asked.document)
    } else {
        Vec::new()
    };
    Known::Mismatch {
        operation: record.operation,
        members,
    }
}
