//! Winning a record: by claim, by claiming a released one again, or by take-over.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::{
    decide::{Asked, Decision, decide},
    gateway_key::gateway_key,
    lease::Lease,
    record::{Acquired, LeftRecord, NewRecord, Record, RecordState, Sighting},
    run::{Attempt, RunError},
    store::{Abandoned, Read, TakeOver, TakenOver, When},
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
    seeded::{self, Bug, seeded},
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
    Successor {
        since_first_sent: Duration,
        by: Successor,
    },
}

/// Who took over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Successor {
    /// A client that still wants it: its retry.
    Client,
    /// The rescuer, which does not know whether anybody still wants it.
    Rescuer,
}

/// Claims a key that was never used. `None` when somebody has it.
pub async fn claim(app: &App, attempt: &Attempt) -> Result<Option<Won>, RunError> {
    let resource_id = PaymentId::generate(app.clock.now()).uuid();
    let new = [new_payment(app, attempt, resource_id)];
    if seeded(Bug::CallBeforeClaim) {
        create::send(app, &create::claimed(&new[0])).await;
    }
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

/// Takes over a record whose owner's lease has run out, for a client's retry. `None` when somebody
/// else did.
pub async fn take_over(
    app: &App,
    attempt: &Attempt,
    record: &Record,
) -> Result<Option<Won>, RunError> {
    let left = LeftRecord {
        merchant_id: attempt.merchant_id,
        key: attempt.key.clone(),
        fence: record.fence,
        resource_id: record.resource_id,
        request_id: record.request_id.clone(),
        unknown: record.state != RecordState::Left { unknown: false },
    };
    let won = take_over_left(app, std::slice::from_ref(&left), Successor::Client).await?;
    match won.into_iter().next() {
        Some(Taken::Won(won)) => Ok(Some(*won)),
        Some(Taken::WithoutPayment) => Err(RunError::OutcomeUnknown(None)),
        None => Ok(None),
    }
}

/// What a take-over brought.
#[derive(Debug)]
pub enum Taken {
    Won(Box<Won>),
    /// The record has no payment, which only a fault of the database can bring about. `audit`
    /// lists it; nobody can finish it.
    WithoutPayment,
}

/// Takes over records whose owner's lease has run out. Those that somebody else was faster with
/// are missing from the answer.
///
/// Where the payments cannot be read, the leases run out by themselves: nothing was sent.
pub async fn take_over_left(
    app: &App,
    left: &[LeftRecord],
    by: Successor,
) -> Result<Vec<Taken>, RunError> {
    let abandoned: Vec<Abandoned> = left.iter().map(|left| abandoned(app, left)).collect();
    let sent = Instant::now();
    let taken = app
        .database
        .run(&TakeOver(&abandoned))
        .await
        .map_err(unknown)?;
    let mut held = Vec::with_capacity(taken.len());
    for TakenOver {
        acquired,
        since_first_sent,
    } in taken
    {
        let seen = left
            .iter()
            .find(|left| left.merchant_id == acquired.merchant_id && left.key == acquired.key);
        let Some(seen) = seen else { continue };
        metrics::taken_over();
        if !seen.unknown {
            metrics::lease_expired();
        }
        held.push((
            seen,
            app.leases.hold(acquired, sent),
            Standing::Successor {
                since_first_sent,
                by,
            },
        ));
    }
    with_payments(app, held).await
}

async fn with_payments(
    app: &App,
    held: Vec<(&LeftRecord, Lease, Standing)>,
) -> Result<Vec<Taken>, RunError> {
    if held.is_empty() {
        return Ok(Vec::new());
    }
    let sought: Vec<_> = held
        .iter()
        .map(|(seen, ..)| (seen.merchant_id, PaymentId::from_uuid(seen.resource_id)))
        .collect();
    let payments = app.database.run(&Find(&sought)).await.map_err(unknown)?;
    let taken = held.into_iter().map(|(seen, lease, standing)| {
        let payment_id = PaymentId::from_uuid(seen.resource_id);
        let payment = payments
            .iter()
            .find(|payment| payment.merchant_id == seen.merchant_id && payment.id == payment_id);
        let Some(payment) = payment else {
            tracing::error!(payment_id = %payment_id, "a record in processing has no payment");
            return Taken::WithoutPayment;
        };
        Taken::Won(Box::new(Won {
            lease,
            payment: payment.clone(),
            standing,
            request_id: seen.request_id.clone(),
        }))
    });
    Ok(taken.collect())
}

fn abandoned(app: &App, left: &LeftRecord) -> Abandoned {
    Abandoned {
        merchant_id: left.merchant_id,
        key: left.key.clone(),
        fence: left.fence,
        when: When::Left,
        owner: new_owner(),
        lease_ttl: app.leases.ttl(),
    }
}

/// Reads the record and decides what may be done about it.
///
/// Whoever looks has met a key that is in use. When the look fails, it is not known what was done
/// under it, and "not executed" would be a guess.
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
///
/// A claim that waited for others until its time was over did nothing. What it waited for may have
/// been an earlier claim of the same key, which the server has not confirmed yet (a synchronous
/// standby is away) and which will be executed: that nothing was would be a guess.
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
        Err(error @ DbError::Contended(_)) => return Err(unknown(error)),
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
        owner: new_owner(),
        request_id: attempt.request_id.clone(),
        lease_ttl: app.leases.ttl(),
    };
    create::new_payment(app, record, attempt.command.clone())
}

/// Fresh for each acquisition: an owner per process would hold each other's records.
fn new_owner() -> Uuid {
    if seeded(Bug::OwnerPerProcess) {
        return seeded::process_owner();
    }
    Uuid::new_v4()
}

fn unknown(error: DbError) -> RunError {
    RunError::OutcomeUnknown(Some(error))
}
