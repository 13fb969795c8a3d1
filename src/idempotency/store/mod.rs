//! The rows of records: reading, taking over, renewing, parking, deleting.
//!
//! Claims, settles and releases write a payment too; they are in `payments::store`.
//!
//! Every write of a holder carries `fence = … AND owner = …`, and answers with the owners whose row
//! it met: one that is missing has lost its lease. All time here is the database's `now()`.

mod clean;
mod hold;
mod left;
mod read;
mod row;
mod take_over;

use std::time::Duration;

use sqlx::postgres::types::PgInterval;
use uuid::Uuid;

pub use clean::{DeleteExpired, Measure, Measures};
pub use hold::{LetGo, Park, Renew};
pub use left::ListLeft;
pub use read::Read;
pub use take_over::{Abandoned, TakeOver, TakenOver, When};

use super::record::Acquired;

/// A duration as PostgreSQL counts it, rounded down to whole microseconds.
pub fn interval(duration: Duration) -> PgInterval {
    let microseconds = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    PgInterval {
        months: 0,
        days: 0,
        microseconds,
    }
}

/// A time span that the database counted; one that a clock step made negative is none.
fn millis(count: i64) -> Duration {
    Duration::from_millis(u64::try_from(count).unwrap_or(0))
}

/// Who holds what, as columns.
#[derive(Debug, Default)]
pub struct Holders {
    pub merchants: Vec<Uuid>,
    pub keys: Vec<String>,
    pub fences: Vec<i64>,
    pub owners: Vec<Uuid>,
}

impl Holders {
    pub fn of<'a>(held: impl IntoIterator<Item = &'a Acquired>) -> Self {
        let mut holders = Self::default();
        for acquired in held {
            holders.merchants.push(acquired.merchant_id.uuid());
            holders.keys.push(acquired.key.as_str().to_owned());
            holders.fences.push(acquired.fence);
            holders.owners.push(acquired.owner);
        }
        holders
    }
}
