//! Clients: they send, wait as they are told, send again, and write everything down.

use std::{sync::Arc, time::Duration};

use oncepay::clock::{Clock as _, SystemClock};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

use super::{
    cluster::{Cluster, SERVICES},
    history::{Answer, Body, End, History, Meaning, Order, Request},
    workload::{Patience, Try},
};
use crate::support::client::{Client, Reply, try_send};

/// How long a client waits for an answer: longer than the service's own limit, and not for ever.
const ANSWER_WITHIN: Duration = Duration::from_millis(3_500);

/// The longest that a client waits before it repeats, whatever it is told: a run is short.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The first pause, where no longer one is asked for; doubled with each request that gets no definite
/// answer, as clients do.
const PAUSE_MIN: Duration = Duration::from_millis(250);

/// Everybody who pays. Cloning shares them.
#[derive(Clone, Debug)]
pub struct Clients {
    /// For each merchant, one at each service.
    by_merchant: Arc<Vec<Vec<Client>>>,
    orders: Arc<Vec<Order>>,
    pub history: Arc<History>,
    /// Set when clients shall give up what they pursue.
    over: watch::Sender<bool>,
}

/// How an order stands for the client that pursued it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pursued {
    Definite,
    InReview,
    /// Its time was over before it knew.
    Open,
    /// It hung up and wanted no answer.
    GivenUp,
}

impl Clients {
    pub fn new(cluster: &Cluster, orders: &[Order]) -> Self {
        let of_merchant = |secret: &str| {
            let at = |service: usize| Client::new(&cluster.fronts[service].base(), secret);
            (0..SERVICES).map(at).collect()
        };
        let clients = cluster.merchants.iter();
        Self {
            by_merchant: Arc::new(
                clients
                    .map(|merchant| of_merchant(&merchant.secret))
                    .collect(),
            ),
            orders: Arc::new(orders.to_vec()),
            history: Arc::default(),
            over: watch::Sender::new(false),
        }
    }

    /// The same clients, who have given up nothing yet.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self {
            over: watch::Sender::new(false),
            ..self.clone()
        }
    }

    /// What is not known by now is given up; what was sent is still waited for.
    pub fn give_up(&self) {
        self.over.send_replace(true);
    }

    /// One client's attempt; it begins at its time after `start`.
    pub async fn attempt(&self, attempt: &Try, start: Instant) -> Pursued {
        sleep_until(start + attempt.at).await;
        let Try {
            order,
            body,
            service,
            patience,
            ..
        } = *attempt;
        match patience {
            Patience::HangsUp(after) => {
                self.send(order, body, service, Some(after), None).await;
                Pursued::GivenUp
            }
            Patience::Persistent => self.pursue(order, body, service).await,
            Patience::Prefers => {
                let answer = self.send(order, body, service, None, Some("wait=1")).await;
                if answer.is_some_and(|answer| answer.definite()) {
                    return Pursued::Definite;
                }
                self.pursue(order, body, service).await
            }
        }
    }

    /// Repeats a request until its answer is definite or clients give up, going from one service to
    /// the other where one does not answer.
    pub async fn pursue(&self, order: usize, body: Body, mut service: usize) -> Pursued {
        let mut over = self.over.subscribe();
        let mut pause = PAUSE_MIN;
        loop {
            let answer = self.send(order, body, service, None, None).await;
            let told = match &answer {
                Some(answer) if answer.definite() => return Pursued::Definite,
                Some(answer) if answer.meaning() == (Meaning::Open { in_review: true }) => {
                    return Pursued::InReview;
                }
                Some(answer) => answer.retry_after.map_or(PAUSE_MAX, Duration::from_secs),
                None => PAUSE_MIN,
            };
            if answer.is_none_or(|answer| answer.status == 503) {
                service = (service + 1) % SERVICES;
            }
            let wait = pause.max(told).min(PAUSE_MAX);
            if timeout(wait, over.wait_for(|over| *over)).await.is_ok() {
                return Pursued::Open;
            }
            pause *= 2;
        }
    }

    /// Sends once, and writes down what came of it.
    async fn send(
        &self,
        order: usize,
        body: Body,
        service: usize,
        hang_up: Option<Duration>,
        prefer: Option<&str>,
    ) -> Option<Answer> {
        let wanted = &self.orders[order];
        let mut request = self.by_merchant[wanted.merchant][service]
            .payment_request(wanted.document(body).to_string())
            .header("idempotency-key", &wanted.key)
            .timeout(hang_up.unwrap_or(ANSWER_WITHIN));
        if let Some(prefer) = prefer {
            request = request.header("prefer", prefer);
        }
        let sent_at = SystemClock.now();
        let answer = try_send(request).await.ok().map(answer);
        let end = match answer.clone() {
            Some(answer) => End::Answered(answer),
            None if hang_up.is_some() => End::HungUp,
            None => End::Silent,
        };
        self.history.add(Request {
            order,
            body,
            service,
            sent_at,
            ended_at: SystemClock.now(),
            end,
        });
        answer
    }
}

fn answer(reply: Reply) -> Answer {
    let text = |name: &str| reply.header(name).map(str::to_owned);
    Answer {
        status: reply.status.as_u16(),
        replayed: text("idempotent-replayed").map(|replayed| replayed == "true"),
        content_type: text("content-type"),
        location: text("location"),
        retry_after: text("retry-after").and_then(|seconds| seconds.parse().ok()),
        body: reply.body,
    }
}
