//! Payments that go on while `oncepay audit --gateway` compares: they are no breach.

use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use oncepay::{
    audit::{self, gateway::Witness},
    clock::{Clock as _, SystemClock},
    gateways::{
        Authorize, Cancel, Capture, Find, Finding, Gateway, Outcome, Refund,
        listing::{ListError, Listed},
        stripe::Stripe,
    },
};

use crate::support::{
    audit::{assert_clean, audit_with},
    client::{Client, payment, payment_with},
    open_shop::{OpenShop, held},
    stripe::PATIENCE,
};

/// A gateway at which a payment is made after the first reading of its list, and one before the second:
/// on either side of the snapshot that lies between them.
#[derive(Debug)]
struct Meanwhile {
    stripe: Stripe,
    client: Client,
    readings: AtomicUsize,
}

impl Meanwhile {
    async fn pay(&self, key: &str) {
        self.client.pay(key, &payment()).await.assert_status(201);
    }
}

#[async_trait]
impl Gateway for Meanwhile {
    fn name(&self) -> &'static str {
        self.stripe.name()
    }

    fn key_window(&self) -> Duration {
        self.stripe.key_window()
    }

    async fn authorize(&self, _request: &Authorize) -> Outcome {
        unreachable!("an audit moves no money")
    }

    async fn capture(&self, _request: &Capture) -> Outcome {
        unreachable!("an audit moves no money")
    }

    async fn cancel(&self, _request: &Cancel) -> Outcome {
        unreachable!("an audit moves no money")
    }

    async fn refund(&self, _request: &Refund) -> Outcome {
        unreachable!("an audit moves no money")
    }

    async fn find(&self, _sought: &Find) -> Finding {
        unreachable!("an audit asks for lists")
    }

    async fn list(&self, since: DateTime<Utc>) -> Result<Vec<Listed>, ListError> {
        if self.readings.fetch_add(1, Ordering::SeqCst) == 0 {
            let listed = self.stripe.list(since).await;
            self.pay("after-the-first").await;
            listed
        } else {
            self.pay("before-the-second").await;
            self.stripe.list(since).await
        }
    }
}

/// I3, I2. The interleavings that matter: settled in the snapshot and not in the first reading, and in
/// the second reading and not in the snapshot.
#[tokio::test]
async fn payments_between_the_readings_and_the_snapshot_are_no_breach() {
    let shop = OpenShop::open().await;
    let gateway = Meanwhile {
        stripe: shop.sandbox.control.stripe(PATIENCE),
        client: shop.client.clone(),
        readings: AtomicUsize::new(0),
    };
    let witness = Witness {
        gateway: &gateway,
        since: SystemClock.now() - TimeDelta::hours(1),
    };
    let mut connection = shop.database.connect().await;

    let (breaches, compared) = audit::run_against(&mut connection, &witness).await.unwrap();

    assert_eq!(breaches, []);
    assert_eq!((compared.payments, compared.objects), (1, 0));
    assert_eq!(assert_clean(&shop.audit())["objects"], 2);
}

/// Payments that go on meanwhile, in every stage.
#[tokio::test]
async fn audits_beside_payments_find_nothing() {
    let shop = OpenShop::open().await;
    let paying = async {
        for round in 0..30 {
            let keys: Vec<String> = (0..4).map(|lane| format!("K{round}-{lane}")).collect();
            let bodies = [
                payment(),
                held(),
                payment_with("pm_card_declined"),
                payment_with("pm_slow_20ms"),
            ];
            let pays = keys.iter().zip(&bodies);
            join_all(pays.map(|(key, body)| shop.client.pay(key, body))).await;
        }
    };
    let database = Arc::clone(&shop.database);
    let base = shop.sandbox.control.base.clone();
    let audits = tokio::task::spawn_blocking(move || {
        let set = |command: &mut Command| {
            command
                .env("GATEWAY", "stripe")
                .env("STRIPE_API_BASE", &base)
                .env("STRIPE_SECRET_KEY", "sk_test_x");
        };
        (0..6)
            .map(|_| audit_with(&database, set))
            .collect::<Vec<_>>()
    });

    let (audits, ()) = tokio::join!(audits, paying);

    for said in audits.unwrap() {
        assert_clean(&said);
    }
    let compared = assert_clean(&shop.audit());
    assert_eq!(compared["objects"], 120);
}
