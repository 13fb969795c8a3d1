//! The sandbox as its callers see it.

mod charges;
mod lists;
mod methods;
mod races;

use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};

use chrono::DateTime;
use tempfile::TempDir;

use super::{
    Sandbox,
    journal::{self, Kind, Line},
};
use crate::{
    clock::MockClock,
    gateways::{Authorize, Call, Find, Finding, Gateway, GatewayKey, GatewayReference, Outcome},
    payments::{currency::Currency, model::CaptureMethod, money::Money},
};

/// Far more than any of these takes; only a test that hangs meets it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A folder, and a clock that stands still.
#[derive(Debug)]
struct Place {
    folder: TempDir,
    clock: MockClock,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            clock: MockClock::at(DateTime::UNIX_EPOCH),
        }
    }

    /// What another process would have: nothing shared but the folder.
    fn sandbox(&self) -> Sandbox {
        Sandbox::in_folder(self.folder.path(), Arc::new(self.clock.clone())).unwrap()
    }

    fn journal(&self) -> PathBuf {
        self.folder.path().join(journal::FILE_NAME)
    }

    fn lines(&self) -> Vec<Line> {
        journal::read(self.journal()).unwrap()
    }

    fn count(&self, gateway_key: &str, kind: Kind) -> usize {
        let of_key = |line: &&Line| line.gateway_key == gateway_key && line.kind == kind;
        self.lines().iter().filter(of_key).count()
    }

    fn effects(&self, gateway_key: &str) -> usize {
        self.count(gateway_key, Kind::Effect)
    }

    async fn until_sent(&self, gateway_key: &str) {
        while self.count(gateway_key, Kind::Request) == 0 {
            tokio::task::yield_now().await;
        }
    }

    async fn until_effect(&self, gateway_key: &str) {
        while self.effects(gateway_key) == 0 {
            tokio::task::yield_now().await;
        }
    }
}

/// Gives a call up as soon as `seen` happens, as a timeout would. It must not have answered.
async fn abandon(call: impl Future<Output = Outcome>, seen: impl Future<Output = ()>) {
    tokio::select! {
        outcome = call => panic!("it must not answer, but said {outcome:?}"),
        seen = tokio::time::timeout(PATIENCE, seen) => seen.expect("the call must get that far"),
    }
}

/// Waits for an answer that comes at once; the delay of the first send would take longer.
async fn at_once(call: impl Future<Output = Outcome>) -> Outcome {
    tokio::time::timeout(PATIENCE, call)
        .await
        .expect("it must answer at once")
}

fn money(amount_minor: i64) -> Money {
    let currency = Currency::from_code("EUR").unwrap();
    Money {
        amount_minor,
        currency,
    }
}

fn authorize(key: &str, payment_method: &str) -> Authorize {
    Authorize {
        gateway_key: GatewayKey::new(key),
        money: money(1999),
        payment_method: payment_method.to_owned(),
        capture_method: CaptureMethod::Automatic,
        description: None,
    }
}

async fn find(sandbox: &Sandbox, call: Call, key: &str) -> Finding {
    let sought = Find {
        call,
        gateway_key: GatewayKey::new(key),
        reference: None,
    };
    sandbox.find(&sought).await
}

/// The same where the payment that the call was about is known.
async fn find_at(sandbox: &Sandbox, call: Call, key: &str, payment: &GatewayReference) -> Finding {
    let sought = Find {
        call,
        gateway_key: GatewayKey::new(key),
        reference: Some(payment.clone()),
    };
    sandbox.find(&sought).await
}

fn reference(outcome: &Outcome) -> GatewayReference {
    let Outcome::Approved { reference } = outcome else {
        panic!("it must be approved, but is {outcome:?}");
    };
    reference.clone()
}

fn code(outcome: &Outcome) -> &str {
    let Outcome::Declined(decline) = outcome else {
        panic!("it must be declined, but is {outcome:?}");
    };
    &decline.code
}
