//! How much is too little or too much, and why.

use std::time::Duration;

/// No duration is longer: far above any sensible one, and far below what overflows an `interval`
/// or a monotonic clock.
pub(super) const DURATION_MAX: Duration = Duration::from_hours(366 * 24);

/// Heartbeat, rescuer and two requests at once can make progress; with fewer they wait in turn.
pub(super) const CONNECTIONS_MIN: u32 = 4;

/// PostgreSQL's own default is 100 connections; ten times that is a mistake in the unit.
pub(super) const CONNECTIONS_MAX: u32 = 1_000;

/// Each client connection costs a file descriptor; no machine of ours offers more.
pub(super) const CLIENTS_MAX: u32 = 1_000_000;

/// A heartbeat every half second is the most that a database should be asked for; below, an
/// ordinary pause of the process already loses the lease.
pub(super) const LEASE_MIN: Duration = Duration::from_secs(2);

/// A crashed owner blocks its keys for one lease, and nobody should wait longer than this.
pub(super) const LEASE_MAX: Duration = Duration::from_hours(1);

/// Clients retry for minutes, queues for hours: a key forgotten sooner answers an honest retry
/// with a refusal.
pub(super) const TTL_MIN: Duration = Duration::from_hours(1);

/// Nobody can retry sooner, and a TTL below a microsecond would be none in PostgreSQL: no settle
/// could ever store its answer.
pub(super) const TTL_FLOOR: Duration = Duration::from_secs(1);

/// One statement that deletes more holds its locks too long beside live payments.
pub(super) const BATCH_MAX: u32 = 10_000;

/// The smallest payment with its members spelled out fits.
pub(super) const BODY_MIN: u64 = 1_024;

/// Bodies are held in memory, one per connection.
pub(super) const BODY_MAX: u64 = 1_048_576;
