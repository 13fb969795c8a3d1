//! Follows payments that the gateway has accepted and decides later (D6.7).
//!
//! Their key is answered: 201 with a payment in `processing`, which stays the answer. What the
//! gateway decides arrives by webhook; where none comes, it is asked: after a minute, then with
//! doubling pauses of at most an hour. The final word changes the payment and writes an event, and
//! status and version see to it that it does so once, whoever brings it.
//!
//! It sends nothing. A look-up that finds nothing, or does not answer, changes nothing.

use futures_util::{StreamExt as _, stream};

use super::{
    create,
    model::Payment,
    state::PaymentStatus,
    store::{DropPending, Due, Find, Follow, FollowUp, TakeDue},
};
use crate::{
    app::App,
    db::DbError,
    gateways::{Finding, Outcome, Unknown},
    telemetry::metrics,
};

/// How many payments one round asks about; the rest is due in the next.
const BATCH_MAX: i64 = 100;

/// How many are asked about at once.
const POLLS_MAX: usize = 8;

/// Asks about what is due. Answers how many payments it decided.
pub async fn round(app: &App) -> Result<usize, DbError> {
    let due = app.database.run(&TakeDue { limit: BATCH_MAX }).await?;
    if due.is_empty() {
        return Ok(0);
    }
    let sought: Vec<_> = due
        .iter()
        .map(
            |Due {
                 merchant_id,
                 payment_id,
             }| (*merchant_id, *payment_id),
        )
        .collect();
    let payments = app.database.run(&Find(&sought)).await?;
    let (open, decided): (Vec<_>, Vec<_>) = payments
        .into_iter()
        .partition(|payment| payment.status == PaymentStatus::Processing);
    forget(app, &decided).await?;
    let polled = stream::iter(open)
        .map(|payment| poll(app, payment))
        .buffer_unordered(POLLS_MAX);
    Ok(polled
        .filter(|decided| std::future::ready(*decided))
        .count()
        .await)
}

async fn forget(app: &App, decided: &[Payment]) -> Result<(), DbError> {
    if decided.is_empty() {
        return Ok(());
    }
    let decided: Vec<Due> = decided
        .iter()
        .map(|payment| Due {
            merchant_id: payment.merchant_id,
            payment_id: payment.id,
        })
        .collect();
    app.database.run(&DropPending(&decided)).await?;
    Ok(())
}

/// Asks about one payment, and writes what the gateway has decided. A write that fails is made
/// again after the next poll.
async fn poll(app: &App, payment: Payment) -> bool {
    if app.tasks.stopping() {
        return false;
    }
    let finding = asked(app, &payment).await;
    let Some(follow_up) = follow_up(app, &payment, finding) else {
        return false;
    };
    let status = follow_up.payment.status;
    match app.database.run(&Follow(&follow_up)).await {
        Ok(true) => {
            metrics::payment_settled(status.into());
            tracing::info!(payment_id = %payment.id, %status, "a pending payment is decided");
            true
        }
        Ok(false) => false,
        Err(error) => {
            tracing::warn!(payment_id = %payment.id, %error, "a decision could not be written");
            false
        }
    }
}

async fn asked(app: &App, payment: &Payment) -> Finding {
    if payment.gateway == app.gateway.name() {
        create::ask(app, payment).await
    } else {
        Finding::Known(Outcome::Unknown(Unknown::GatewayChanged))
    }
}

/// What is written after what was found; `None` where the payment stays as it is.
fn follow_up(app: &App, payment: &Payment, finding: Finding) -> Option<FollowUp> {
    let follow_up = |next| create::follow_up(app, payment, next);
    match finding {
        Finding::Known(outcome @ (Outcome::Approved { .. } | Outcome::Declined(_))) => {
            create::decided(app, payment, &outcome).map(follow_up)
        }
        Finding::Known(Outcome::Unknown(reason)) if reason.requires_review() => {
            let follow_up = create::in_review(app, payment).map(follow_up)?;
            Some(FollowUp {
                event_data: create::with_reason(follow_up.event_data, reason),
                ..follow_up
            })
        }
        Finding::Known(Outcome::Pending { .. } | Outcome::NotExecuted(_) | Outcome::Unknown(_))
        | Finding::Absent => None,
    }
}
