//! The rows of payments.
//!
//! Three writes belong to a payment and its record together: claim, settle and release. Each takes
//! slices and is one statement, so that a batch is the unit and one payment a batch of one.
//!
//! Order of locks, in every statement here: records by (merchant, key), then payments by
//! (merchant, id), then event counters by merchant. Locks are taken in `SELECT … ORDER BY … FOR
//! UPDATE` before anything is written; whoever breaks the order can deadlock with all others.

mod claim;
mod follow;
mod pending;
mod read;
mod release;
mod review;
mod row;
mod settle;

pub use claim::{Claim, NewPayment, Reclaim};
pub use follow::{Follow, FollowUp};
pub use pending::{DropPending, Due, TakeDue};
pub use read::{Find, List, Page};
pub use release::Release;
pub use review::{ListReviews, ReviewRow, ReviewedRecord};
pub use settle::{RecordEnd, Settle, Settlement};
