//! Evidence of one payment as it should be, for tests that spoil it.

use chrono::{DateTime, TimeDelta, Utc};
use oncepay::gateways::sandbox::journal::{Call, Kind, Line};
use serde_json::json;

use crate::chaos::{
    evidence::{Evidence, PaymentRow, RecordRow},
    history::{Answer, Body, End, Order, Request},
    watch::{Sample, Seen},
};

/// So many seconds after the beginning.
pub(super) fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
}

/// Claimed, sent at 2, executed at 3, answered at 4, and replayed at 6.
pub(super) fn paid() -> Evidence {
    let order = Order {
        merchant: 0,
        key: "K".to_owned(),
        amount: 1999,
        currency: "EUR",
        method: "pm_card_visa".to_owned(),
        capture: "automatic",
    };
    let place = ("M".to_owned(), "K".to_owned());
    let first = paid_answer(Some(false));
    Evidence {
        orders: vec![order],
        gateway_keys: vec!["G".to_owned()],
        merchants: vec!["M".to_owned()],
        requests: vec![
            request(1, 4, first.clone()),
            request(5, 6, paid_answer(Some(true))),
        ],
        lines: vec![line(2, Kind::Request), line(3, Kind::Effect)],
        payments: [(
            place.clone(),
            PaymentRow {
                id: "pay_1".to_owned(),
                status: "succeeded".to_owned(),
                amount: 1999,
            },
        )]
        .into(),
        records: [(
            place,
            RecordRow {
                status: "completed".to_owned(),
                created_at: at(1),
                response_status: Some(201),
                response_body: Some(first.body),
            },
        )]
        .into(),
        samples: vec![sample(2, 1, "processing"), sample(4, 1, "completed")],
        ..Evidence::default()
    }
}

/// The same where the other body was refused.
pub(super) fn with_answer(sent: i64, body: Body, answer: Answer) -> Evidence {
    let mut evidence = paid();
    evidence.requests.push(Request {
        body,
        ..request(sent, sent + 1, answer)
    });
    evidence
}

pub(super) fn paid_answer(replayed: Option<bool>) -> Answer {
    let document = json!({
        "id": "pay_1", "status": "succeeded", "amount": 1999, "currency": "EUR",
    });
    answer(201, &document, replayed)
}

pub(super) fn problem(status: u16, code: &str) -> Answer {
    answer(
        status,
        &json!({"status": status, "code": code}),
        Some(false),
    )
}

pub(super) fn answer(status: u16, body: &serde_json::Value, replayed: Option<bool>) -> Answer {
    Answer {
        status,
        body: body.to_string().into_bytes(),
        replayed,
        content_type: Some("application/json".to_owned()),
        location: Some("/v1/payments/pay_1".to_owned()),
        retry_after: None,
    }
}

pub(super) fn request(sent: i64, ended: i64, answer: Answer) -> Request {
    Request {
        order: 0,
        body: Body::Own,
        service: 0,
        sent_at: at(sent),
        ended_at: at(ended),
        end: End::Answered(answer),
    }
}

pub(super) fn line(seconds: i64, kind: Kind) -> Line {
    Line {
        at: at(seconds),
        kind,
        gateway_key: "G".to_owned(),
        call: Call::Authorize,
        amount: Some(1999),
        currency: Some("EUR".to_owned()),
        object_id: Some("pi_1".to_owned()),
    }
}

pub(super) fn sample(seconds: i64, fence: i64, status: &str) -> Sample {
    Sample {
        at: at(seconds),
        merchant: "M".to_owned(),
        key: "K".to_owned(),
        seen: Seen {
            fence,
            owner: "O".to_owned(),
            status: status.to_owned(),
            retryable: false,
            answer: (status != "processing").then(|| "hash".to_owned()),
        },
    }
}
