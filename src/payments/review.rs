//! Payments for which a person must look: the evidence, and the decision.
//!
//! A decision is final evidence, like a webhook: it takes the record over whatever its lease says
//! (a rescuer that is asking meanwhile writes nothing any more), and settles payment, event and
//! record in the statement that settles everything. From then on the key replays the answer. The
//! event says who decided, why, and by what evidence; it is in the merchant's feed.
//!
//! It refuses every edge that the table of states does not have, and a success without the
//! gateway's name for it, which captures and refunds need. It asks no gateway: whoever decides has.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use uuid::Uuid;

use super::{
    create::{Presenter, event_type, with_member},
    model::{CaptureMethod, Failure, Payment},
    state::PaymentStatus,
    store::{
        Find, Follow, FollowUp, ListReviews, RecordEnd, ReviewRow, ReviewedRecord, Settle,
        Settlement,
    },
};
use crate::{
    clock::Clock,
    db::{Database, DbError},
    idempotency::{
        key::IdempotencyKey,
        operation::Operation,
        record::Acquired,
        store::{Abandoned, TakeOver, When},
    },
    ids::{EventId, MerchantId, PaymentId},
};

/// How many payments are listed: more is an incident, and the first thousand show which.
pub const LIST_MAX: i64 = 1000;

/// What a decision needs of a service.
#[derive(Clone, Debug)]
pub struct Desk {
    pub database: Database,
    pub clock: Arc<dyn Clock>,
    pub presenter: Presenter,
    pub ttl_completed: Duration,
    pub ttl_failed: Duration,
    /// For the moment between take-over and settle.
    pub lease_ttl: Duration,
}

/// What a person has decided.
#[derive(Clone, Debug)]
pub struct Decision {
    pub to: PaymentStatus,
    pub by: String,
    pub reason: String,
    /// What the gateway calls the payment.
    pub gateway_reference: Option<String>,
}

/// Why a decision was not taken down.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    #[error("there is no such payment in review")]
    NotInReview,
    #[error("a payment in review cannot become {0}")]
    NoSuchEdge(PaymentStatus),
    #[error("only a payment with manual capture can wait for its capture")]
    NotManual,
    #[error("{0} needs the gateway's reference of the payment")]
    NoReference(PaymentStatus),
    #[error("the payment is in review for `{0}`, and only `payments.create` can be decided here")]
    OtherOperation(String),
    #[error("the payment has changed meanwhile; list the reviews again")]
    Changed,
    #[error("the decision may not have been written; list the reviews again")]
    Database(#[from] DbError),
}

/// What is in front of a person, the oldest first.
pub async fn list(database: &Database) -> Result<Vec<ReviewRow>, DbError> {
    let step = ListReviews {
        payment_id: None,
        limit: LIST_MAX,
    };
    database.run(&step).await
}

/// Settles a payment as decided. A decision that dies on the way leaves the record to the rescuer,
/// or is written whole.
pub async fn resolve(
    desk: &Desk,
    payment_id: PaymentId,
    decision: &Decision,
) -> Result<Payment, ReviewError> {
    let step = ListReviews {
        payment_id: Some(payment_id),
        limit: 1,
    };
    let listed = desk.database.run(&step).await?;
    let review = listed.into_iter().next().ok_or(ReviewError::NotInReview)?;
    let sought = (MerchantId::from_uuid(review.merchant_id), payment_id);
    let found = desk.database.run(&Find(&[sought])).await?;
    let before = found.into_iter().next().ok_or(ReviewError::NotInReview)?;
    let next = decided(&*desk.clock, &before, decision)?;
    let written = match review.record {
        Some(record) => settle(desk, &before, &next, decision, record).await?,
        None => follow(desk, &before, &next, decision).await?,
    };
    if written {
        Ok(next)
    } else {
        Err(ReviewError::Changed)
    }
}

