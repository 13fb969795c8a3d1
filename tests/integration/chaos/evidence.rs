//! What three witnesses say, who do not know of each other: the clients, the gateway's journal, and
//! the database.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use oncepay::{
    audit,
    gateways::{
        Call,
        sandbox::journal::{self, Kind, Line},
    },
    idempotency::{gateway_key::gateway_key, key::IdempotencyKey, operation::Operation},
    ids::MerchantId,
};
use sqlx::{PgConnection, Row as _};

use super::{
    cluster::Cluster,
    history::{Answer, Meaning, Order, Request},
    watch::{Sample, Seeing},
};

/// Everything that is known about a run.
#[derive(Debug, Default)]
pub struct Evidence {
    pub orders: Vec<Order>,
    /// The key that the gateway must see for each order.
    pub gateway_keys: Vec<String>,
    /// Of each order, as text.
    pub merchants: Vec<String>,
    pub requests: Vec<Request>,
    /// Orders whose clients gave up, though everything was healed.
    pub open: Vec<usize>,
    pub lines: Vec<Line>,
    pub payments: BTreeMap<(String, String), PaymentRow>,
    pub records: BTreeMap<(String, String), RecordRow>,
    pub samples: Vec<Sample>,
    pub audit: Vec<audit::Breach>,
    pub log: String,
    pub secrets: Vec<String>,
    pub day: Option<DateTime<Utc>>,
    pub connections_max: i64,
    pub memory_mib_max: u64,
}

/// A payment at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentRow {
    pub id: String,
    pub status: String,
    pub amount: i64,
}

/// A record at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRow {
    pub status: String,
    pub created_at: DateTime<Utc>,
    pub response_status: Option<i16>,
    pub response_body: Option<Vec<u8>>,
}

/// What the clients, the watch and the nemesis bring.
#[derive(Debug)]
pub struct Seen {
    pub orders: Vec<Order>,
    pub requests: Vec<Request>,
    pub open: Vec<usize>,
    pub seeing: Seeing,
    pub day: Option<DateTime<Utc>>,
}

/// Gathers the rest. Everything is at rest by then.
pub async fn gather(cluster: &Cluster, seen: Seen) -> Evidence {
    let mut session = cluster.connect().await.unwrap();
    let (mut log, mut memory_mib_max) = (String::new(), 0);
    for service in &cluster.services {
        let service = service.lock().await;
        log.push_str(&service.log());
        memory_mib_max = memory_mib_max.max(service.memory_mib());
    }
    let journal = cluster.journal.clone();
    let lines = move || journal::read(&journal);
    let merchant_of = |order: &Order| cluster.merchants[order.merchant].id;
    Evidence {
        gateway_keys: seen
            .orders
            .iter()
            .map(|order| key_at_gateway(merchant_of(order), &order.key))
            .collect(),
        merchants: seen
            .orders
            .iter()
            .map(|order| merchant_of(order).uuid().to_string())
            .collect(),
        payments: payments(&mut session).await,
        records: records(&mut session).await,
        audit: audit::run(&mut session, Some(&lines)).await.unwrap(),
        lines: lines().unwrap(),
        samples: seen.seeing.samples,
        connections_max: seen.seeing.connections_max,
        secrets: cluster.secrets().await,
        orders: seen.orders,
        requests: seen.requests,
        open: seen.open,
        day: seen.day,
        log,
        memory_mib_max,
    }
}

fn key_at_gateway(merchant: MerchantId, key: &str) -> String {
    let key = IdempotencyKey::from_stored(key.to_owned());
    let made = gateway_key(merchant, &key, Operation::PaymentsCreate, Call::Authorize);
    made.as_str().to_owned()
}

async fn payments(session: &mut PgConnection) -> BTreeMap<(String, String), PaymentRow> {
    let rows = sqlx::query(
        "SELECT merchant_id::text, idempotency_key, replace(id::text, '-', ''), status, amount
         FROM payments",
    );
    let rows = rows.fetch_all(session).await.unwrap();
    rows.into_iter()
        .map(|row| {
            let payment = PaymentRow {
                id: format!("pay_{}", row.get::<String, _>(2)),
                status: row.get(3),
                amount: row.get(4),
            };
            ((row.get(0), row.get(1)), payment)
        })
        .collect()
}

async fn records(session: &mut PgConnection) -> BTreeMap<(String, String), RecordRow> {
    let rows = sqlx::query(
        "SELECT merchant_id::text, key, status, created_at, response_status, response_body
         FROM idempotency_keys",
    );
    let rows = rows.fetch_all(session).await.unwrap();
    rows.into_iter()
        .map(|row| {
            let record = RecordRow {
                status: row.get(2),
                created_at: row.get(3),
                response_status: row.get(4),
                response_body: row.get(5),
            };
            ((row.get(0), row.get(1)), record)
        })
        .collect()
}

impl Evidence {
    /// Lines of one kind about authorising an order.
    pub fn lines_of(&self, order: usize, kind: Kind) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| {
            line.kind == kind
                && line.call == journal::Call::Authorize
                && line.gateway_key == self.gateway_keys[order]
        })
    }

    pub fn effects(&self, order: usize) -> impl Iterator<Item = &Line> {
        self.lines_of(order, Kind::Effect)
    }

    pub fn sends(&self, order: usize) -> impl Iterator<Item = &Line> {
        self.lines_of(order, Kind::Request)
    }

    pub fn requests_of(&self, order: usize) -> impl Iterator<Item = &Request> {
        self.requests
            .iter()
            .filter(move |request| request.order == order)
    }

    pub fn answers(&self, order: usize) -> impl Iterator<Item = (&Request, &Answer)> {
        self.requests_of(order)
            .filter_map(|request| Some((request, request.answer()?)))
    }

    /// The answers that are stored.
    pub fn finals(&self, order: usize) -> impl Iterator<Item = (&Request, &Answer)> {
        self.answers(order)
            .filter(|(_, answer)| answer.meaning() == Meaning::Final)
    }

    pub fn payment(&self, order: usize) -> Option<&PaymentRow> {
        self.payments.get(&self.place(order))
    }

    pub fn record(&self, order: usize) -> Option<&RecordRow> {
        self.records.get(&self.place(order))
    }

    /// How the record of an order changed.
    pub fn samples_of(&self, order: usize) -> impl Iterator<Item = &Sample> {
        let (merchant, key) = self.place(order);
        self.samples
            .iter()
            .filter(move |sample| sample.merchant == merchant && sample.key == key)
    }

    /// Whether the day passed between two moments, which makes another life of a key possible.
    pub fn day_between(&self, earlier: DateTime<Utc>, later: DateTime<Utc>) -> bool {
        self.day.is_some_and(|day| earlier < day && day <= later)
    }

    fn place(&self, order: usize) -> (String, String) {
        (
            self.merchants[order].clone(),
            self.orders[order].key.clone(),
        )
    }
}
