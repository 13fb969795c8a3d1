//! `payments.create`: what the guard asks for, in its three phases.
//!
//! Claim writes the payment as `processing`, perform talks to the gateway and holds nothing of the
//! database, settle turns an outcome into a payment, an event and a stored answer.

use std::{fmt, time::Duration};

use serde_json::Value;

use super::{
    command::CreatePayment,
    model::{CaptureMethod, Failure, Payment},
    state::PaymentStatus,
    store::{FollowUp, NewPayment, RecordEnd, Settlement},
};
use crate::{
    app::App,
    crash::{self, Moment},
    gateways::{Authorize, Call, Decline, Find, Finding, GatewayReference, Outcome, Unknown},
    idempotency::{
        perform::{timed, timed_find},
        record::{Acquired, NewRecord, StoredResponse},
    },
    ids::{EventId, PaymentId},
    seeded::{self, Bug, seeded},
};

/// Characters of a gateway's text that are kept; longer ones are cut.
const TEXT_CHARS_MAX: usize = 500;

/// How payments are shown to merchants; the HTTP side provides it, so that a rescuer which knows
/// no HTTP stores the same bytes as a handler.
#[derive(Clone, Copy)]
pub struct Presenter {
    /// The answer to whoever created the payment, under the request id that is given.
    pub answer: fn(&Payment, &str) -> StoredResponse,
    /// The payment as a document, for events.
    pub document: fn(&Payment) -> Value,
}

impl fmt::Debug for Presenter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Presenter")
    }
}

/// What the claim writes: the record, and the payment it will have.
pub fn new_payment(app: &App, record: NewRecord, command: CreatePayment) -> NewPayment {
    // A payment that was released and is claimed again keeps its id, and the time in it: lists are
    // bounded by the one, and answered by the other.
    let id = PaymentId::from_uuid(record.resource_id);
    NewPayment {
        record,
        command,
        created_at: id.created_at().unwrap_or_else(|| app.clock.now()),
    }
}

/// The payment as the claim has written it.
pub fn claimed(new: &NewPayment) -> Payment {
    let NewPayment {
        record,
        command,
        created_at,
    } = new;
    Payment {
        merchant_id: record.merchant_id,
        id: PaymentId::from_uuid(record.resource_id),
        status: PaymentStatus::Processing,
        money: command.money,
        amount_captured: 0,
        amount_refunded: 0,
        payment_method: command.payment_method.clone(),
        capture_method: command.capture_method,
        reference: command.reference.clone(),
        description: command.description.clone(),
        customer: command.customer.clone(),
        metadata: command.metadata.clone(),
        failure: None,
        gateway: record.gateway.to_owned(),
        gateway_key: record.gateway_key.clone(),
        gateway_reference: None,
        version: 0,
        created_at: *created_at,
        updated_at: *created_at,
    }
}

/// Sends the payment to the gateway, once.
///
/// What is sent comes from the payment alone and holds none of our random ids: a gateway refuses a
/// key that returns with other parameters, and after a failover that lost the record our ids are
/// new.
pub async fn send(app: &App, payment: &Payment) -> Outcome {
    let mut request = Authorize {
        gateway_key: payment.gateway_key.clone(),
        money: payment.money,
        payment_method: payment.payment_method.clone(),
        capture_method: payment.capture_method,
        description: payment.description.clone(),
    };
    if seeded(Bug::RandomGatewayKey) {
        request.gateway_key = seeded::random_gateway_key();
    }
    crash::point("send", Moment::Before);
    let outcome = timed(app, Call::Authorize, app.gateway.authorize(&request)).await;
    crash::point("send", Moment::After);
    outcome
}

/// Asks the gateway what became of the payment.
pub async fn ask(app: &App, payment: &Payment) -> Finding {
    let sought = Find {
        call: Call::Authorize,
        gateway_key: payment.gateway_key.clone(),
        reference: payment.gateway_reference.clone().map(GatewayReference),
    };
    crash::point("ask", Moment::Before);
    let finding = timed_find(app, app.gateway.find(&sought)).await;
    crash::point("ask", Moment::After);
    finding
}

