//! The description of the API, and the page that shows it.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::Value;

use crate::support::{
    app::TestApp,
    client::{payment, payment_with, send},
};

async fn document(app: &TestApp) -> Value {
    let reply = app.client.get("/openapi.json").await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    reply.assert_status(200).json()
}

#[tokio::test]
async fn the_description_lists_every_route() {
    let app = TestApp::start().await;

    let document = document(&app).await;

    let mut routes = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            routes.insert(format!("{method} {path}"));
        }
    }
    let expected = [
        "get /livez",
        "get /problems/{code}",
        "get /readyz",
        "get /v1/idempotency-keys/{key}",
        "get /v1/meta",
        "get /v1/payments",
        "get /v1/payments/{id}",
        "post /v1/payments",
    ];
    assert_eq!(routes, expected.map(str::to_owned).into());
}

/// Requests, and the documented operation that each of them meets.
fn probes() -> Vec<(Method, &'static str, &'static str, &'static str)> {
    let large = "L";
    vec![
        (Method::GET, "/v1/payments", "", "/v1/payments"),
        (Method::GET, "/v1/payments?x=1", "", "/v1/payments"),
        (Method::GET, "/v1/payments", large, "/v1/payments"),
        (Method::GET, "/v1/payments/pay_x", "", "/v1/payments/{id}"),
        (
            Method::GET,
            "/v1/payments/pay_x",
            large,
            "/v1/payments/{id}",
        ),
        (
            Method::GET,
            "/v1/idempotency-keys/K",
            "",
            "/v1/idempotency-keys/{key}",
        ),
        (
            Method::GET,
            "/v1/idempotency-keys/no",
            "",
            "/v1/idempotency-keys/{key}",
        ),
        (
            Method::GET,
            "/v1/idempotency-keys/%20",
            "",
            "/v1/idempotency-keys/{key}",
        ),
        (
            Method::GET,
            "/v1/idempotency-keys/%FF",
            "",
            "/v1/idempotency-keys/{key}",
        ),
        (
            Method::GET,
            "/v1/idempotency-keys/K",
            large,
            "/v1/idempotency-keys/{key}",
        ),
        (Method::GET, "/v1/meta", "", "/v1/meta"),
        (Method::GET, "/v1/meta", large, "/v1/meta"),
        (Method::GET, "/problems/not-found", "", "/problems/{code}"),
        (Method::GET, "/problems/x", "", "/problems/{code}"),
        (Method::GET, "/livez", "", "/livez"),
        (Method::GET, "/livez", large, "/livez"),
        (Method::GET, "/readyz", "", "/readyz"),
        (Method::POST, "/v1/payments", large, "/v1/payments"),
        (Method::POST, "/v1/payments", "{", "/v1/payments"),
        (Method::POST, "/v1/payments", "{}", "/v1/payments"),
    ]
}

/// Whatever an operation answers is described.
#[tokio::test]
async fn every_status_that_is_answered_is_described() {
    let app = TestApp::start().await;
    let document = document(&app).await;
    let described = |method: &Method, route: &str, status: u16| {
        let method = method.as_str().to_lowercase();
        let responses = &document["paths"][route][&method]["responses"];
        assert!(
            responses[status.to_string()].is_object(),
            "{status} of {method} {route} is among {responses}"
        );
        if status >= 400 {
            let content = &responses[status.to_string()]["content"];
            assert!(content["application/problem+json"].is_object(), "{content}");
        }
    };
    for method in ["pm_card_visa", "pm_card_declined", "pm_unknown"] {
        let reply = app.client.pay(method, &payment_with(method)).await;
        described(&Method::POST, "/v1/payments", reply.status.as_u16());
    }
    app.client.pay("K", &payment()).await.assert_status(201);
    for (method, path, body, route) in probes() {
        let body = if body == "L" {
            "x".repeat(70_000)
        } else {
            body.to_owned()
        };
        let anonymous = app.client.anonymous(method.clone(), path);
        let request = app.client.request(method.clone(), path);
        let request = request
            .header("content-type", "application/json")
            .header("idempotency-key", "K2")
            .body(body);

        let known = send(request).await;
        let unknown = send(anonymous).await;

        described(&method, route, known.status.as_u16());
        described(&method, route, unknown.status.as_u16());
    }
}

/// Every schema that is referred to exists.
#[tokio::test]
async fn every_reference_of_the_description_resolves() {
    let app = TestApp::start().await;
    let document = document(&app).await;
    let text = document.to_string();

    let references: BTreeSet<&str> = text
        .split("\"$ref\":\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();

    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

/// What a page loads: the values of `src` and `href`, and of `url(…)` and `@import` in its styles.
fn loaded(text: &str) -> Vec<String> {
    [
        "src=\"",
        "href=\"",
        "src='",
        "href='",
        "url(",
        "@import \"",
        "importScripts(",
    ]
    .into_iter()
    .flat_map(|mark| text.split(mark).skip(1))
    .map(|rest| {
        let end = rest.find(['"', '\'', ')', ' ', '>']).unwrap_or(rest.len());
        rest.chars().take(end).collect()
    })
    .collect()
}

/// D4: nothing from other hosts, so that the page works offline and tells nobody who reads it.
#[tokio::test]
async fn the_docs_page_loads_nothing_from_other_hosts() {
    let app = TestApp::start().await;
    let page = app.client.get("/docs/").await;
    let page = page.assert_status(200).text();
    let mut assets: Vec<String> = loaded(&page);
    assert!(!assets.is_empty(), "{page}");

    let mut read = 0;
    while let Some(asset) = assets.pop() {
        let elsewhere = asset.contains("://") || asset.starts_with("//");
        assert!(!elsewhere, "{asset} is loaded from another host");
        let name = asset.trim_start_matches("./");
        if name.starts_with("data:") || name.is_empty() || name.starts_with('#') {
            continue;
        }
        let reply = app.client.get(&format!("/docs/{name}")).await;
        reply.assert_status(200);
        let media_type = reply.header("content-type").unwrap();
        if media_type.starts_with("text/css") {
            assets.extend(loaded(&reply.text()));
        }
        read += 1;
    }

    assert!(read >= 3, "script, style and initializer");
    let initializer = app.client.get("/docs/swagger-initializer.js").await;
    assert!(initializer.text().contains("/openapi.json"));
    assert!(!initializer.text().contains("://"));
}
