//! A POST from arrival to answer. Between its steps it only waits, and a caller that goes away
//! while it does takes the rest with it.

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    Shared,
    act::act,
    ask::{Ask, What},
    render::{self, Answer, Replayed},
    script::{Ending, Script},
    store::{Kept, Record, Store},
};
use crate::gateways::sandbox::{
    journal::Kind,
    method,
    plan::{Deed, Plan},
};

/// How a call ended for its caller.
#[derive(Debug)]
pub(super) enum Ended {
    Answered(Answer),
    /// The connection is to be closed without an answer.
    Dropped,
}

/// How far a call got when it arrived.
enum Arrival {
    /// Its key answers.
    Known(Answer),
    Goes(Script, Option<InFlight>),
}

/// A key that is under way, until this is dropped.
#[derive(Debug)]
struct InFlight {
    keys: Arc<Mutex<BTreeSet<String>>>,
    key: String,
}

impl InFlight {
    fn begin(shared: &Shared, key: &str) -> Option<Self> {
        let keys = Arc::clone(&shared.in_flight);
        let new = lock(&keys).insert(key.to_owned());
        let key = key.to_owned();
        new.then(|| Self { keys, key })
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        lock(&self.keys).remove(&self.key);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does what is asked, as its script says.
pub(super) async fn post(shared: &Shared, ask: Ask) -> io::Result<Ended> {
    let ask = Arc::new(ask);
    let (arriving, asked) = (shared.clone(), Arc::clone(&ask));
    let arrival = shared
        .step(move |store| arrive(&arriving, store, &asked))
        .await?;
    let (answer, ending) = match arrival {
        Arrival::Known(answer) => (answer, Ending::Tell),
        Arrival::Goes(script, in_flight) => {
            script.before.pass().await;
            let (acting, asked) = (shared.clone(), Arc::clone(&ask));
            let answer = shared
                .step(move |store| execute(&acting, store, &asked, script))
                .await?;
            // The answer is kept by now: a second request is answered while this one lingers.
            drop(in_flight);
            script.after.pass().await;
            (answer, script.ending)
        }
    };
    if ending == Ending::Drop {
        return Ok(Ended::Dropped);
    }
    let line = ask.line(Kind::Answer, shared.clock.now(), answer.object_id.clone());
    shared.step(move |store| store.answered(&line)).await?;
    Ok(Ended::Answered(answer))
}

/// Forgets every key, as if its window were over; `false` where a request with a key is under way.
///
/// It has the store to itself, so no deed is being done: whoever was called off before did nothing,
/// and whoever comes after finds no key.
pub(super) async fn forget_keys(shared: &Shared) -> io::Result<bool> {
    let in_flight = Arc::clone(&shared.in_flight);
    let forget = move |store: &mut Store| {
        let idle = lock(&in_flight).is_empty();
        if idle {
            store.commit(Record {
                forget_keys: true,
                ..Record::default()
            })?;
        }
        Ok(idle)
    };
    shared.step(forget).await
}

fn arrive(shared: &Shared, store: &mut Store, ask: &Ask) -> io::Result<Arrival> {
    let now = shared.clock.now();
    let subject = ask.subject().map(str::to_owned);
    store.arrived(&ask.line(Kind::Request, now, subject))?;
    let mut in_flight = None;
    if let Some(key) = &ask.key {
        match store.kept(key, now, shared.options.key_window) {
            Some(kept) if kept.fingerprint != ask.fingerprint => {
                return Ok(Arrival::Known(render::parameters_differ()));
            }
            Some(kept) => return Ok(Arrival::Known(replay(kept))),
            None => {}
        }
        in_flight = InFlight::begin(shared, key);
        if in_flight.is_none() {
            return Ok(Arrival::Known(render::in_use()));
        }
    }
    let fault = shared.faults().take(ask.call());
    let script = Script::new(plan(store, ask), fault);
    Ok(Arrival::Goes(script, in_flight))
}

fn plan(store: &Store, ask: &Ask) -> Plan {
    match &ask.what {
        What::Authorize { payment_method, .. } => {
            let sends = ask.key.as_deref().map_or(1, |key| store.sends(key));
            method::plan(payment_method, sends)
        }
        What::Capture { .. } | What::Cancel { .. } | What::Refund { .. } => {
            Plan::prompt(Deed::Approve)
        }
    }
}

/// Does the deed, and keeps its answer with the key.
fn execute(shared: &Shared, store: &mut Store, ask: &Ask, script: Script) -> io::Result<Answer> {
    let now = shared.clock.now();
    let (record, truth) = act(store, ask, script, now);
    if truth.status < 400 {
        shared.faults().deed_done(script.fault, ask.call());
    }
    let told = match script.ending {
        // Only what was really done can be followed by a failure.
        Ending::Status(status) if truth.status < 400 => Answer {
            object_id: truth.object_id.clone(),
            ..render::status(status)
        },
        Ending::Status(_) | Ending::Tell | Ending::Drop => truth.clone(),
    };
    // An error of what stands in front is not the gateway's answer.
    let kept = if told.is_kept() { &told } else { &truth };
    let key = ask.key.clone().filter(|_| kept.is_kept()).map(|key| {
        let kept = Kept {
            fingerprint: ask.fingerprint.clone(),
            status: kept.status,
            body: kept.body.clone(),
            at: now,
        };
        (key, kept)
    });
    let changes = key.is_some() || record.intent.is_some() || record.effect.is_some();
    if changes {
        store.commit(Record { key, ..record })?;
    }
    Ok(told)
}

fn replay(kept: &Kept) -> Answer {
    Answer {
        status: kept.status,
        body: kept.body.clone(),
        replayed: Replayed::Yes,
        object_id: None,
    }
}