/// The payment as decided.
fn decided(
    clock: &dyn Clock,
    before: &Payment,
    decision: &Decision,
) -> Result<Payment, ReviewError> {
    let to = decision.to;
    if before.status != PaymentStatus::RequiresReview {
        return Err(ReviewError::Changed);
    }
    if !before.status.may_become(to) {
        return Err(ReviewError::NoSuchEdge(to));
    }
    let mut next = before.clone();
    if let Some(reference) = &decision.gateway_reference {
        next.gateway_reference = Some(reference.clone());
    }
    let executed = matches!(
        to,
        PaymentStatus::Succeeded | PaymentStatus::RequiresCapture
    );
    if executed && next.gateway_reference.is_none() {
        return Err(ReviewError::NoReference(to));
    }
    match to {
        PaymentStatus::RequiresCapture if before.capture_method != CaptureMethod::Manual => {
            return Err(ReviewError::NotManual);
        }
        PaymentStatus::Succeeded => next.amount_captured = before.money.amount_minor,
        // The merchant reads this; the reason that was given stays between operators and feed.
        PaymentStatus::Failed => {
            next.failure = Some(Failure {
                code: "not-executed".to_owned(),
                message: "A review found that the gateway did not execute the payment.".to_owned(),
            });
        }
        PaymentStatus::RequiresCapture
        | PaymentStatus::Canceled
        | PaymentStatus::Processing
        | PaymentStatus::RequiresReview => {}
    }
    next.status = to;
    next.version = before.version + 1;
    next.updated_at = clock.now().max(before.created_at);
    Ok(next)
}

/// Takes the record over and settles it with the payment.
async fn settle(
    desk: &Desk,
    before: &Payment,
    next: &Payment,
    decision: &Decision,
    record: ReviewedRecord,
) -> Result<bool, ReviewError> {
    if record.operation != Operation::PaymentsCreate.as_str() {
        return Err(ReviewError::OtherOperation(record.operation));
    }
    let Some(held) = take_over(desk, before.merchant_id, &record).await? else {
        return Ok(false);
    };
    let response = (desk.presenter.answer)(next, &record.request_id);
    let ttl = if response.status < 300 {
        desk.ttl_completed
    } else {
        desk.ttl_failed
    };
    let told = follow_up(desk, before, next, decision);
    let settlement = Settlement {
        held,
        status_before: told.status_before,
        payment: told.payment,
        event_id: told.event_id,
        event_type: told.event_type,
        event_data: told.event_data,
        end: RecordEnd::Finished { response, ttl },
    };
    let settled = desk.database.run(&Settle(&[settlement])).await?;
    Ok(!settled.is_empty())
}

async fn take_over(
    desk: &Desk,
    merchant_id: MerchantId,
    record: &ReviewedRecord,
) -> Result<Option<Acquired>, DbError> {
    let abandoned = Abandoned {
        merchant_id,
        key: IdempotencyKey::from_stored(record.key.clone()),
        fence: record.fence,
        when: When::Always,
        owner: Uuid::new_v4(),
        lease_ttl: desk.lease_ttl,
    };
    let taken = desk.database.run(&TakeOver(&[abandoned])).await?;
    Ok(taken.into_iter().next().map(|taken| taken.acquired))
}

/// The key was answered before the payment came here: that answer stays (I7).
async fn follow(
    desk: &Desk,
    before: &Payment,
    next: &Payment,
    decision: &Decision,
) -> Result<bool, ReviewError> {
    let follow_up = follow_up(desk, before, next, decision);
    Ok(desk.database.run(&Follow(&follow_up)).await?)
}

fn follow_up(desk: &Desk, before: &Payment, next: &Payment, decision: &Decision) -> FollowUp {
    let resolution = json!({
        "by": decision.by,
        "reason": decision.reason,
        "gateway_reference": decision.gateway_reference,
    });
    FollowUp {
        status_before: before.status,
        payment: next.clone(),
        event_id: EventId::generate(next.updated_at),
        event_type: event_type(next.status),
        event_data: with_member((desk.presenter.document)(next), "resolution", resolution),
    }
}
