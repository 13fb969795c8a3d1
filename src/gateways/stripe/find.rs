//! Looking for what a call did: by the payment's id where it is known, else by the gateway key in our
//! metadata.
//!
//! A read by id is never behind. The search is, and only points: what it found is read again by its
//! id. What was asked for stands in the metadata beside the key, so what is found is held against it
//! as the answer would have been. A payment that is read by its id also tells of calls that left
//! nothing in its metadata, as far as its state is final:
//!
//! | call | the payment | found |
//! | --- | --- | --- |
//! | authorize | has the key | what the answer would have said |
//! | capture | `requires_capture` | nothing: not done, and perhaps under way |
//! | capture | `canceled` | declined: nobody can capture it any more |
//! | capture | has the capture key | what the answer would have said |
//! | capture | captured, with another key or none | parameters differ: somebody else did, for a person |
//! | cancel | `requires_capture` | nothing: not done, and perhaps under way |
//! | cancel | `canceled` | approved, whoever did it: the authorisation is gone for good |
//! | cancel | `succeeded` | declined: what was taken cannot be let go |
//! | refund | has a refund with the key | what the answer would have said |
//!
//! Anything else decides nothing.

use serde::de::DeserializeOwned;

use super::{
    Stripe, decline,
    form::{self, AMOUNT, Asked, CAPTURE_AMOUNT, CAPTURE_KEY, CURRENCY, KEY, Subject, WireSum},
    state,
    wire::{Page, PaymentIntent, Refund},
};
use crate::{
    gateways::{
        Call, Find, Finding, GatewayKey, GatewayReference, Outcome, Unknown,
        http_client::ANSWER_BYTES_MAX,
    },
    payments::model::CaptureMethod,
    telemetry::error_chain,
};

/// Refunds have no search; the newest ones are read, at most so many pages of a hundred.
const REFUND_PAGES_MAX: usize = 3;

/// The look-up found nothing out.
const FAILED: Finding = Finding::Known(Outcome::Unknown(Unknown::GatewayError));

/// Looks for the effect of one call.
pub(super) async fn find(stripe: &Stripe, sought: &Find) -> Finding {
    let (call, key) = (sought.call, &sought.gateway_key);
    let found = match (call, &sought.reference) {
        (Call::Refund, payment) => find_refund(stripe, key, payment.as_ref()).await,
        (_, Some(GatewayReference(id))) => find_by_id(stripe, call, key, id).await,
        (Call::Authorize | Call::Capture, None) => search(stripe, call, key).await,
        (Call::Cancel, None) => Some(Finding::Absent),
    };
    found.unwrap_or(FAILED)
}

async fn find_by_id(stripe: &Stripe, call: Call, key: &GatewayKey, id: &str) -> Option<Finding> {
    let intent: PaymentIntent = read(stripe, &form::intent_path(id)).await?;
    if intent.id != id {
        tracing::error!("Stripe shows another payment than was asked about");
        return None;
    }
    Some(of_payment(call, key, &intent))
}

async fn search(stripe: &Stripe, call: Call, key: &GatewayKey) -> Option<Finding> {
    let name = key_name(call);
    let page: Page<PaymentIntent> = read(stripe, &form::search_path(name, key)).await?;
    let found: Vec<&PaymentIntent> = page
        .data
        .iter()
        .filter(|intent| intent.metadata.get(name).map(String::as_str) == Some(key.as_str()))
        .collect();
    match found.as_slice() {
        [] => Some(Finding::Absent),
        [one] => find_by_id(stripe, call, key, &one.id).await,
        // More than was asked for. Which of them to believe is not for a program to say.
        more => {
            let count = more.len();
            tracing::error!(count, "Stripe has several payments under one gateway key");
            Some(Finding::Known(Outcome::Unknown(Unknown::AmountDiffers)))
        }
    }
}

/// Where a call leaves its key.
const fn key_name(call: Call) -> &'static str {
    match call {
        Call::Capture => CAPTURE_KEY,
        Call::Authorize | Call::Cancel | Call::Refund => KEY,
    }
}