/// The payment after an outcome that decides it; `None` for one that does not, or that the state
/// it is in does not allow.
pub fn decided(app: &App, payment: &Payment, outcome: &Outcome) -> Option<Payment> {
    let mut next = payment.clone();
    match outcome {
        Outcome::Approved { reference } => {
            next.gateway_reference = Some(storable(&reference.0));
            match payment.capture_method {
                CaptureMethod::Automatic => {
                    next.status = PaymentStatus::Succeeded;
                    next.amount_captured = payment.money.amount_minor;
                }
                CaptureMethod::Manual => next.status = PaymentStatus::RequiresCapture,
            }
        }
        Outcome::Declined(decline) => {
            next.status = PaymentStatus::Failed;
            // A payment that was accepted before it was refused keeps the name it got then.
            if let Some(reference) = &decline.reference {
                next.gateway_reference = Some(storable(&reference.0));
            }
            next.failure = Some(failure(decline));
        }
        Outcome::Pending { reference } => {
            next.gateway_reference = Some(storable(&reference.0));
            next.status = PaymentStatus::Processing;
        }
        Outcome::NotExecuted(_) | Outcome::Unknown(_) => return None,
    }
    changed(app, payment, next)
}

/// The payment for which a person must look; `None` where one does already.
pub fn in_review(app: &App, payment: &Payment) -> Option<Payment> {
    let next = Payment {
        status: PaymentStatus::RequiresReview,
        ..payment.clone()
    };
    changed(app, payment, next)
}

/// Counts and dates the change, if the table of states has its edge.
fn changed(app: &App, payment: &Payment, next: Payment) -> Option<Payment> {
    let stays_open = payment.status == PaymentStatus::Processing && next.status == payment.status;
    if !stays_open && !payment.status.may_become(next.status) {
        return None;
    }
    Some(Payment {
        version: payment.version + 1,
        // A clock that went back must not make a payment that was updated before it was created.
        updated_at: app.clock.now().max(payment.created_at),
        ..next
    })
}

/// What settle writes to finish the record with the answer for `request_id`.
pub fn settlement(
    app: &App,
    held: &Acquired,
    before: &Payment,
    payment: Payment,
    request_id: &str,
) -> (Settlement, StoredResponse) {
    let response = (app.presenter.answer)(&payment, request_id);
    let idempotency = &app.settings.idempotency;
    let ttl = if response.status < 300 {
        idempotency.ttl_completed
    } else {
        idempotency.ttl_failed
    };
    let end = RecordEnd::Finished {
        response: response.clone(),
        ttl,
    };
    (settlement_with(app, held, before, payment, end), response)
}

/// What settle writes to put the payment in front of a person, who is told why.
pub fn review(
    app: &App,
    held: &Acquired,
    before: &Payment,
    payment: Payment,
    (reason, rest): (Unknown, Duration),
) -> Settlement {
    let settlement = settlement_with(app, held, before, payment, RecordEnd::Resting { rest });
    Settlement {
        event_data: with_reason(settlement.event_data, reason),
        ..settlement
    }
}

/// The document of an event that says why a person must look.
pub fn with_reason(document: Value, reason: Unknown) -> Value {
    with_member(document, "review_reason", reason.as_str().into())
}

/// A payment's document with what only its event says.
pub fn with_member(mut document: Value, name: &str, value: Value) -> Value {
    if let Value::Object(members) = &mut document {
        members.insert(name.to_owned(), value);
    }
    document
}

fn settlement_with(
    app: &App,
    held: &Acquired,
    before: &Payment,
    payment: Payment,
    end: RecordEnd,
) -> Settlement {
    Settlement {
        held: held.clone(),
        status_before: before.status,
        event_id: EventId::generate(payment.updated_at),
        event_type: event_type(payment.status),
        event_data: (app.presenter.document)(&payment),
        payment,
        end,
    }
}

/// What follow writes for a payment whose record is finished: it keeps its stored answer.
pub fn follow_up(app: &App, before: &Payment, payment: Payment) -> FollowUp {
    FollowUp {
        status_before: before.status,
        event_id: EventId::generate(payment.updated_at),
        event_type: event_type(payment.status),
        event_data: (app.presenter.document)(&payment),
        payment,
    }
}

/// What happened, in the past tense.
pub const fn event_type(status: PaymentStatus) -> &'static str {
    match status {
        PaymentStatus::Processing => "payment.accepted",
        PaymentStatus::Succeeded => "payment.succeeded",
        PaymentStatus::RequiresCapture => "payment.authorized",
        PaymentStatus::Failed => "payment.failed",
        PaymentStatus::Canceled => "payment.canceled",
        PaymentStatus::RequiresReview => "payment.review_required",
    }
}

fn failure(decline: &Decline) -> Failure {
    Failure {
        code: storable(&decline.code),
        message: storable(&decline.message),
    }
}

/// What a gateway says, in characters that can be stored: jsonb and text refuse NUL, and whatever
/// a gateway says must not keep a settle from committing after the money has moved.
fn storable(text: &str) -> String {
    text.chars()
        .filter(|char| !char.is_control())
        .take(TEXT_CHARS_MAX)
        .collect()
}
