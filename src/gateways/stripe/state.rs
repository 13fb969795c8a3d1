//! What a payment intent or a refund says about the call that made it.
//!
//! An object is only believed when it is the one that was asked about: its id or key, its amount
//! and its currency are compared first. Another amount or currency is for a person, whatever the
//! status says, and a status that this page does not know decides nothing.

use super::{
    decline::{self, AUTHENTICATION_REQUIRED},
    form::{Asked, CAPTURE_KEY, KEY, Subject, WireSum},
    wire::{PaymentIntent, Refund},
};
use crate::{
    gateways::{GatewayReference, Outcome, Unknown},
    payments::model::CaptureMethod,
    seeded::{Bug, seeded},
};

const UNDECIDED: Outcome = Outcome::Unknown(Unknown::GatewayError);

/// What `intent` says about the call that `asked` describes.
pub(super) fn of_intent(asked: &Asked, intent: &PaymentIntent) -> Outcome {
    match &asked.subject {
        Subject::Authorize {
            sum,
            capture_method,
        } => of_authorization(&asked.gateway_key, sum, *capture_method, intent),
        Subject::Capture { intent: id, sum } => of_capture(&asked.gateway_key, id, sum, intent),
        Subject::Cancel { intent: id } => of_cancel(id, intent),
        // The answer to a refund is a refund.
        Subject::Refund { .. } => UNDECIDED,
    }
}

fn of_authorization(
    gateway_key: &str,
    sum: &WireSum,
    capture_method: CaptureMethod,
    intent: &PaymentIntent,
) -> Outcome {
    if intent.metadata.get(KEY).map(String::as_str) != Some(gateway_key)
        || intent.capture_method != capture_method.as_str()
    {
        return Outcome::Unknown(Unknown::ParametersDiffer);
    }
    let told = seeded(Bug::AmountNotCompared).then(|| WireSum {
        amount: intent.amount,
        currency: intent.currency.clone(),
    });
    let sum = told.as_ref().unwrap_or(sum);
    if intent.amount != sum.amount || intent.currency != sum.currency {
        return Outcome::Unknown(Unknown::AmountDiffers);
    }
    match (intent.status.as_str(), capture_method) {
        ("succeeded", CaptureMethod::Automatic) if intent.amount_received != sum.amount => {
            Outcome::Unknown(Unknown::AmountDiffers)
        }
        ("succeeded", CaptureMethod::Automatic) | ("requires_capture", CaptureMethod::Manual) => {
            approved(&intent.id)
        }
        // The money was taken where it should only be held: somebody else had a hand in it.
        ("succeeded", CaptureMethod::Manual) => Outcome::Unknown(Unknown::ParametersDiffer),
        ("processing", _) => Outcome::Pending {
            reference: reference(&intent.id),
        },
        ("requires_payment_method", _) => of_failure(intent),
        // Nobody is there to act: we never hand out what the payer would need for it.
        ("requires_action", _) => Outcome::Declined(decline::with_code(
            AUTHENTICATION_REQUIRED,
            "The payer must authenticate, which this payment does not allow.",
            Some(&intent.id),
        )),
        ("canceled", _) => Outcome::Declined(decline::with_code(
            "canceled",
            "The payment was canceled at the gateway.",
            Some(&intent.id),
        )),
        _ => UNDECIDED,
    }
}

/// Without an error it was never confirmed, which says nothing about what comes.
fn of_failure(intent: &PaymentIntent) -> Outcome {
    match &intent.last_payment_error {
        Some(error) => Outcome::Declined(decline::card(error, Some(reference(&intent.id)))),
        None => UNDECIDED,
    }
}

fn of_capture(gateway_key: &str, id: &str, sum: &WireSum, intent: &PaymentIntent) -> Outcome {
    if intent.id != id {
        return UNDECIDED;
    }
    if intent.metadata.get(CAPTURE_KEY).map(String::as_str) != Some(gateway_key) {
        return Outcome::Unknown(Unknown::ParametersDiffer);
    }
    match intent.status.as_str() {
        "succeeded" if intent.amount_received != sum.amount || intent.currency != sum.currency => {
            Outcome::Unknown(Unknown::AmountDiffers)
        }
        "succeeded" => approved(&intent.id),
        "processing" => Outcome::Pending {
            reference: reference(&intent.id),
        },
        _ => UNDECIDED,
    }
}

fn of_cancel(id: &str, intent: &PaymentIntent) -> Outcome {
    if intent.id == id && intent.status == "canceled" {
        approved(&intent.id)
    } else {
        UNDECIDED
    }
}

/// What `refund` says about the call that `asked` describes.
pub(super) fn of_refund(asked: &Asked, refund: &Refund) -> Outcome {
    let Subject::Refund { intent, sum } = &asked.subject else {
        return UNDECIDED;
    };
    if refund.metadata.get(KEY) != Some(&asked.gateway_key)
        || refund.payment_intent.as_ref() != Some(intent)
    {
        return Outcome::Unknown(Unknown::ParametersDiffer);
    }
    if refund.amount != sum.amount || refund.currency != sum.currency {
        return Outcome::Unknown(Unknown::AmountDiffers);
    }
    match refund.status.as_str() {
        "succeeded" => approved(&refund.id),
        // The latter waits for the customer, for months perhaps; the gateway has accepted it.
        "pending" | "requires_action" => Outcome::Pending {
            reference: reference(&refund.id),
        },
        "failed" | "canceled" => Outcome::Declined(decline::with_code(
            "refund-failed",
            "The gateway could not give the money back.",
            Some(&refund.id),
        )),
        _ => UNDECIDED,
    }
}

pub(super) fn approved(id: &str) -> Outcome {
    Outcome::Approved {
        reference: reference(id),
    }
}

pub(super) fn reference(id: &str) -> GatewayReference {
    GatewayReference(id.to_owned())
}