/// What the payment says about a call: the table above.
fn of_payment(call: Call, key: &GatewayKey, intent: &PaymentIntent) -> Finding {
    let too_late = |code, message| {
        let decline = decline::with_code(code, message, Some(&intent.id));
        Finding::Known(Outcome::Declined(decline))
    };
    match (call, intent.status.as_str()) {
        (Call::Capture | Call::Cancel, "requires_capture") => Finding::Absent,
        (Call::Cancel, "canceled") => Finding::Known(state::approved(&intent.id)),
        (Call::Capture, "canceled") => {
            too_late("authorization-canceled", "The authorisation was canceled.")
        }
        (Call::Cancel, "succeeded") => too_late("already-captured", "It was captured before."),
        (Call::Authorize | Call::Capture, _) => Finding::Known(match asked_of(call, key, intent) {
            Some(asked) => state::of_intent(&asked, intent),
            None => Outcome::Unknown(Unknown::ParametersDiffer),
        }),
        (Call::Cancel | Call::Refund, _) => FAILED,
    }
}

/// What the call asked for, by the metadata that it sent.
fn asked_of(call: Call, key: &GatewayKey, intent: &PaymentIntent) -> Option<Asked> {
    let sum = |amount: &str| {
        Some(WireSum {
            amount: intent.metadata.get(amount)?.parse().ok()?,
            currency: intent.metadata.get(CURRENCY)?.clone(),
        })
    };
    let subject = if call == Call::Capture {
        Subject::Capture {
            intent: intent.id.clone(),
            sum: sum(CAPTURE_AMOUNT)?,
        }
    } else {
        Subject::Authorize {
            sum: sum(AMOUNT)?,
            capture_method: match intent.capture_method.as_str() {
                "automatic" => CaptureMethod::Automatic,
                "manual" => CaptureMethod::Manual,
                _ => return None,
            },
        }
    };
    Some(Asked {
        gateway_key: key.as_str().to_owned(),
        subject,
    })
}

async fn find_refund(
    stripe: &Stripe,
    key: &GatewayKey,
    payment: Option<&GatewayReference>,
) -> Option<Finding> {
    let mut after: Option<String> = None;
    for _page in 0..REFUND_PAGES_MAX {
        let page: Page<Refund> =
            read(stripe, &form::refunds_path(payment, after.as_deref())).await?;
        let of_key =
            |refund: &&Refund| refund.metadata.get(KEY).map(String::as_str) == Some(key.as_str());
        if let Some(refund) = page.data.iter().find(of_key) {
            return Some(Finding::Known(outcome_of(key, refund)));
        }
        after = page.data.last().map(|refund| refund.id.clone());
        if !page.has_more || after.is_none() {
            break;
        }
    }
    Some(Finding::Absent)
}

fn outcome_of(key: &GatewayKey, refund: &Refund) -> Outcome {
    let asked = || {
        let sum = WireSum {
            amount: refund.metadata.get(AMOUNT)?.parse().ok()?,
            currency: refund.metadata.get(CURRENCY)?.clone(),
        };
        let intent = refund.payment_intent.clone()?;
        Some(Asked {
            gateway_key: key.as_str().to_owned(),
            subject: Subject::Refund { intent, sum },
        })
    };
    asked().map_or(Outcome::Unknown(Unknown::ParametersDiffer), |asked| {
        state::of_refund(&asked, refund)
    })
}

/// Reads a document; nothing where there was none, which is logged here.
async fn read<T: DeserializeOwned>(stripe: &Stripe, path: &str) -> Option<T> {
    let reply = match stripe.get(path, ANSWER_BYTES_MAX).await {
        Ok(reply) => reply,
        Err(error) => {
            tracing::warn!(error = %error_chain(&error), "a look-up got no answer from Stripe");
            return None;
        }
    };
    if !reply.status.is_success() {
        tracing::warn!(status = %reply.status, "Stripe refused a look-up");
        return None;
    }
    serde_json::from_slice(&reply.body)
        .inspect_err(|error| tracing::error!(%error, "Stripe's answer cannot be read"))
        .ok()
}
