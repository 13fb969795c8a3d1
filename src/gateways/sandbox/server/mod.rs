//! The sandbox as an HTTP server of its own, in Stripe's wire format.
//!
//! It promises what Stripe promises about keys, so that retry code can be held against it:
//!
//! 1. The first status and body of a key are kept, refusals of cards and 500s too, and come back
//!    with `Idempotent-Replayed: true`, until the key window is over.
//! 2. A key that returns with other parameters, metadata included, is a 400 `idempotency_error`; one
//!    whose first request is still under way is a 409. Neither does anything.
//! 3. Not kept, because the request did not get to its execution: 400s and 404s about parameters,
//!    401, 409, 429, and the 502, 503 and 504 of something that stands in front.
//! 4. Every request, effect and answer has its line in the [`journal`](super::journal). Requests
//!    and effects are on the disk before anything is answered.
//! 5. Keys, objects and effects survive `kill -9` ([`store`]). Faults that were asked for, and who
//!    is under way, do not.
//!
//! A caller that goes away while the server waits takes an effect that has not happened with it.
//! Which calls misbehave, and how, is asked for at `/_sandbox/faults` ([`faults`]) or per payment
//! by the payment method ([`method`](super::method)).
//!
//! It refuses what it does not imitate: parameters that it does not know are a 400, never ignored.

mod act;
mod ask;
mod call;
mod faults;
mod look;
mod objects;
mod page;
mod render;
mod route;
mod script;
mod serve;
mod store;

use std::{
    collections::BTreeSet,
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::net::TcpListener;

use self::{faults::Faults, store::Store};
use super::method::METHODS;
use crate::{clock::Clock, lifecycle::Tasks};

/// What the server can be told.
#[derive(Clone, Debug)]
pub struct Options {
    /// The journal; what else must be remembered lies beside it, in a file `….memory`.
    pub journal: PathBuf,
    /// For how long a key is remembered.
    pub key_window: Duration,
    /// How old a change must be to be found by a search.
    pub search_lag: Duration,
}

/// A server that listens.
#[derive(Debug)]
pub struct SandboxServer {
    shared: Shared,
    listener: TcpListener,
}

/// What all requests share. Cloning shares it.
#[derive(Clone, Debug)]
struct Shared {
    store: Arc<tokio::sync::Mutex<Store>>,
    in_flight: Arc<Mutex<BTreeSet<String>>>,
    faults: Arc<Mutex<Faults>>,
    options: Arc<Options>,
    clock: Arc<dyn Clock>,
}

impl SandboxServer {
    /// Reads back what the journal's folder remembers. Two servers on one journal are refused.
    pub async fn bind(
        addr: SocketAddr,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        let journal = options.journal.clone();
        let store = tokio::task::spawn_blocking(move || Store::open(&journal))
            .await
            .map_err(io::Error::other)??;
        let shared = Shared {
            store: Arc::new(tokio::sync::Mutex::new(store)),
            in_flight: Arc::default(),
            faults: Arc::default(),
            options: Arc::new(options),
            clock,
        };
        let listener = TcpListener::bind(addr).await?;
        Ok(Self { shared, listener })
    }

    /// Where it listens; of use where port 0 was asked for.
    pub fn addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `tasks` are stopped. Calls under way are dropped then, as in a crash.
    pub async fn serve(self, tasks: &Tasks) {
        serve::serve(self.listener, self.shared, tasks).await;
    }
}

impl Shared {
    /// One step with the store to itself. It runs to its end also when its caller goes away.
    async fn step<T, W>(&self, work: W) -> io::Result<T>
    where
        T: Send + 'static,
        W: FnOnce(&mut Store) -> io::Result<T> + Send + 'static,
    {
        let mut store = Arc::clone(&self.store).lock_owned().await;
        tokio::task::spawn_blocking(move || work(&mut store))
            .await
            .map_err(io::Error::other)?
    }

    fn faults(&self) -> std::sync::MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What `oncepay sandbox --help` says after its options.
pub fn help() -> String {
    let methods = METHODS
        .iter()
        .map(|(method, deed)| format!("  {method:<30} {deed}\n"));
    std::iter::once(HELP.to_owned()).chain(methods).collect()
}

const HELP: &str = "\
Speaks Stripe's wire format; point a client's API base at it, with any secret key:
  POST /v1/payment_intents                (confirm=true)
  POST /v1/payment_intents/{id}/capture
  POST /v1/payment_intents/{id}/cancel
  POST /v1/refunds
  GET  /v1/payment_intents/{id}, /v1/refunds/{id}
  GET  /v1/payment_intents/search?query=metadata['name']:'value'
  GET  /v1/payment_intents, /v1/refunds   (limit, starting_after, created[gte], payment_intent)

Faults, for the next calls that arrive:
  POST   /_sandbox/faults   {\"fault\": …, \"call\"?: …, \"times\"?: 1, \"delay_ms\"?: …, \"status\"?: 500}
  GET    /_sandbox/faults                 how many wait, and how often each struck
  DELETE /_sandbox/faults
  GET    /_sandbox/effects?gateway_key=…   what was really done, from the journal

  call: authorize, capture, cancel, refund, find (each GET); without it, any
  refuse             answers 429 without a code, and does nothing
  delay              waits delay_ms, then goes on as usual
  status_before      answers `status`, and does nothing
  status_after       does it, then answers `status`
  drop_after_effect  does it, then closes the connection without an answer
  hang_before        never answers, and does nothing
  hang_after_effect  does it, and never answers
  wrong_amount       does it with another amount than was asked for (not cancel, find)
  forget_keys        for no call: at once, as if the window of every key were over; 409 while a
                     request with a key is under way
  A 500 is kept under the key and replayed, as by Stripe; a 502, 503 or 504 is not.
  Faults are forgotten by a restart; keys, objects and effects are not.
  A short --key-window shows what a retry does that comes too late: it charges again.

  curl 127.0.0.1:12111/_sandbox/faults -d '{\"fault\": \"status_before\", \"status\": 429, \"times\": 2}'

Payment methods that misbehave by themselves:
";
