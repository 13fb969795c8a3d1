//! Bringing a record that is ours to its end: settled, parked or released.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt as _;
use tokio::time::{Instant, sleep};

use super::{
    acquire::{Standing, Won},
    decide::Known,
    lease::Lease,
    perform::{Performed, first, sending, successor},
    record::{Record, RecordState, Replay, Sighting},
    run::{Answer, RunError},
    store::{LetGo, Park, Read},
};
use crate::{
    app::App,
    db::DbError,
    gateways::{Outcome, Unknown},
    payments::{
        create,
        model::Payment,
        store::{Release, Settle, Settlement},
    },
    seeded::{self, Bug, seeded},
    telemetry::metrics,
};

/// The first rest of a record whose outcome is unknown; doubled with every look at it.
const REST_MIN: Duration = Duration::from_secs(2);

/// The longest rest. An outcome that is unknown for hours is not found sooner by asking often.
const REST_MAX: Duration = Duration::from_hours(1);

/// The pause before a write of a holder is tried again on a database that does not answer.
const WRITE_PAUSE: Duration = Duration::from_millis(200);

/// Finishes `won`, and lets it go at once if that fails or panics: the gateway may have been called,
/// so somebody else must look, and need not wait for the lease to run out.
pub async fn finish(app: &App, won: Won) -> Result<Answer, RunError> {
    let held = won.lease.acquired().clone();
    let ended = AssertUnwindSafe(perform_and_end(app, won))
        .catch_unwind()
        .await;
    let answer = ended.unwrap_or(Err(RunError::Panicked));
    app.waiting.wake(held.merchant_id, &held.key);
    if answer.is_err()
        && let Err(error) = app.database.run(&LetGo(&[held])).await
    {
        tracing::warn!(error = %error, "a lease could not be let go and must run out");
    }
    answer
}

async fn perform_and_end(app: &App, won: Won) -> Result<Answer, RunError> {
    let Won {
        lease,
        payment,
        standing,
        request_id,
    } = won;
    let performed = match standing {
        Standing::First => first(app, &lease, &payment).await,
        Standing::Successor {
            since_first_sent,
            by,
        } => {
            let sending = sending(app, &payment, since_first_sent, by);
            successor(app, &lease, &payment, sending).await
        }
    };
    fail::fail_point!("performed", |_| Err(RunError::OutcomeUnknown(None)));
    match performed {
        Performed::LeaseLost => stored(app, &lease).await,
        Performed::Outcome(Outcome::NotExecuted(_)) => release(app, &lease, &payment).await,
        Performed::Outcome(Outcome::Unknown(_)) if seeded(Bug::UnknownIsReleased) => {
            release(app, &lease, &payment).await
        }
        Performed::Outcome(Outcome::Unknown(reason)) => {
            rest(app, &lease, &payment, Some(reason)).await
        }
        Performed::Outcome(outcome) => match create::decided(app, &payment, &outcome) {
            Some(next) => settle(app, &lease, &payment, next, &request_id).await,
            None => rest(app, &lease, &payment, None).await,
        },
    }
}

/// Writes the outcome and the answer; answers what is stored.
async fn settle(
    app: &App,
    lease: &Lease,
    before: &Payment,
    next: Payment,
    request_id: &str,
) -> Result<Answer, RunError> {
    let status = next.status;
    let mut held = lease.acquired().clone();
    if seeded(Bug::NoFenceInSettle) {
        held = seeded::holder_now(app, &held).await;
    }
    let (settlement, response) = create::settlement(app, &held, before, next, request_id);
    if seeded(Bug::AnswerBeforeCommit) {
        seeded::settle_later(app, settlement);
        return Ok(Answer::Executed(response));
    }
    match write(app, lease, &settlement).await? {
        Written::Ours => {
            metrics::payment_settled(status.into());
            Ok(Answer::Executed(response))
        }
        Written::Nothing => stored(app, lease).await,
    }
}

/// Lets the record rest, and shows the payment to a person where waiting cannot resolve it.
async fn rest(
    app: &App,
    lease: &Lease,
    payment: &Payment,
    reason: Option<Unknown>,
) -> Result<Answer, RunError> {
    let rest = rest_after(lease.acquired().attempts);
    let review = reason
        .filter(|reason| reason.requires_review())
        .and_then(|reason| {
            let next = create::in_review(app, payment)?;
            let held = lease.acquired();
            Some(create::review(app, held, payment, next, (reason, rest)))
        });
    if let Some(settlement) = review {
        match write(app, lease, &settlement).await? {
            Written::Ours => metrics::payment_settled(settlement.payment.status.into()),
            Written::Nothing => return stored(app, lease).await,
        }
    } else {
        let parked = Park {
            held: &[lease.acquired().clone()],
            rests: &[rest],
        };
        let deadline = lease.trusted_until().unwrap_or_else(Instant::now);
        // A record that could not be parked keeps its lease until that runs out; what is known
        // about the money is the same.
        if let Err(error) = app.database.run_until(&parked, deadline).await {
            tracing::warn!(error = %error, "a record could not be parked");
        }
    }
    Ok(Answer::Known(Known::Unresolved {
        resource_id: payment.id.uuid(),
    }))
}

