//! Payments over HTTP.

use axum::{
    extract::State,
    http::{StatusCode, Uri},
    response::Response,
};
use chrono::{DateTime, Utc};

use super::{
    answer,
    auth::Caller,
    body::StrictBody,
    guarded,
    idempotency_key::RequestKey,
    middleware::Context,
    pagination::{LIMIT_DEFAULT, cursor, read_cursor, read_limit},
    path::PathSegment,
    problem::{Problem, ProblemDocument, ProblemKind},
    query::QueryMembers,
    views::{PaymentListView, PaymentView},
};
use crate::{
    app::App,
    idempotency::{
        fingerprint::Fingerprint,
        key::IdempotencyKey,
        operation::Operation,
        run::{Attempt, run},
    },
    ids::{MerchantId, PaymentId},
    payments::{
        command::CreatePayment,
        store::{Find, List, Page},
    },
};

/// Creates a payment, once per idempotency key
///
/// Every retry of the same request under the same key gets the same bytes.
#[utoipa::path(
    post,
    path = "/v1/payments",
    operation_id = "create_payment",
    tag = "payments",
    request_body = super::openapi::CreatePaymentBody,
    params(
        ("Idempotency-Key" = String, Header, description =
            "1–255 bytes of visible ASCII without `\"`, `,` and `\\`; bare or quoted"),
        ("Prefer" = Option<String>, Header, description =
            "`wait=N`: a duplicate waits up to N (at most 25) seconds for the first request"),
    ),
    responses(
        (status = 201, description = "The payment; `processing` where the gateway has accepted it and \
            decides later", body = PaymentView),
        (status = 202, description = "It is not known yet what the gateway did; the same key \
            answers 202 until it is, then the final answer", body = PaymentView),
        (status = 400, description = "Key or JSON refused", body = ProblemDocument),
        (status = 401, description = "No valid API key", body = ProblemDocument),
        (status = 402, description = "Declined; stored and replayed", body = ProblemDocument),
        (status = 408, description = "The body was too slow", body = ProblemDocument),
        (status = 409, description = "The first request with this key is in progress",
            body = ProblemDocument),
        (status = 410, description = "The key was used and has expired", body = ProblemDocument),
        (status = 413, description = "The body is too large", body = ProblemDocument),
        (status = 415, description = "The body is not JSON", body = ProblemDocument),
        (status = 422, description = "A member is not valid, or the key belongs to another request",
            body = ProblemDocument),
        (status = 500, description = "A bug; retry with the same key", body = ProblemDocument),
        (status = 503, description = "Nothing executed, or not known; retry with the same key",
            body = ProblemDocument),
    ),
    security(("api_key" = []))
)]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    RequestKey(key): RequestKey,
    context: Context,
    uri: Uri,
    body: Result<StrictBody, Problem>,
) -> Response {
    let read = body.and_then(|StrictBody { document, wait }| {
        let command = CreatePayment::from_document(&document)?;
        Ok((document, wait, command))
    });
    let (document, wait, command) = match read {
        Ok(read) => read,
        Err(problem) => return guarded::refuse(&key, problem),
    };
    let operation = Operation::PaymentsCreate;
    let attempt = Attempt {
        merchant_id: caller.merchant_id,
        fingerprint: Fingerprint::of(operation, uri.path(), uri.query(), &document),
        key: key.clone(),
        operation,
        document,
        command,
        request_id: context.request_id.to_string(),
        wait: wait.unwrap_or_default(),
    };
    let answer = run(&app, attempt).await;
    guarded::respond(&app, caller.merchant_id, &key, wait, answer).await
}

/// One payment
#[utoipa::path(
    get,
    path = "/v1/payments/{id}",
    operation_id = "get_payment",
    tag = "payments",
    params(("id" = String, Path, description = "`pay_…`")),
    responses(
        (status = 200, description = "The payment as it stands", body = PaymentView),
        (status = 400, description = "The query holds a card number", body = ProblemDocument),
        (status = 401, description = "No valid API key", body = ProblemDocument),
        (status = 404, description = "This merchant has no such payment", body = ProblemDocument),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument),
    ),
    security(("api_key" = []))
)]
pub async fn get(
    State(app): State<App>,
    caller: Caller,
    PathSegment(id): PathSegment,
) -> Result<Response, Problem> {
    // What is no id of ours names no payment.
    let id: PaymentId = id.parse().map_err(|_invalid| not_found())?;
    let found = app.database.run(&Find(&[(caller.merchant_id, id)])).await?;
    let payment = found.first().ok_or_else(not_found)?;
    Ok(answer::json(StatusCode::OK, &PaymentView::from(payment)))
}

/// The payments of the merchant, newest first
#[utoipa::path(
    get,
    path = "/v1/payments",
    operation_id = "list_payments",
    tag = "payments",
    params(
        ("limit" = Option<i64>, Query, description = "1–100, 20 if left out"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("status" = Option<String>, Query, description = "Only payments in this status"),
        ("reference" = Option<String>, Query, description = "Only payments with this reference"),
        ("idempotency_key" = Option<String>, Query, description = "Only what this key made"),
        ("created_after" = Option<String>, Query, description = "RFC 3339, inclusive"),
        ("created_before" = Option<String>, Query, description = "RFC 3339, exclusive"),
    ),
    responses(
        (status = 200, description = "A page", body = PaymentListView),
        (status = 400, description = "A parameter is not valid", body = ProblemDocument),
        (status = 401, description = "No valid API key", body = ProblemDocument),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument),
    ),
    security(("api_key" = []))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    query: QueryMembers,
) -> Result<Response, Problem> {
    let mut page = read_page(caller.merchant_id, query)?;
    let limit = page.limit;
    // One more than is shown: that there is a next page is known without counting.
    page.limit += 1;
    let mut payments = app.database.run(&List(&page)).await?;
    let shown = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = payments.len() > shown;
    payments.truncate(shown);
    let next_cursor = payments
        .last()
        .filter(|_| has_more)
        .map(|last| cursor(last.id));
    let data = payments.iter().map(PaymentView::from).collect();
    let view = PaymentListView {
        object: "list",
        data,
        has_more,
        next_cursor,
    };
    Ok(answer::json(StatusCode::OK, &view))
}

fn read_page(merchant_id: MerchantId, mut query: QueryMembers) -> Result<Page, Problem> {
    let instant = "an RFC 3339 date and time";
    let page = Page {
        merchant_id,
        before: query.take("cursor", "the next_cursor of a page", read_cursor)?,
        limit: query
            .take("limit", "from 1 to 100", read_limit)?
            .unwrap_or(LIMIT_DEFAULT),
        status: query.take("status", "a status of payments", |text| text.parse().ok())?,
        reference: query.take("reference", "a reference", |text| Some(text.to_owned()))?,
        idempotency_key: query.take("idempotency_key", "an idempotency key", read_key)?,
        created_after: query.take("created_after", instant, read_instant)?,
        created_before: query.take("created_before", instant, read_instant)?,
    };
    query.finish()?;
    Ok(page)
}

fn read_key(text: &str) -> Option<String> {
    let key = IdempotencyKey::from_path_segment(text.as_bytes()).ok()?;
    Some(key.as_str().to_owned())
}

/// The years of RFC 3339, 0 to 9999, are all within those of PostgreSQL.
fn read_instant(text: &str) -> Option<DateTime<Utc>> {
    let instant = DateTime::parse_from_rfc3339(text).ok()?;
    Some(instant.to_utc())
}

fn not_found() -> Problem {
    Problem::new(
        ProblemKind::PaymentNotFound,
        "This merchant has no payment with this id.",
    )
}
