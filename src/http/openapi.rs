//! The description of the API, generated from the handlers.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::{
    Modify, OpenApi, ToSchema,
    openapi::{
        OpenApi as Document,
        security::{Http, HttpAuthScheme, SecurityScheme},
    },
};

/// The document that the routes are added to.
#[derive(Debug, OpenApi)]
#[openapi(
    info(
        title = "oncepay",
        description = "Payments that are executed once per idempotency key."
    ),
    modifiers(&ApiKeySecurity),
    components(schemas(super::problem::ProblemDocument))
)]
pub struct Api;

/// `Authorization: Bearer sk_…`.
#[derive(Debug)]
struct ApiKeySecurity;

impl Modify for ApiKeySecurity {
    fn modify(&self, document: &mut Document) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        document
            .components
            .get_or_insert_default()
            .add_security_scheme("api_key", scheme);
    }
}

/// What `POST /v1/payments` reads. For the description only: the reader is strict JSON and
/// `payments::command`, which refuse more than a schema can say.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatePaymentBody {
    /// In minor units: 1999 and EUR is 19.99 euros.
    #[schema(minimum = 1, maximum = 1_000_000_000_000_i64, example = 1999)]
    amount: i64,
    /// ISO 4217, alphabetic, upper case.
    #[schema(pattern = "^[A-Z]{3}$", example = "EUR")]
    currency: String,
    /// A token; card numbers are refused anywhere in the request.
    #[schema(example = "pm_card_visa")]
    payment_method: String,
    /// `automatic` (the default) or `manual`.
    #[schema(example = "automatic")]
    capture_method: Option<String>,
    #[schema(max_length = 255, example = "order-1")]
    reference: Option<String>,
    #[schema(max_length = 1000)]
    description: Option<String>,
    #[schema(max_length = 255)]
    customer: Option<String>,
    /// At most 50 members.
    metadata: Option<BTreeMap<String, String>>,
}
