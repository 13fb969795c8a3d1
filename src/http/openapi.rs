//! The description of the API, generated from the handlers.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::{
    Modify, OpenApi, ToSchema,
    openapi::{
        Content, OpenApi as Document, Ref, RefOr, Response,
        security::{Http, HttpAuthScheme, SecurityScheme},
    },
};

use super::problem::{MEDIA_TYPE, ProblemKind};

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

/// What every operation can answer, whatever it does: the checks come before the handlers.
const ANYWHERE: [(ProblemKind, &str); 3] = [
    (ProblemKind::RequestTimeout, "The body was too slow"),
    (ProblemKind::BodyTooLarge, "The body is too large"),
    (ProblemKind::InternalError, "A bug"),
];

/// Adds what is the same for all operations, and gives problems their media type.
pub fn complete(document: &mut Document) {
    for path in document.paths.paths.values_mut() {
        let operations = [
            &mut path.get,
            &mut path.post,
            &mut path.put,
            &mut path.delete,
        ];
        for operation in operations.into_iter().flatten() {
            let responses = &mut operation.responses.responses;
            for (kind, description) in ANYWHERE {
                let status = kind.entry().status.as_str().to_owned();
                responses.entry(status).or_insert_with(|| {
                    let mut response = Response::new(description);
                    response.content.insert(MEDIA_TYPE.to_owned(), problem());
                    RefOr::T(response)
                });
            }
            for response in responses.values_mut() {
                if let RefOr::T(response) = response {
                    name_problem(response);
                }
            }
        }
    }
}

/// utoipa describes every body as `application/json`.
fn name_problem(response: &mut Response) {
    if response.content.get("application/json") == Some(&problem()) {
        response.content.clear();
        response.content.insert(MEDIA_TYPE.to_owned(), problem());
    }
}

fn problem() -> RefOr<Content> {
    let schema = Ref::from_schema_name("ProblemDocument");
    RefOr::T(Content::new(Some(schema)))
}

/// A payment to create. A member that is null counts as left out; others than these are refused.
// For the description only: the reader is strict JSON and `payments::command`, which refuse more
// than a schema can say.
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
