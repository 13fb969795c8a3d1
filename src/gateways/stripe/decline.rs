//! A refusal of Stripe's in our words.

use super::wire::ApiError;
use crate::gateways::{Decline, GatewayReference};

/// The gateway refused the request itself: a mistake of ours, of the set-up or of the merchant.
pub(super) const REJECTED: &str = "gateway-rejected";
pub(super) const AUTHENTICATION_REQUIRED: &str = "authentication-required";

/// Longer than any code of Stripe's.
const CODE_CHARS_MAX: usize = 64;

/// A card was declined: the finer of the two codes that Stripe gives.
pub(super) fn card(error: &ApiError, reference: Option<GatewayReference>) -> Decline {
    Decline {
        code: code(error),
        message: message(error, "The card was declined."),
        reference,
    }
}

/// The gateway refused the request.
pub(super) fn rejected(error: &ApiError, reference: Option<GatewayReference>) -> Decline {
    Decline {
        code: REJECTED.to_owned(),
        message: message(error, "The gateway refused the request."),
        reference,
    }
}

pub(super) fn with_code(code: &str, message: &str, reference: Option<&str>) -> Decline {
    Decline {
        code: code.to_owned(),
        message: message.to_owned(),
        reference: reference.map(|id| GatewayReference(id.to_owned())),
    }
}

fn message(error: &ApiError, otherwise: &str) -> String {
    error.message.as_deref().unwrap_or(otherwise).to_owned()
}

fn code(error: &ApiError) -> String {
    let decline_code = error
        .decline_code
        .as_deref()
        .filter(|code| *code != "generic_decline");
    match decline_code.or(error.code.as_deref()) {
        // The word that the sandbox uses, and its callers know.
        Some("expired_card") => "card-expired".to_owned(),
        Some(code) => kebab(code).unwrap_or_else(|| "card-declined".to_owned()),
        None => "card-declined".to_owned(),
    }
}

/// A code that is none of ours reaches clients as it came: so only what looks like one.
fn kebab(code: &str) -> Option<String> {
    let plain = code
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    (plain && !code.is_empty() && code.len() <= CODE_CHARS_MAX).then(|| code.replace('_', "-"))
}
