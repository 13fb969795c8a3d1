//! Winning a record: by claim, by claiming a released one again, or by take-over.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::{
    decide::{Asked, Decision, decide},
    gateway_key::gateway_key,
    lease::Lease,
    record::{Acquired, NewRecord, Record, RecordState, Sighting},
    run::{Attempt, RunError},
    store::{Abandoned, Read, TakeOver},
};
use crate::{
    app::App,
    db::{DbError, Step},
    gateways::Call,
    ids::PaymentId,
    payments::{
        create,
        model::Payment,
        store::{Claim, Find, NewPayment, Reclaim},
    },
    telemetry::metrics,
};

/// A record that is ours to finish.
#[derive(Debug)]
pub struct Won {
    pub lease: Lease,
    pub payment: Payment,
    pub standing: Standing,
    /// The request that is answered first.
    pub request_id: String,
}

/// What the holder may conclude from its own sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nobody sent before: if no send of ours was executed, none was.
    First,
    /// A predecessor may have sent: the gateway is asked first, and nothing is ever released.
    Successor { since_first_sent: Duration },
}

/// Claims a key that was never used. `None` when somebody has it.
pub async fn claim(app: &App, attempt: &Attempt) -> Result<Option<Won>, RunError> {
    let resource_id = PaymentId::generate(app.clock.now()).uuid();
    let new = [new_payment(app, attempt, resource_id)];
    let sent = Instant::now();
    let acquired = acquired_by(app, &Claim(&new), &new).await?;
    Ok(acquired.map(|acquired| first(app, attempt, &new, acquired, sent)))
}

/// Claims a released record again, with the same resource. `None` when somebody else did.
pub async fn reclaim(
    app: &App,
    attempt: &Attempt,
    record: &Record,
) -> Result<Option<Won>, RunError> {
    let new = [new_payment(app, attempt, record.resource_id)];
    let sent = Instant::now();
    let acquired = acquired_by(app, &Reclaim(&new), &new).await?;
    Ok(acquired.map(|acquired| first(app, attempt, &new, acquired, sent)))
}

/// Takes over a record whose owner's lease has run out. `None` when somebody else did.
pub async fn take_over(
    app: &App,
    attempt: &Attempt,
    record: &Record,
) -> Result<Option<Won>, RunError> {
    let abandoned = Abandoned {
        merchant_id: attempt.merchant_id,
        key: attempt.key.clone(),
        fence: record.fence,
        owner: Uuid::new_v4(),
        lease_ttl: app.leases.ttl(),
    };
    let sent = Instant::now();
    let taken = app
        .database
        .run(&TakeOver(&[abandoned]))
        .await
        .map_err(unknown)?;
    let Some(taken) = taken.into_iter().next() else {
        return Ok(None);
    };
    metrics::taken_over();
    if record.state == (RecordState::Left { unknown: false }) {
        metrics::lease_expired();
    }
    let lease = app.leases.hold(taken.acquired, sent);
    let payment_id = PaymentId::from_uuid(record.resource_id);
    let found = app
        .database
        .run(&Find(&[(attempt.merchant_id, payment_id)]))
        .await;
    let Some(payment) = found.map_err(unknown)?.into_iter().next() else {
        tracing::error!(payment_id = %payment_id, "a record in processing has no payment");
        return Err(RunError::OutcomeUnknown(None));
    };
    Ok(Some(Won {
        lease,
        payment,
        standing: Standing::Successor {
            since_first_sent: taken.since_first_sent,
        },
        request_id: record.request_id.clone(),
    }))
}

/// Reads the record and decides what may be done about it.
///
/// Only asked after a claim met a record: somebody had the key, so a record that cannot be read
/// leaves open whether the request was executed.
pub async fn see(app: &App, attempt: &Attempt) -> Result<Decision, RunError> {
    let sought = [(attempt.merchant_id, attempt.key.clone())];
    let sightings = app.database.run(&Read(&sought)).await.map_err(unknown)?;
    let sighting = sightings.into_iter().next().unwrap_or(Sighting::Absent);
    let asked = Asked {
        operation: attempt.operation,
        fingerprint: &attempt.fingerprint,
        document: &attempt.document,
    };
    Ok(decide(sighting, asked))
}

/// Runs a claim. When its answer is lost, the record tells by its owner whether it was committed.
async fn acquired_by<S>(
    app: &App,
    step: &S,
    new: &[NewPayment; 1],
) -> Result<Option<Acquired>, RunError>
where
    S: Step<Output = Vec<Acquired>>,
{
    let lost = match app.database.run(step).await {
        Ok(acquired) => return Ok(acquired.into_iter().next()),
        Err(error @ (DbError::Unreachable(_) | DbError::Refused(_))) => {
            return Err(RunError::NotExecuted(Some(error)));
        }
        Err(error @ DbError::Unanswered(_)) => error,
    };
    let [NewPayment { record, .. }] = new;
    let sought = [(record.merchant_id, record.key.clone())];
    match app
        .database
        .run(&Read(&sought))
        .await
        .map(|seen| seen.into_iter().next())
    {
        Ok(Some(Sighting::Present(seen))) if seen.owner == record.owner => Ok(Some(Acquired {
            merchant_id: record.merchant_id,
            key: record.key.clone(),
            fence: seen.fence,
            owner: seen.owner,
            attempts: seen.attempts,
        })),
        // Somebody else's record: our claim did not win, and cannot any more.
        Ok(Some(Sighting::Present(_) | Sighting::Deleted { .. })) => Ok(None),
        // Not there: it may still be on its way to its commit, so nothing can be said.
        Ok(Some(Sighting::Absent) | None) | Err(_) => Err(RunError::OutcomeUnknown(Some(lost))),
    }
}

fn first(
    app: &App,
    attempt: &Attempt,
    [new]: &[NewPayment; 1],
    acquired: Acquired,
    sent: Instant,
) -> Won {
    Won {
        lease: app.leases.hold(acquired, sent),
        payment: create::claimed(new),
        standing: Standing::First,
        request_id: attempt.request_id.clone(),
    }
}

fn new_payment(app: &App, attempt: &Attempt, resource_id: Uuid) -> NewPayment {
    let record = NewRecord {
        merchant_id: attempt.merchant_id,
        key: attempt.key.clone(),
        operation: attempt.operation,
        fingerprint: attempt.fingerprint,
        request: attempt.document.to_json(),
        resource_id,
        gateway: app.gateway.name(),
        gateway_key: gateway_key(
            attempt.merchant_id,
            &attempt.key,
            attempt.operation,
            Call::Authorize,
        ),
        owner: Uuid::new_v4(),
        request_id: attempt.request_id.clone(),
        lease_ttl: app.leases.ttl(),
    };
    create::new_payment(app, record, attempt.command.clone())
}

fn unknown(error: DbError) -> RunError {
    RunError::OutcomeUnknown(Some(error))
}
