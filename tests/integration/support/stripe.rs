//! Requests to the stripe gateway, and outcomes in words.

use std::time::Duration;

use oncepay::{
    gateways::{
        Authorize, Call, Find, Finding, Gateway as _, GatewayKey, GatewayReference, NotExecuted,
        Outcome, stripe::Stripe,
    },
    payments::{currency::Currency, model::CaptureMethod, money::Money},
};

/// For calls that must be answered; only a test that fails waits as long.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// For calls that are never answered.
pub const SHORT: Duration = Duration::from_millis(500);

pub fn money(amount_minor: i64, code: &str) -> Money {
    let currency = Currency::from_code(code).unwrap();
    Money {
        amount_minor,
        currency,
    }
}

pub fn authorize(key: &str) -> Authorize {
    Authorize {
        gateway_key: GatewayKey::new(key),
        money: money(1999, "EUR"),
        payment_method: "pm_card_visa".to_owned(),
        capture_method: CaptureMethod::Automatic,
        description: None,
    }
}

pub fn authorize_with(key: &str, payment_method: &str) -> Authorize {
    Authorize {
        payment_method: payment_method.to_owned(),
        ..authorize(key)
    }
}

pub fn hold(key: &str) -> Authorize {
    Authorize {
        capture_method: CaptureMethod::Manual,
        ..authorize(key)
    }
}

pub async fn find(stripe: &Stripe, call: Call, key: &str) -> Finding {
    let sought = Find {
        call,
        gateway_key: GatewayKey::new(key),
        reference: None,
    };
    stripe.find(&sought).await
}

/// The same where the payment that the call was about is known.
pub async fn find_at(
    stripe: &Stripe,
    call: Call,
    key: &str,
    payment: &GatewayReference,
) -> Finding {
    let sought = Find {
        call,
        gateway_key: GatewayKey::new(key),
        reference: Some(payment.clone()),
    };
    stripe.find(&sought).await
}

#[track_caller]
pub fn reference(outcome: &Outcome) -> GatewayReference {
    let Outcome::Approved { reference } = outcome else {
        panic!("it must be approved, but is {outcome:?}");
    };
    reference.clone()
}

/// The kind of an outcome, and its reason or code.
pub fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Approved { .. } => "approved".to_owned(),
        Outcome::Declined(decline) => format!("declined {}", decline.code),
        Outcome::Pending { .. } => "pending".to_owned(),
        Outcome::NotExecuted(NotExecuted::Refused) => "not-executed refused".to_owned(),
        Outcome::NotExecuted(NotExecuted::Unreachable) => "not-executed unreachable".to_owned(),
        Outcome::Unknown(reason) => format!("unknown {}", reason.as_str()),
    }
}
