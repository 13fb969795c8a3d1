//! What must go well in every service, and goes wrong in one that has a bug. Each scenario is played
//! with the bug and without it, and judged by the same judge.

use chrono::TimeDelta;
use oncepay::{crash::Moment, gateways::sandbox::journal::Kind, seeded::Bug};
use serde_json::json;

use crate::{
    crash_matrix::{self, Mode, Plan, Strike},
    support::{
        buyer::{Asked, Buyer},
        client::payment_with,
        judge::{End, Evidence},
        process::Process,
        race::in_background,
        stage::{KEY, PATIENCE, Stage, another_payment},
        wait::wait_until,
    },
};

/// Every scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scenario {
    /// A cell of the crash matrix: killed before the claim.
    KilledBeforeClaim,
    /// A cell of the crash matrix: killed before the settle.
    KilledBeforeSettle,
    /// The gateway charges and its answer gets lost; the client retries after the rest.
    LostAnswer,
    /// A call takes longer than the lease; another payment is made meanwhile.
    SlowCall,
    /// The owner is superseded while its call is at the gateway, and both want to settle.
    Superseded,
    /// The owner is killed during its call, and the successor's own send is refused.
    RefusedSuccessor,
    /// The answer was lost, and the retry comes when the gateway has forgotten the key.
    ForgottenKey,
    /// The answer was lost, and the cleaner comes by before the retry.
    CleanedMeanwhile,
    /// A paid key comes back after its record expired and was deleted.
    ComesBack,
    /// A payment is declined, and asked for again.
    Declined,
    /// Another payment is asked for under a key that has paid.
    OtherRequest,
    /// The gateway charges another amount than it was asked for.
    WrongAmount,
}

/// Nothing is found in the time of a test, and every key is a new one by the next request.
const FORGETS: &[&str] = &["--search-lag", "1h", "--key-window", "1ms"];

const LOST: &str = r#"{"fault": "drop_after_effect"}"#;

/// Plays a scenario.
pub(super) async fn play(scenario: Scenario, bug: Option<Bug>) -> Evidence {
    let killed_before = |step| Strike::Point(step, Moment::Before);
    match scenario {
        Scenario::KilledBeforeClaim => killed(killed_before("claim"), bug).await,
        Scenario::KilledBeforeSettle => killed(killed_before("settle"), bug).await,
        Scenario::LostAnswer => lost_answer(Stage::set(&[], bug).await).await,
        Scenario::SlowCall => slow_call(Stage::set(&[], bug).await).await,
        Scenario::Superseded => superseded(Stage::set(&[], bug).await).await,
        Scenario::RefusedSuccessor => refused_successor(Stage::set(&[], bug).await).await,
        Scenario::ForgottenKey => forgotten_key(Stage::set(FORGETS, bug).await).await,
        Scenario::CleanedMeanwhile => cleaned_meanwhile(Stage::set(&[], bug).await).await,
        Scenario::ComesBack => comes_back(Stage::set(FORGETS, bug).await).await,
        Scenario::Declined => declined(Stage::set(&[], bug).await).await,
        Scenario::OtherRequest => other_request(Stage::set(&[], bug).await).await,
        Scenario::WrongAmount => wrong_amount(Stage::set(&[], bug).await).await,
    }
}

async fn killed(strike: Strike, bug: Option<Bug>) -> Evidence {
    Box::pin(crash_matrix::run(strike, Mode::Fresh, Plan::FRESH, bug)).await
}

fn open(stage: &Stage) -> Process {
    let service = stage.service().start();
    stage.open(&[&service]);
    service
}

/// Leaves a key whose outcome is unknown, and the money moved.
async fn lose_an_answer(stage: &Stage) {
    stage.fault(LOST).await;
    stage.ask(&stage.buyer(0)).await;
}

async fn persist(stage: &Stage, buyer: &Buyer) {
    buyer.persist(stage.services.subscribe()).await;
}

async fn lost_answer(stage: Stage) -> Evidence {
    let _service = open(&stage);
    lose_an_answer(&stage).await;
    stage.age(TimeDelta::seconds(3)).await;

    persist(&stage, &stage.buyer(0)).await;

    stage.evidence().await
}

