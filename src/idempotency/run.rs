//! The guard: claim, perform, settle, in a task that the client cannot cancel.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};

use super::{
    acquire::{Won, claim, reclaim, see, take_over},
    decide::{Decision, Known},
    document::Document,
    fingerprint::Fingerprint,
    finish::finish,
    key::IdempotencyKey,
    operation::Operation,
    record::StoredResponse,
};
use crate::{
    app::App,
    db::DbError,
    ids::MerchantId,
    payments::command::CreatePayment,
    seeded::{self, Bug, seeded},
    telemetry::metrics::{self, KeyUse},
};

/// How often a claim is tried for a key that comes and goes between two statements.
const CLAIMS_MAX: u32 = 3;

/// One request under a key.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub merchant_id: MerchantId,
    pub key: IdempotencyKey,
    pub operation: Operation,
    pub fingerprint: Fingerprint,
    pub document: Document,
    pub command: CreatePayment,
    pub request_id: String,
    /// For how long to wait for another request that is at it.
    pub wait: Duration,
}

/// What the request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was executed for this request, and this is stored.
    Executed(StoredResponse),
    /// The record answers.
    Known(Known),
    /// Certainly nothing was executed, and the key is free for the same request.
    Released,
}

/// Why there is no answer. Each says what is known about the money.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No claim was committed: nothing was executed.
    #[error("the request was not executed")]
    NotExecuted(#[source] Option<DbError>),
    /// It may have been executed, or will be.
    #[error("it is not known whether the request was executed")]
    OutcomeUnknown(#[source] Option<DbError>),
    /// A bug of ours after the claim; somebody else finishes.
    #[error("the request panicked after its claim")]
    Panicked,
}

/// Runs `attempt` under its key: executes it if nobody has, and says what is known if somebody has.
///
/// The work goes on when the caller goes away. When it takes longer than the request timeout, the
/// answer is that it is not known yet.
pub async fn run(app: &App, attempt: Attempt) -> Result<Answer, RunError> {
    let attempt = Arc::new(attempt);
    let (task, tried) = (app.clone(), Arc::clone(&attempt));
    let work = app.tasks.spawn(async move { execute(&task, &tried).await });
    let answer = match timeout(app.settings.http.request_timeout, work).await {
        Ok(Ok(answer)) => answer?,
        Ok(Err(_panicked)) => return Err(RunError::Panicked),
        Err(_elapsed) => still_working(app, &attempt).await?,
    };
    count(&answer);
    Ok(answer)
}

/// The work outlasted the request: the record decides what may be said. It may be another request's,
/// or finished; the work may even be waiting for its claim.
async fn still_working(app: &App, attempt: &Attempt) -> Result<Answer, RunError> {
    let resource_id = match see(app, attempt).await? {
        // The claim may be on its way.
        Decision::Claim => return Err(RunError::OutcomeUnknown(None)),
        Decision::Reclaim(record) | Decision::TakeOver(record) => record.resource_id,
        Decision::Answer(Known::InProgress { resource_id, .. }) => resource_id,
        Decision::Answer(known) => return Ok(Answer::Known(known)),
    };
    Ok(Answer::Known(Known::Unresolved { resource_id }))
}

/// Decides, acts and looks again, until there is an answer.
///
/// Each turn that does not answer has lost a race: a claim met a row, or a row went away. Only
/// claims are counted, since only they can be lost for ever (to a key that is deleted each time
/// before it can be read); all else makes progress for somebody.
async fn execute(app: &App, attempt: &Attempt) -> Result<Answer, RunError> {
    let wait_until = Instant::now() + attempt.wait.min(wait_max(app));
    let mut claims = 0;
    let mut decision = Decision::Claim;
    loop {
        let won: Option<Won> = match decision {
            Decision::Claim if claims == CLAIMS_MAX => return Err(RunError::NotExecuted(None)),
            Decision::Claim => {
                claims += 1;
                claim(app, attempt).await?
            }
            Decision::Reclaim(record) => reclaim(app, attempt, &record).await?,
            Decision::TakeOver(record) => take_over(app, attempt, &record).await?,
            Decision::Answer(Known::InProgress { .. } | Known::Unresolved { .. })
                if Instant::now() < wait_until && !app.tasks.stopping() =>
            {
                let Attempt {
                    merchant_id, key, ..
                } = attempt;
                app.waiting
                    .news(&app.tasks, *merchant_id, key, wait_until)
                    .await;
                None
            }
            Decision::Answer(Known::Replay(replay)) if seeded(Bug::ReplayRebuilt) => {
                let rebuilt = seeded::rebuilt(app, attempt, replay).await;
                return Ok(Answer::Known(Known::Replay(rebuilt)));
            }
            Decision::Answer(known) => return Ok(Answer::Known(known)),
        };
        if let Some(won) = won {
            return finish(app, won).await;
        }
        decision = see(app, attempt).await?;
    }
}

/// A wait ends before the request does: what is still in progress then is 409, and not 202.
fn wait_max(app: &App) -> Duration {
    let request_timeout = app.settings.http.request_timeout;
    request_timeout / 8 * 7
}

fn count(answer: &Answer) {
    metrics::key_used(match answer {
        Answer::Executed(_) | Answer::Released => KeyUse::Executed,
        Answer::Known(Known::Replay(_)) => KeyUse::Replayed,
        Answer::Known(Known::InProgress { .. } | Known::Unresolved { .. }) => KeyUse::InProgress,
        Answer::Known(Known::Mismatch { .. }) => KeyUse::Mismatch,
        Answer::Known(Known::Expired { .. }) => KeyUse::Expired,
    });
}
