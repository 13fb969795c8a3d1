//! Everything that is known about one order, in the order of time: what a breach is read with.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};

use super::{
    evidence::Evidence,
    history::{End, Request},
};

/// An answer's body is cut there; its beginning names the payment and its status.
const BODY_MAX: usize = 160;

/// The whole story of an order.
pub fn story(evidence: &Evidence, order: usize) -> String {
    let mut told: Vec<(DateTime<Utc>, String)> = Vec::new();
    for request in evidence.requests_of(order) {
        let Request { body, service, .. } = request;
        told.push((
            request.sent_at,
            format!("client  → service {service}: {body:?}"),
        ));
        told.push((request.ended_at, format!("client  ← {}", end(request))));
    }
    let key = &evidence.gateway_keys[order];
    for line in evidence
        .lines
        .iter()
        .filter(|line| line.gateway_key == *key)
    {
        let text = format!(
            "gateway   {:?} {:?} {:?} {:?}",
            line.call, line.kind, line.amount, line.object_id
        );
        told.push((line.at, text));
    }
    for sample in evidence.samples_of(order) {
        told.push((sample.at, format!("record    {:?}", sample.seen)));
    }
    if let Some(day) = evidence.day {
        told.push((day, "a day has passed".to_owned()));
    }
    told.sort_by_key(|(at, _)| *at);
    let mut story = format!(
        "order {order}: {:?} of merchant {}\n",
        evidence.orders[order], evidence.merchants[order]
    );
    for (at, text) in told {
        writeln!(story, "  {} {text}", at.format("%H:%M:%S%.3f")).unwrap();
    }
    let (payment, record) = (evidence.payment(order), evidence.record(order));
    let status = record.map(|record| record.status.as_str());
    writeln!(story, "  at the end: {payment:?}, record {status:?}").unwrap();
    story
}

fn end(request: &Request) -> String {
    match &request.end {
        End::Silent => "nothing".to_owned(),
        End::HungUp => "hung up".to_owned(),
        End::Answered(answer) => {
            let text: String = String::from_utf8_lossy(&answer.body)
                .chars()
                .take(BODY_MAX)
                .collect();
            format!("{} replayed {:?} {text}", answer.status, answer.replayed)
        }
    }
}