async fn slow_call(stage: Stage) -> Evidence {
    let service = stage.service().env("RESCUE_INTERVAL", "200ms").start();
    stage.open(&[&service]);
    let slow = r#"{"fault": "delay", "call": "authorize", "delay_ms": 3000}"#;
    stage.fault(slow).await;

    let (buyer, services) = (stage.buyer(0), stage.services.subscribe());
    let first = in_background(async move { buyer.persist(services).await });
    stage.noted_after(Kind::Request, 0).await;
    let quick = stage.buyer_of("quick", payment_with("pm_card_visa"), 0);
    persist(&stage, &quick).await;
    first.await.unwrap();

    Evidence {
        attempts_max: Some(1),
        ..stage.evidence().await
    }
}

/// By the clock of the database the lease has run out; by its own, the owner may write for a minute
/// more. So only the fence can stop it. The owner's call ends while the successor still asks.
async fn superseded(stage: Stage) -> Evidence {
    let patient = || {
        stage
            .service()
            .env("IDEMPOTENCY_LEASE_TTL", "60s")
            .env("GATEWAY_TIMEOUT", "20s")
            .start()
    };
    let (first, second) = (patient(), patient());
    stage.open(&[&first, &second]);
    for (call, delay_ms) in [("authorize", 2500), ("find", 4500)] {
        let fault = json!({ "fault": "delay", "call": call, "delay_ms": delay_ms });
        stage.fault(&fault.to_string()).await;
    }
    let persisting = |number| {
        let (buyer, services) = (stage.buyer(number), stage.services.subscribe());
        in_background(async move { buyer.persist(services).await })
    };

    let owner = persisting(0);
    stage.noted_after(Kind::Request, 0).await;
    stage.age(TimeDelta::seconds(61)).await;
    let successor = persisting(1);
    wait_until(PATIENCE, async || stage.attempts(KEY).await > 1).await;
    owner.await.unwrap();
    successor.await.unwrap();

    stage.evidence().await
}

async fn refused_successor(stage: Stage) -> Evidence {
    let mut owner = open(&stage);
    stage.fault(r#"{"fault": "hang_before"}"#).await;
    let (buyer, services) = (stage.buyer(0), stage.services.subscribe());
    let waiting = in_background(async move { buyer.persist(services).await });
    stage.noted_after(Kind::Request, 0).await;

    owner.kill();
    let refuse = r#"{"fault": "refuse", "call": "authorize"}"#;
    stage.fault(refuse).await;
    stage.age(TimeDelta::seconds(3)).await;
    let _successor = open(&stage);
    waiting.await.unwrap();

    stage.evidence().await
}

async fn forgotten_key(stage: Stage) -> Evidence {
    let _service = open(&stage);
    lose_an_answer(&stage).await;
    stage.age(TimeDelta::hours(25)).await;

    stage.ask(&stage.buyer(0)).await;

    Evidence {
        end: End::InReview,
        ..stage.evidence().await
    }
}

async fn cleaned_meanwhile(stage: Stage) -> Evidence {
    let _service = open(&stage);
    lose_an_answer(&stage).await;
    stage.age(TimeDelta::hours(2)).await;

    stage.clean_up();
    persist(&stage, &stage.buyer(0)).await;

    stage.evidence().await
}

async fn comes_back(stage: Stage) -> Evidence {
    let _service = open(&stage);
    persist(&stage, &stage.buyer(0)).await;
    stage.age(TimeDelta::hours(25)).await;

    stage.clean_up();
    stage.ask(&stage.buyer(0)).await;

    Evidence {
        end: End::Expired,
        ..stage.evidence().await
    }
}

async fn declined(stage: Stage) -> Evidence {
    let _service = open(&stage);
    let buyer = stage.buyer_of(KEY, payment_with("pm_card_declined"), 0);

    persist(&stage, &buyer).await;
    persist(&stage, &buyer).await;

    Evidence {
        end: End::Declined,
        ..stage.evidence().await
    }
}

async fn other_request(stage: Stage) -> Evidence {
    let _service = open(&stage);
    persist(&stage, &stage.buyer(0)).await;

    let other = Buyer {
        asked: Asked::Other,
        ..stage.buyer_of(KEY, another_payment(), 0)
    };
    persist(&stage, &other).await;

    stage.evidence().await
}

async fn wrong_amount(stage: Stage) -> Evidence {
    let _service = open(&stage);
    stage.fault(r#"{"fault": "wrong_amount"}"#).await;

    stage.ask(&stage.buyer(0)).await;

    Evidence {
        end: End::InReview,
        ..stage.evidence().await
    }
}
