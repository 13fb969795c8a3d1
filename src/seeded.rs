//! Bugs that a test asks for, to see that its checkers notice them.
//!
//! Each is a fault that a real payment system had or may well get, put in at one place as one line,
//! `if seeded(Bug::…)`. `SEEDED_BUG=no-fence-in-settle` turns one on for the whole process.
//!
//! Test builds only: where the crate `fail` is off, [`seeded`] is `false` at compile time, and the
//! compiler drops what depends on it. What a bug needs beyond its line is here, so that the places
//! themselves stay readable.

use std::{sync::OnceLock, time::Duration};

use clap::ValueEnum;
use sqlx::PgConnection;
use tokio::time::sleep;
use uuid::Uuid;

use crate::{
    app::App,
    gateways::{Decline, GatewayKey, Outcome},
    idempotency::{
        record::{Acquired, Replay, StoredResponse},
        run::Attempt,
    },
    ids::PaymentId,
    payments::{
        model::Payment,
        store::{Find, Settle, Settlement},
    },
};

/// Every bug that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Bug {
    /// Settle writes as whoever holds the record now.
    NoFenceInSettle,
    /// Each send goes out under a gateway key of its own.
    RandomGatewayKey,
    /// The gateway is called before the claim is committed.
    CallBeforeClaim,
    /// The heartbeat renews nothing.
    LeaseNotRenewed,
    /// An owner names the process and not the acquisition.
    OwnerPerProcess,
    /// A call that was not answered is taken for a decline.
    UnknownIsFailed,
    /// A call that was not answered is taken for one that did not arrive.
    UnknownIsReleased,
    /// A successor whose own send was refused gives the key back.
    RefusedSuccessorReleases,
    /// What the gateway may have forgotten is sent again.
    SendAfterWindow,
    /// A successor does not ask, and sends under another gateway key.
    NewKeyAtTakeOver,
    /// The client is answered before the settle commits.
    AnswerBeforeCommit,
    /// A replay is made anew from the payment.
    ReplayRebuilt,
    /// Another request under a used key gets the first one's answer.
    MismatchIgnored,
    /// The cleaner goes by age alone.
    CleanerIgnoresStatus,
    /// The cleaner forgets that a key was used.
    UsedKeysDeleted,
    /// What was charged is not compared with what was asked.
    AmountNotCompared,
}

/// Whether this process has the bug.
#[inline]
pub fn seeded(bug: Bug) -> bool {
    fail::has_failpoints() && asked_for() == Some(bug)
}

/// The bug that the environment asks for.
///
/// # Panics
///
/// Where there is no such bug: with a name that is misspelt, a test would prove nothing. Called at
/// the start of the program, so that it does not start then.
#[expect(clippy::disallowed_methods, reason = "no setting of the service")]
pub fn asked_for() -> Option<Bug> {
    static ASKED_FOR: OnceLock<Option<Bug>> = OnceLock::new();
    *ASKED_FOR.get_or_init(|| {
        let name = std::env::var("SEEDED_BUG").ok()?;
        let bug = Bug::from_str(&name, false).ok();
        assert!(bug.is_some(), "SEEDED_BUG: there is no bug {name:?}");
        bug
    })
}

/// For [`Bug::NoFenceInSettle`].
pub async fn holder_now(app: &App, held: &Acquired) -> Acquired {
    let query = "SELECT fence, owner FROM idempotency_keys WHERE merchant_id = $1 AND key = $2";
    let row: Option<(i64, Uuid)> = sqlx::query_as(query)
        .bind(held.merchant_id.uuid())
        .bind(held.key.as_str())
        .fetch_optional(app.database.pool())
        .await
        .unwrap_or_default();
    let (fence, owner) = row.unwrap_or((held.fence, held.owner));
    Acquired {
        fence,
        owner,
        ..held.clone()
    }
}

/// For [`Bug::RandomGatewayKey`] and [`Bug::NewKeyAtTakeOver`].
pub fn random_gateway_key() -> GatewayKey {
    GatewayKey::new(format!("oncepay_{}", Uuid::new_v4().simple()))
}

/// For [`Bug::NewKeyAtTakeOver`].
pub fn under_another_key(payment: &Payment) -> Payment {
    Payment {
        gateway_key: random_gateway_key(),
        ..payment.clone()
    }
}

/// For [`Bug::OwnerPerProcess`].
pub fn process_owner() -> Uuid {
    static OWNER: OnceLock<Uuid> = OnceLock::new();
    *OWNER.get_or_init(Uuid::new_v4)
}

/// For [`Bug::UnknownIsFailed`].
pub fn declined() -> Outcome {
    Outcome::Declined(Decline {
        code: "gateway-timeout".to_owned(),
        message: "The gateway did not answer.".to_owned(),
        reference: None,
    })
}

/// For [`Bug::AnswerBeforeCommit`]: long enough for the answer to arrive first.
pub fn settle_later(app: &App, settlement: Settlement) {
    const LATER: Duration = Duration::from_millis(500);
    let task = app.clone();
    drop(app.tasks.spawn(async move {
        sleep(LATER).await;
        drop(task.database.run(&Settle(&[settlement])).await);
    }));
}

/// For [`Bug::ReplayRebuilt`].
pub async fn rebuilt(app: &App, attempt: &Attempt, replay: Replay) -> Replay {
    let payment_id = PaymentId::from_uuid(replay.resource_id);
    let sought = [(attempt.merchant_id, payment_id)];
    let found = app.database.run(&Find(&sought)).await.unwrap_or_default();
    let response = found.first().map_or_else(
        || replay.response.clone(),
        |payment| -> StoredResponse { (app.presenter.answer)(payment, &attempt.request_id) },
    );
    Replay { response, ..replay }
}

/// For [`Bug::CleanerIgnoresStatus`].
pub async fn delete_old(connection: &mut PgConnection) -> sqlx::Result<u64> {
    let statement = "DELETE FROM idempotency_keys WHERE created_at < now() - interval '1 hour'";
    let deleted = sqlx::query(statement).execute(connection).await?;
    Ok(deleted.rows_affected())
}

/// For [`Bug::UsedKeysDeleted`].
pub async fn forget_used_keys(connection: &mut PgConnection) -> sqlx::Result<()> {
    let statement = "DELETE FROM used_keys AS used WHERE NOT EXISTS (
        SELECT FROM idempotency_keys AS record
        WHERE record.merchant_id = used.merchant_id AND record.key = used.key)";
    sqlx::query(statement).execute(connection).await?;
    Ok(())
}
