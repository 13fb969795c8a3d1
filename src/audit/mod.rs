//! Whether what is stored keeps the promises: the invariants of the protocol, each as one query.
//!
//! It promises to look only: everything runs in one read-only transaction with one snapshot, so
//! that payments which go on meanwhile cannot look like breaches, and what it finds was true of one
//! moment. Against a sandbox's journal, or a gateway's own list, it answers whether anyone was charged
//! without a record.
//!
//! It repairs nothing, and it refuses to call a payment that is not decided a breach: in progress,
//! pending and in review are states. The database is authoritative for what was answered, the
//! journal or the gateway for what was executed; where they differ, a person decides who is right.

pub mod gateway;
pub mod journal;
mod store;

use std::io;

use futures_util::future::BoxFuture;
use serde::Serialize;
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use self::gateway::{Compared, Witness};
use crate::{
    gateways::listing::ListError,
    idempotency::key::IdempotencyKey,
    ids::{MerchantId, PaymentId},
};

/// One promise that is broken in one place. It goes into logs of schedulers, so a key is only there
/// as its short hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Breach {
    pub check: &'static str,
    /// I1 … I20 of the design.
    pub invariant: &'static str,
    pub merchant_id: Option<MerchantId>,
    pub payment_id: Option<PaymentId>,
    pub key_hash: Option<String>,
    pub gateway_key: Option<String>,
    pub detail: String,
}

/// Why an audit came to no end.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("the database cannot be read")]
    Database(#[from] sqlx::Error),
    #[error("the journal cannot be read")]
    Journal(#[source] io::Error),
    #[error("the gateway cannot be compared with")]
    Gateway(#[from] ListError),
}

/// What a check finds. Each finds a thousand at most: more is one breach that happened often.
#[derive(Debug)]
struct Found {
    merchant_id: Option<Uuid>,
    payment_id: Option<Uuid>,
    key: Option<String>,
    detail: String,
}

type Find = for<'c> fn(&'c mut PgConnection) -> BoxFuture<'c, sqlx::Result<Vec<Found>>>;

/// A named statement and what it breaks.
struct Check {
    name: &'static str,
    invariant: &'static str,
    find: Find,
}

/// Every check over the database.
const CHECKS: &[Check] = &[
    Check {
        name: "gateway_key_shared",
        invariant: "I1",
        find: |it| Box::pin(store::gateway_key_shared(it)),
    },
    Check {
        name: "record_without_payment",
        invariant: "I2",
        find: |it| Box::pin(store::record_without_payment(it)),
    },
    Check {
        name: "record_of_decided_payment",
        invariant: "I3",
        find: |it| Box::pin(store::record_of_decided_payment(it)),
    },
    Check {
        name: "answer_contradicts_payment",
        invariant: "I4",
        find: |it| Box::pin(store::answer_contradicts_payment(it)),
    },
    Check {
        name: "answer_of_other_payment",
        invariant: "I5",
        find: |it| Box::pin(store::answer_of_other_payment(it)),
    },
    Check {
        name: "payment_of_other_request",
        invariant: "I6",
        find: |it| Box::pin(store::payment_of_other_request(it)),
    },
    Check {
        name: "key_not_used",
        invariant: "I12",
        find: |it| Box::pin(store::key_not_used(it)),
    },
    Check {
        name: "amounts_out_of_bounds",
        invariant: "I13",
        find: |it| Box::pin(store::amounts_out_of_bounds(it)),
    },
    Check {
        name: "feed_has_gaps",
        invariant: "I14",
        find: |it| Box::pin(store::feed_has_gaps(it)),
    },
    Check {
        name: "payment_without_its_events",
        invariant: "I14",
        find: |it| Box::pin(store::payment_without_its_events(it)),
    },
    Check {
        name: "event_without_payment",
        invariant: "I14",
        find: |it| Box::pin(store::event_without_payment(it)),
    },
    Check {
        name: "table_not_durable",
        invariant: "I15",
        find: |it| Box::pin(store::table_not_durable(it)),
    },
    Check {
        name: "record_unattended",
        invariant: "I18",
        find: |it| Box::pin(store::record_unattended(it)),
    },
    Check {
        name: "outcome_unknown_for_too_long",
        invariant: "I18",
        find: |it| Box::pin(store::outcome_unknown_for_too_long(it)),
    },
    Check {
        name: "payment_forgotten",
        invariant: "I18",
        find: |it| Box::pin(store::payment_forgotten(it)),
    },
    Check {
        name: "released_with_payment",
        invariant: "I20",
        find: |it| Box::pin(store::released_with_payment(it)),
    },
];

/// How many checks run over the database alone.
pub const fn checks() -> usize {
    CHECKS.len()
}

/// Runs every check in one snapshot; with `lines`, also those against a gateway's journal.
///
/// `lines` reads the journal anew each time it is called. It is read before the snapshot is taken
/// and again at the end: an effect that is in the
/// first reading was claimed before the snapshot, and what the snapshot says is settled is in the
/// second.
pub async fn run(
    connection: &mut PgConnection,
    lines: Option<&(dyn Fn() -> io::Result<Vec<journal::Line>> + Send + Sync)>,
) -> Result<Vec<Breach>, AuditError> {
    let before = lines
        .map(|lines| lines())
        .transpose()
        .map_err(AuditError::Journal)?;
    let mut snapshot = connection.begin_with(SNAPSHOT).await?;
    let mut breaches = check(&mut snapshot).await?;
    if let (Some(before), Some(lines)) = (before, lines) {
        let payments = store::list_charged(&mut snapshot).await?;
        let after = lines().map_err(AuditError::Journal)?;
        breaches.extend(journal::compare(&before, &after, &payments));
    }
    snapshot.rollback().await?;
    Ok(breaches)
}

/// Holds the payments against the gateway's own list. It takes a snapshot of its own, which has
/// ended when the list is read for the second time: a gateway takes its time.
pub async fn run_against(
    connection: &mut PgConnection,
    witness: &Witness<'_>,
) -> Result<(Vec<Breach>, Compared), AuditError> {
    let before = witness.read().await?;
    let names = before.names();
    let mut snapshot = connection.begin_with(SNAPSHOT).await?;
    let payments = store::list_recorded(&mut snapshot, names.sought(witness)).await?;
    snapshot.rollback().await?;
    let after = witness.read().await?;
    let breaches = gateway::compare(&before, &after, &payments);
    Ok((breaches, witness.compared(&before, &payments)))
}

async fn check(snapshot: &mut PgConnection) -> sqlx::Result<Vec<Breach>> {
    let mut breaches = Vec::new();
    for check in CHECKS {
        let found = (check.find)(snapshot).await?;
        breaches.extend(found.into_iter().map(|found| check.breach(found)));
    }
    Ok(breaches)
}

/// Read only, so that an audit cannot harm, whatever it runs on; repeatable, so that all its
/// statements see the same moment.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

impl Check {
    fn breach(&self, found: Found) -> Breach {
        Breach {
            check: self.name,
            invariant: self.invariant,
            merchant_id: found.merchant_id.map(MerchantId::from_uuid),
            payment_id: found.payment_id.map(PaymentId::from_uuid),
            key_hash: found
                .key
                .map(|key| IdempotencyKey::from_stored(key).short_hash()),
            gateway_key: None,
            detail: found.detail,
        }
    }
}
