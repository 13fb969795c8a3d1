//! What is asked of Stripe: a path and a form, a pure function of the request.
//!
//! Stripe refuses a key that returns with other parameters, metadata included. So the order is
//! fixed, nothing comes from a clock or a random number, and what a look-up will need to judge what
//! it finds (the key, the amount, the currency) goes out as metadata with the call itself.

use form_urlencoded::Serializer;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::amount::{currency_to_wire, to_wire};
use crate::{
    gateways::{Authorize, Cancel, Capture, GatewayKey, GatewayReference, Refund},
    payments::model::CaptureMethod,
};

/// Metadata of a payment intent and of a refund: the key that made it.
pub(in crate::gateways) const KEY: &str = "oncepay_gateway_key";
/// The amount and the currency that were asked for, as they are on the wire.
pub(super) const AMOUNT: &str = "oncepay_amount";
pub(super) const CURRENCY: &str = "oncepay_currency";
/// Metadata that a capture adds to its payment intent.
pub(super) const CAPTURE_KEY: &str = "oncepay_capture_key";
pub(super) const CAPTURE_AMOUNT: &str = "oncepay_capture_amount";

/// Objects of a page, at most; Stripe gives no more.
pub(super) const PAGE_OBJECTS_MAX: usize = 100;

/// What Stripe's ids are made of passes unchanged; anything else cannot leave its segment.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_');

/// A POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) path: String,
    pub(super) body: String,
}

/// What the answer is held against, in Stripe's units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) gateway_key: String,
    pub(super) subject: Subject,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Authorize {
        sum: WireSum,
        capture_method: CaptureMethod,
    },
    Capture {
        intent: String,
        sum: WireSum,
    },
    Cancel {
        intent: String,
    },
    Refund {
        intent: String,
        sum: WireSum,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WireSum {
    pub(super) amount: i64,
    pub(super) currency: String,
}

impl WireSum {
    fn of(money: crate::payments::money::Money) -> Option<Self> {
        Some(Self {
            amount: to_wire(money)?,
            currency: currency_to_wire(money.currency),
        })
    }
}

/// Creates and confirms in one request; nothing where the amount cannot be expressed.
pub(super) fn authorize(request: &Authorize) -> Option<(Asked, Form)> {
    let sum = WireSum::of(request.money)?;
    let (amount, key) = (sum.amount.to_string(), request.gateway_key.as_str());
    let mut form = Serializer::new(String::new());
    form.append_pair("amount", &amount)
        .append_pair("currency", &sum.currency)
        .append_pair("payment_method", &request.payment_method)
        // Cards only: other methods redirect the payer, and nobody is there to be redirected.
        .append_pair("payment_method_types[]", "card")
        .append_pair("capture_method", request.capture_method.as_str())
        .append_pair("confirm", "true")
        .append_pair("error_on_requires_action", "true");
    if let Some(description) = &request.description {
        form.append_pair("description", description);
    }
    form.append_pair(&metadata(KEY), key)
        .append_pair(&metadata(AMOUNT), &amount)
        .append_pair(&metadata(CURRENCY), &sum.currency);
    let subject = Subject::Authorize {
        sum,
        capture_method: request.capture_method,
    };
    Some(with(
        &request.gateway_key,
        subject,
        "/v1/payment_intents".to_owned(),
        form,
    ))
}

/// Takes the money; what is not taken is released by Stripe.
pub(super) fn capture(request: &Capture) -> Option<(Asked, Form)> {
    let sum = WireSum::of(request.money)?;
    let amount = sum.amount.to_string();
    let mut form = Serializer::new(String::new());
    form.append_pair("amount_to_capture", &amount)
        .append_pair(&metadata(CAPTURE_KEY), request.gateway_key.as_str())
        .append_pair(&metadata(CAPTURE_AMOUNT), &amount);
    let GatewayReference(intent) = request.authorization.clone();
    let path = format!("{}/capture", intent_path(&intent));
    let subject = Subject::Capture { intent, sum };
    Some(with(&request.gateway_key, subject, path, form))
}

/// Lets the authorisation go. Stripe takes no metadata here, so only the payment's own state tells
/// of it.
pub(super) fn cancel(request: &Cancel) -> (Asked, Form) {
    let GatewayReference(intent) = request.authorization.clone();
    let path = format!("{}/cancel", intent_path(&intent));
    let subject = Subject::Cancel { intent };
    let form = Serializer::new(String::new());
    with(&request.gateway_key, subject, path, form)
}

pub(super) fn refund(request: &Refund) -> Option<(Asked, Form)> {
    let sum = WireSum::of(request.money)?;
    let GatewayReference(intent) = request.charge.clone();
    let (amount, key) = (sum.amount.to_string(), request.gateway_key.as_str());
    let mut form = Serializer::new(String::new());
    form.append_pair("payment_intent", &intent)
        .append_pair("amount", &amount)
        .append_pair(&metadata(KEY), key)
        .append_pair(&metadata(AMOUNT), &amount)
        .append_pair(&metadata(CURRENCY), &sum.currency);
    let subject = Subject::Refund { intent, sum };
    Some(with(
        &request.gateway_key,
        subject,
        "/v1/refunds".to_owned(),
        form,
    ))
}

pub(super) fn intent_path(id: &str) -> String {
    format!("/v1/payment_intents/{}", utf8_percent_encode(id, SEGMENT))
}

/// The search for payment intents whose metadata has this value.
pub(super) fn search_path(name: &str, gateway_key: &GatewayKey) -> String {
    let value = gateway_key
        .as_str()
        .replace('\\', "\\\\")
        .replace('\'', "\\'");
    let query = Serializer::new(String::new())
        .append_pair("query", &format!("metadata['{name}']:'{value}'"))
        .append_pair("limit", "10")
        .finish();
    format!("/v1/payment_intents/search?{query}")
}

/// A page of refunds, the newest first; of one payment where that is known.
pub(super) fn refunds_path(intent: Option<&GatewayReference>, after: Option<&str>) -> String {
    let only = intent.map(|GatewayReference(intent)| ("payment_intent", intent.as_str()));
    page_path("/v1/refunds", only, after)
}

/// A page of a list of all that was made since then, the newest first.
pub(super) fn list_path(list: &str, since_seconds: i64, after: Option<&str>) -> String {
    let since = since_seconds.to_string();
    page_path(list, Some(("created[gte]", &since)), after)
}

fn page_path(list: &str, only: Option<(&str, &str)>, after: Option<&str>) -> String {
    let mut query = Serializer::new(String::new());
    query
        .append_pair("limit", &PAGE_OBJECTS_MAX.to_string())
        .extend_pairs(only)
        .extend_pairs(after.map(|after| ("starting_after", after)));
    format!("{list}?{}", query.finish())
}

fn metadata(name: &str) -> String {
    format!("metadata[{name}]")
}

fn with(
    gateway_key: &GatewayKey,
    subject: Subject,
    path: String,
    mut form: Serializer<'_, String>,
) -> (Asked, Form) {
    let asked = Asked {
        gateway_key: gateway_key.as_str().to_owned(),
        subject,
    };
    let body = form.finish();
    (asked, Form { path, body })
}
