//! What the clients wanted, asked and were told: the first of the three witnesses.

use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};
use serde_json::Value;

/// What a client wants paid, once, under one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Which of the merchants.
    pub merchant: usize,
    pub key: String,
    pub amount: i64,
    pub currency: &'static str,
    pub method: String,
    pub capture: &'static str,
}

/// Which body a request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Body {
    /// The order.
    Own,
    /// Another one, under the order's key: a client with a bug.
    Other,
}

/// The amount of the other body is far from that of any order.
pub const OTHER_AMOUNT: i64 = 5_000_000;

impl Order {
    pub fn amount_of(&self, body: Body) -> i64 {
        match body {
            Body::Own => self.amount,
            Body::Other => self.amount + OTHER_AMOUNT,
        }
    }

    pub fn document(&self, body: Body) -> Value {
        serde_json::json!({
            "amount": self.amount_of(body),
            "currency": self.currency,
            "payment_method": self.method,
            "capture_method": self.capture,
            "reference": "chaos",
        })
    }
}

/// One request, from its sending to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which order.
    pub order: usize,
    pub body: Body,
    /// Which service.
    pub service: usize,
    pub sent_at: DateTime<Utc>,
    pub ended_at: DateTime<Utc>,
    pub end: End,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Answered(Answer),
    /// No answer came: the connection broke, or the client gave up.
    Silent,
    /// The client went away on purpose.
    HungUp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    pub replayed: Option<bool>,
    pub content_type: Option<String>,
    pub location: Option<String>,
    pub retry_after: Option<u64>,
}

/// What an answer is to its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Stored, and replayed for ever: paid (or accepted), or declined.
    Final,
    /// The key belongs to another request.
    Reused,
    /// The key is too old.
    Expired,
    /// To be sent again; a payment in review is waiting for a person.
    Open { in_review: bool },
    /// Nothing that this service may say.
    Nonsense,
}

impl Answer {
    pub fn document(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The code of a problem.
    pub fn code(&self) -> Option<String> {
        self.document()["code"].as_str().map(str::to_owned)
    }

    /// The status of the payment that it shows.
    pub fn payment_status(&self) -> Option<String> {
        self.document()["status"].as_str().map(str::to_owned)
    }

    pub fn meaning(&self) -> Meaning {
        let code = self.code();
        match (self.status, code.as_deref()) {
            (201, None) | (402, Some("payment-declined")) => Meaning::Final,
            (422, Some("idempotency-key-reused")) => Meaning::Reused,
            (410, Some("idempotency-key-expired")) => Meaning::Expired,
            (202, None) => Meaning::Open {
                in_review: self.payment_status().as_deref() == Some("requires_review"),
            },
            (409, Some("idempotency-key-in-progress"))
            | (503, Some("gateway-unavailable" | "service-unavailable" | "outcome-unknown")) => {
                Meaning::Open { in_review: false }
            }
            _ => Meaning::Nonsense,
        }
    }

    pub fn definite(&self) -> bool {
        matches!(
            self.meaning(),
            Meaning::Final | Meaning::Reused | Meaning::Expired
        )
    }
}

impl Request {
    pub const fn answer(&self) -> Option<&Answer> {
        match &self.end {
            End::Answered(answer) => Some(answer),
            End::Silent | End::HungUp => None,
        }
    }
}

/// Where all clients write.
#[derive(Debug, Default)]
pub struct History(Mutex<Vec<Request>>);

impl History {
    pub fn add(&self, request: Request) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(request);
    }

    /// Whether anybody was answered for good since then.
    pub fn answered_since(&self, since: DateTime<Utc>) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut newest = all.iter().rev();
        newest.any(|request| {
            request.sent_at > since && request.answer().is_some_and(Answer::definite)
        })
    }

    /// All requests so far, in the order of their sending.
    pub fn requests(&self) -> Vec<Request> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = all.clone();
        all.sort_by_key(|request| request.sent_at);
        all
    }
}
