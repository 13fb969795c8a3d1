//! Who is calling: the merchant of the API key in `Authorization: Bearer sk_…` (RFC 6750).

use axum::{
    extract::FromRequestParts,
    http::{header, request::Parts},
};

use super::{error::unauthenticated, problem::Problem, query::refuse_card_numbers};
use crate::{app::App, ids::MerchantId, merchants};

/// The merchant who calls. Taking it as an argument is what authenticates a handler.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pub merchant_id: MerchantId,
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let secret = bearer(parts).ok_or_else(unauthenticated)?;
        let authenticated = merchants::authenticate(&app.database, secret).await?;
        // Here, because every request of a merchant passes here, and nothing else of it was read.
        refuse_card_numbers(&parts.uri)?;
        Ok(Self {
            merchant_id: authenticated.merchant_id,
        })
    }
}

/// The token of the one `Authorization` header; two of them are as good as none.
fn bearer(parts: &Parts) -> Option<&str> {
    let mut values = parts.headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("Bearer")
        .then(|| token.trim_start_matches(' '))
}
