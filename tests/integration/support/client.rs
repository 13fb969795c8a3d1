//! A client as merchants have one: it sends, and keeps everything that came back.

use reqwest::{
    Method, RequestBuilder, StatusCode,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde_json::{Value, json};

/// Sends requests with one API key to one service.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    secret: String,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// The payment of `cases.md`.
pub fn payment() -> Value {
    json!({
        "amount": 1999,
        "currency": "EUR",
        "payment_method": "pm_card_visa",
        "reference": "r1",
    })
}

/// The same with another payment method.
pub fn payment_with(method: &str) -> Value {
    let mut payment = payment();
    payment["payment_method"] = method.into();
    payment
}

impl Client {
    pub fn new(base: &str, secret: &str) -> Self {
        Self {
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            base: base.to_owned(),
            secret: secret.to_owned(),
        }
    }

    /// The same client at another service.
    #[must_use]
    pub fn at(&self, base: &str) -> Self {
        Self {
            base: base.to_owned(),
            ..self.clone()
        }
    }

    /// The same service with another API key.
    #[must_use]
    pub fn with_secret(&self, secret: &str) -> Self {
        Self {
            secret: secret.to_owned(),
            ..self.clone()
        }
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// The same client speaking HTTP/2 from the first byte.
    #[must_use]
    pub fn http2(&self) -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            .http2_prior_knowledge();
        Self {
            http: http.build().unwrap(),
            ..self.clone()
        }
    }

    /// A request without an API key.
    pub fn anonymous(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(&self.secret)
    }

    pub async fn get(&self, path: &str) -> Reply {
        send(self.request(Method::GET, path)).await
    }

    /// `POST /v1/payments` under a key.
    pub async fn pay(&self, key: &str, body: &Value) -> Reply {
        self.pay_bytes(key, body.to_string().into_bytes()).await
    }

    /// The same at a service that may break off.
    pub async fn pay_or_break(&self, key: &str, body: &Value) -> reqwest::Result<Reply> {
        let request = self.payment_request(body.to_string());
        try_send(request.header("idempotency-key", key)).await
    }

    /// The same after waiting for another request with this key, as `Prefer` says.
    pub async fn pay_preferring(&self, key: &str, body: &Value, prefer: &str) -> Reply {
        let request = self
            .payment_request(body.to_string())
            .header("idempotency-key", key)
            .header("prefer", prefer);
        send(request).await
    }

    /// The same with a body as it is.
    pub async fn pay_bytes(&self, key: &str, body: impl Into<Vec<u8>>) -> Reply {
        send(self.payment_request(body).header("idempotency-key", key)).await
    }

    /// `POST /v1/payments` without a key, for a test to add what it wants.
    pub fn payment_request(&self, body: impl Into<Vec<u8>>) -> RequestBuilder {
        self.request(Method::POST, "/v1/payments")
            .header("content-type", "application/json")
            .body(body.into())
    }
}

/// Sends and keeps what comes back; a transport error fails the test.
pub async fn send(request: RequestBuilder) -> Reply {
    try_send(request).await.unwrap()
}

/// Sends where the connection may break.
pub async fn try_send(request: RequestBuilder) -> reqwest::Result<Reply> {
    let response = request.send().await?;
    let status = response.status();
    let headers = response.headers().clone();
    let body = response.bytes().await?.to_vec();
    Ok(Reply {
        status,
        headers,
        body,
    })
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The code of a problem.
    pub fn code(&self) -> String {
        self.json()["code"]
            .as_str()
            .unwrap_or_else(|| panic!("no problem: {}", self.text()))
            .to_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The problem's errors, as pairs of pointer and code.
    pub fn errors(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        self.json()["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|error| (text(&error["pointer"]), text(&error["code"])))
            .collect()
    }

    pub fn replayed(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }

    #[track_caller]
    pub fn assert_status(&self, status: u16) -> &Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self
    }

    #[track_caller]
    pub fn assert_problem(&self, status: u16, code: &str) -> &Self {
        self.assert_status(status);
        assert_eq!(self.code(), code, "{}", self.text());
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        self
    }

    /// REPLAY-EQ of `cases.md`: the same status, bytes, Content-Type and Location, and it says so.
    #[track_caller]
    pub fn assert_replays(&self, first: &Self) -> &Self {
        assert_eq!(self.status, first.status, "{}", self.text());
        assert_eq!(self.body, first.body, "a replay must have the same bytes");
        for name in ["content-type", "location"] {
            assert_eq!(self.header(name), first.header(name), "{name}");
        }
        assert!(self.replayed(), "a replay must say so");
        self
    }
}

/// A header that no validation of ours or the client's has seen.
pub fn raw_header(name: &'static str, value: &[u8]) -> (HeaderName, HeaderValue) {
    (
        HeaderName::from_static(name),
        HeaderValue::from_bytes(value).unwrap(),
    )
}