/// Gives the key back. Only reached by a holder whose standing is `First` and whose every send
/// ended `NotExecuted`.
async fn release(app: &App, lease: &Lease, payment: &Payment) -> Result<Answer, RunError> {
    let held = [lease.acquired().clone()];
    let release = Release {
        held: &held,
        ttl: app.settings.idempotency.ttl_failed,
    };
    let deadline = lease.trusted_until().unwrap_or_else(Instant::now);
    match app.database.run_until(&release, deadline).await {
        Ok(owners) if owners.is_empty() => stored(app, lease).await,
        Ok(_) => {
            tracing::info!(payment_id = %payment.id, "released: the gateway did not execute");
            Ok(Answer::Released)
        }
        Err(error) => Err(RunError::OutcomeUnknown(Some(error))),
    }
}

/// What became of a write of the holder.
enum Written {
    Ours,
    /// Nothing was written, or it was written before its answer got lost: the record knows.
    Nothing,
}

/// Settles, again where the database is busy or does not answer, while the lease is trusted. The
/// gateway is never called again for it. A settle that was committed before its answer got lost
/// meets no row when it is repeated.
async fn write(app: &App, lease: &Lease, settlement: &Settlement) -> Result<Written, RunError> {
    let batch = std::slice::from_ref(settlement);
    let mut last: Option<DbError> = None;
    while lease.trusted() {
        let deadline = lease.trusted_until().unwrap_or_else(Instant::now);
        match app.database.run_until(&Settle(batch), deadline).await {
            Ok(owners) if owners.is_empty() => return Ok(Written::Nothing),
            Ok(_) => return Ok(Written::Ours),
            Err(error @ DbError::Refused(_)) => return Err(RunError::OutcomeUnknown(Some(error))),
            Err(error) => {
                tracing::warn!(error = %error, "a settle did not come through and is repeated");
                last = Some(error);
                sleep(WRITE_PAUSE).await;
            }
        }
    }
    last.map_or(Ok(Written::Nothing), |error| {
        Err(RunError::OutcomeUnknown(Some(error)))
    })
}

/// What the record says, for a holder whose own word no longer counts.
async fn stored(app: &App, lease: &Lease) -> Result<Answer, RunError> {
    let held = lease.acquired();
    let sought = [(held.merchant_id, held.key.clone())];
    let seen = app.database.run(&Read(&sought)).await;
    match seen.map(|seen| seen.into_iter().next()) {
        Ok(Some(Sighting::Present(record))) => Ok(answer_of(*record, held.owner)),
        Ok(Some(Sighting::Deleted { .. } | Sighting::Absent) | None) => {
            Err(RunError::OutcomeUnknown(None))
        }
        Err(error) => Err(RunError::OutcomeUnknown(Some(error))),
    }
}

fn answer_of(record: Record, owner: uuid::Uuid) -> Answer {
    match record.state {
        // Our own settle, whose answer was lost.
        RecordState::Finished(response) if record.owner == owner => Answer::Executed(response),
        RecordState::Finished(response) => Answer::Known(Known::Replay(Replay {
            response,
            resource_id: record.resource_id,
            original_request_id: record.request_id,
            original_date: record.completed_at.unwrap_or(record.created_at),
        })),
        RecordState::Released
        | RecordState::Expired
        | RecordState::Held { .. }
        | RecordState::Left { .. } => Answer::Known(Known::Unresolved {
            resource_id: record.resource_id,
        }),
    }
}

/// 2 s after the first try, doubled with each further one, at most an hour.
fn rest_after(attempts: i32) -> Duration {
    let doublings = u32::try_from(attempts.saturating_sub(1))
        .unwrap_or(0)
        .min(16);
    (REST_MIN * 2_u32.pow(doublings)).min(REST_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_double_up_to_an_hour() {
        let seconds: Vec<u64> = [1, 2, 3, 11, 12, 13, i32::MAX]
            .map(|n| rest_after(n).as_secs())
            .to_vec();

        assert_eq!(seconds, [2, 4, 8, 2048, 3600, 3600, 3600]);
    }
}
