//! Looks at the records all the time, past every fault, so that what changes back is seen too.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};
use oncepay::clock::{Clock as _, SystemClock};
use sqlx::{PgConnection, Row as _};
use tokio::{task::JoinHandle, time::sleep};

use super::cluster::Cluster;
use crate::support::race::in_background;

/// Between two looks.
const EVERY: Duration = Duration::from_millis(120);

/// A record as it was seen; only what has changed since the look before is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub at: DateTime<Utc>,
    pub merchant: String,
    pub key: String,
    pub seen: Seen,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub fence: i64,
    pub owner: String,
    pub status: String,
    pub retryable: bool,
    /// A hash of status, headers and body of the stored answer.
    pub answer: Option<String>,
}

/// Everything that was seen.
#[derive(Clone, Debug, Default)]
pub struct Seeing {
    pub samples: Vec<Sample>,
    /// The most connections of services at any time.
    pub connections_max: i64,
}

/// A watch that goes on until it is relieved.
#[derive(Debug)]
pub struct Watch {
    over: Arc<AtomicBool>,
    task: JoinHandle<Seeing>,
}

impl Watch {
    pub fn begin(cluster: &Arc<Cluster>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let task = in_background(watch(Arc::clone(cluster), Arc::clone(&over)));
        Self { over, task }
    }

    pub async fn relieve(self) -> Seeing {
        self.over.store(true, Ordering::Relaxed);
        self.task.await.unwrap()
    }
}

async fn watch(cluster: Arc<Cluster>, over: Arc<AtomicBool>) -> Seeing {
    let mut seeing = Seeing::default();
    let mut session = None;
    while !over.load(Ordering::Relaxed) {
        if session.is_none() {
            session = cluster.connect().await.ok();
        }
        if let Some(open) = &mut session
            && look(open, &mut seeing).await.is_err()
        {
            // The server restarts.
            session = None;
        }
        sleep(EVERY).await;
    }
    seeing
}

async fn look(session: &mut PgConnection, seeing: &mut Seeing) -> sqlx::Result<()> {
    let rows = sqlx::query(
        "SELECT merchant_id::text, key, fence, owner::text, status, retryable,
            md5(response_status::text || response_headers::text || encode(response_body, 'hex'))
         FROM idempotency_keys",
    )
    .fetch_all(&mut *session)
    .await?;
    let at = SystemClock.now();
    for row in rows {
        let sample = Sample {
            at,
            merchant: row.try_get(0)?,
            key: row.try_get(1)?,
            seen: Seen {
                fence: row.try_get(2)?,
                owner: row.try_get(3)?,
                status: row.try_get(4)?,
                retryable: row.try_get(5)?,
                answer: row.try_get(6)?,
            },
        };
        let last = seeing
            .samples
            .iter()
            .rev()
            .find(|last| last.merchant == sample.merchant && last.key == sample.key);
        if last.is_none_or(|last| last.seen != sample.seen) {
            seeing.samples.push(sample);
        }
    }
    let connections: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'oncepay'",
    )
    .fetch_one(session)
    .await?;
    seeing.connections_max = seeing.connections_max.max(connections);
    Ok(())
}
