//! Looking for what a call did, by the gateway key in our metadata.
//!
//! The search only points: what it found is read again by its id, because the search's own copy may
//! be older than the object. What was asked for stands in the metadata beside the key, so what is
//! found is held against it as the answer would have been.

use serde::de::DeserializeOwned;

use super::{
    Stripe,
    form::{self, AMOUNT, Asked, CAPTURE_AMOUNT, CAPTURE_KEY, CURRENCY, KEY, Subject, WireSum},
    state,
    wire::{Page, PaymentIntent, Refund},
};
use crate::{
    gateways::{Call, Find, Finding, GatewayKey, Outcome, Unknown},
    payments::model::CaptureMethod,
    telemetry::error_chain,
};

/// Refunds have no search; the newest ones are read, at most so many pages of a hundred.
const REFUND_PAGES_MAX: usize = 3;

/// The look-up found nothing out.
const FAILED: Finding = Finding::Known(Outcome::Unknown(Unknown::GatewayError));

/// Looks for the effect of one call.
pub(super) async fn find(stripe: &Stripe, sought: &Find) -> Finding {
    let key = &sought.gateway_key;
    let found = match sought.call {
        Call::Authorize => find_intent(stripe, KEY, key).await,
        Call::Capture => find_intent(stripe, CAPTURE_KEY, key).await,
        Call::Refund => find_refund(stripe, key).await,
        Call::Cancel => Some(Finding::Absent),
    };
    found.unwrap_or(FAILED)
}

async fn find_intent(stripe: &Stripe, name: &str, key: &GatewayKey) -> Option<Finding> {
    let page: Page<PaymentIntent> = read(stripe, &form::search_path(name, key)).await?;
    let found: Vec<&PaymentIntent> = page
        .data
        .iter()
        .filter(|intent| intent.metadata.get(name).map(String::as_str) == Some(key.as_str()))
        .collect();
    match found.as_slice() {
        [] => Some(Finding::Absent),
        [one] => {
            let intent: PaymentIntent = read(stripe, &form::intent_path(&one.id)).await?;
            let outcome = match asked_of(name, key, &intent) {
                Some(asked) => state::of_intent(&asked, &intent),
                None => Outcome::Unknown(Unknown::ParametersDiffer),
            };
            Some(Finding::Known(outcome))
        }
        // More than was asked for. Which of them to believe is not for a program to say.
        more => {
            let count = more.len();
            tracing::error!(count, "Stripe has several payments under one gateway key");
            Some(Finding::Known(Outcome::Unknown(Unknown::AmountDiffers)))
        }
    }
}

/// What the call asked for, by the metadata that it sent.
fn asked_of(name: &str, key: &GatewayKey, intent: &PaymentIntent) -> Option<Asked> {
    let sum = |amount: &str| {
        Some(WireSum {
            amount: intent.metadata.get(amount)?.parse().ok()?,
            currency: intent.metadata.get(CURRENCY)?.clone(),
        })
    };
    let subject = if name == CAPTURE_KEY {
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

async fn find_refund(stripe: &Stripe, key: &GatewayKey) -> Option<Finding> {
    let mut after: Option<String> = None;
    for _page in 0..REFUND_PAGES_MAX {
        let page: Page<Refund> = read(stripe, &form::refunds_path(after.as_deref())).await?;
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
    let reply = match stripe.get(path).await {
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
