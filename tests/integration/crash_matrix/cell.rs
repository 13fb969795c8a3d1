//! Runs one cell: a history, a death, a successor, and clients who persist.

use std::{
    os::unix::process::ExitStatusExt as _, path::PathBuf, process::ExitStatus, time::Instant,
};

use chrono::TimeDelta;
use nix::sys::signal::Signal;
use oncepay::{gateways::sandbox::journal::Kind, seeded::Bug};
use tokio::task::JoinHandle;

use super::table::{Armed, History, Mode, Plan, Strike};
use crate::support::{
    buyer::{Buyer, Said},
    client::payment_with,
    judge::Evidence,
    process::{Process, ProcessBuilder},
    race::in_background,
    stage::{KEY, PATIENCE, Stage},
    wait::wait_until,
};

/// Requests of a storm at each of its two services.
const STORM: usize = 6;

/// How often workers come by, where a cell needs them.
const OFTEN: &str = "200ms";

/// Far more than a cleaner deletes, one by one, before it dies.
const EXPIRED: u32 = 40;

/// Runs the cell, and gives the evidence. It fails itself where the process did not die at its
/// point.
pub(crate) async fn run(strike: Strike, mode: Mode, plan: Plan, bug: Option<Bug>) -> Evidence {
    let cell = Cell {
        stage: Stage::set(&[], bug).await,
        strike,
        plan,
    };
    let mut first = cell.armed_service().start();
    cell.stage.open(&[&first]);
    cell.make_history().await;
    cell.meet_faults().await;

    let other = (mode == Mode::Duplicated).then(|| cell.stage.service().start());
    let mut buyers = cell.begin(&mut first, other.as_ref()).await;
    let ended = cell.death(&mut first).await;
    let died = Instant::now();
    let killed = ended.signal().map(Signal::try_from);
    assert_eq!(killed, Some(Ok(Signal::SIGKILL)), "{strike:?}");
    let at_death = cell.stage.at_death().await;
    cell.stage.sandbox.control.clear_faults().await;

    // A process that has yet to start is not the protocol's time: the issue has another one there.
    let starting = Instant::now();
    let successor = cell.successor().start();
    let limit = plan.within + starting.elapsed();
    cell.stage
        .open(&[&successor, other.as_ref().unwrap_or(&successor)]);
    if buyers.is_empty() {
        buyers.push(cell.send(0));
    }
    for buyer in buyers {
        let said = buyer.await.unwrap();
        assert!(
            said.is_some(),
            "{strike:?}: a client was left without an answer"
        );
    }
    let took = died.elapsed();
    cell.settle_down().await;
    Evidence {
        at_death: Some(at_death),
        took: Some((took, limit)),
        ..cell.stage.evidence().await
    }
}

struct Cell {
    stage: Stage,
    strike: Strike,
    plan: Plan,
}

impl Cell {
    fn is_step(&self, name: &str) -> bool {
        matches!(self.strike, Strike::Point(step, _) if step == name)
    }

    fn pends(&self) -> bool {
        matches!(
            self.plan.history,
            History::Pending | History::PendingReplayed
        )
    }

    /// The file that arms the point.
    fn trigger(&self) -> PathBuf {
        self.stage.ground.folder.path().join("armed")
    }

    fn arm(&self) {
        std::fs::write(self.trigger(), "").unwrap();
    }

    /// The one that dies. Workers run where they are to come by the point.
    fn armed_service(&self) -> ProcessBuilder {
        let mut failpoints = Vec::new();
        if let Strike::Point(step, moment) = self.strike {
            failpoints.push(format!(
                "{step}.{moment}=return({})",
                self.trigger().display()
            ));
        }
        if self.plan.fails {
            let passes = usize::from(self.plan.history != History::None);
            failpoints.push(format!("performed={passes}*off->1*return"));
        }
        let works = self.is_step("list_left") || self.pends();
        let cleans = self.is_step("delete_expired");
        self.stage
            .service()
            .env("FAILPOINTS", &failpoints.join(";"))
            .env("RESCUE_INTERVAL", if works { OFTEN } else { "1h" })
            .env("CLEANUP_INTERVAL", if cleans { OFTEN } else { "1h" })
            .env("CLEANUP_BATCH_SIZE", "1")
    }

    /// The one that takes its place.
    fn successor(&self) -> ProcessBuilder {
        self.stage
            .service()
            .env("RESCUE_INTERVAL", OFTEN)
            .env("CLEANUP_INTERVAL", OFTEN)
    }

    fn buyer(&self, number: usize) -> Buyer {
        let method = if self.pends() {
            "pm_pending_then_succeeds"
        } else {
            "pm_card_visa"
        };
        self.stage.buyer_of(KEY, payment_with(method), number)
    }

    fn send(&self, number: usize) -> JoinHandle<Option<Said>> {
        let services = self.stage.services.subscribe();
        let buyer = self.buyer(number);
        in_background(async move { buyer.persist(services).await })
    }

    async fn make_history(&self) {
        let buyer = self.buyer(0);
        let status = match self.plan.history {
            History::None => return,
            History::Released => {
                self.stage.fault(r#"{"fault": "refuse", "times": 3}"#).await;
                503
            }
            History::Charged => {
                self.stage.fault(r#"{"fault": "drop_after_effect"}"#).await;
                202
            }
            History::Unheard => {
                self.stage
                    .fault(r#"{"fault": "status_before", "status": 503}"#)
                    .await;
                202
            }
            History::Pending | History::PendingReplayed => 201,
        };
        let said = self.stage.ask(&buyer).await;
        said.reply.assert_status(status);
        match self.plan.history {
            History::Charged | History::Unheard => self.stage.age(TimeDelta::seconds(3)).await,
            History::PendingReplayed => {
                let replay = self.stage.ask(&buyer).await;
                replay.reply.assert_replays(&said.reply);
            }
            History::None | History::Released | History::Pending => {}
        }
    }

    async fn meet_faults(&self) {
        for fault in self.plan.faults {
            self.stage.fault(fault).await;
        }
    }

    /// Arms the point and sends the requests: those at the service that dies, and those at the
    /// other one as soon as the first has got hold of the key, or has died.
    async fn begin(
        &self,
        first: &mut Process,
        other: Option<&Process>,
    ) -> Vec<JoinHandle<Option<Said>>> {
        let attempts = self.stage.attempts(KEY).await;
        let requests = self.stage.noted(Kind::Request);
        let count = if other.is_some() { STORM } else { 1 };
        if self.plan.armed == Armed::AtOnce {
            self.arm();
        }
        let mut buyers = Vec::new();
        if self.plan.armed != Armed::Idle {
            buyers.extend((0..count).map(|_| self.send(0)));
        }
        if self.plan.armed == Armed::DuringCall {
            self.stage.noted_after(Kind::Request, requests).await;
        }
        if self.is_step("delete_expired") {
            let merchant_id = self.stage.ground.merchant_id;
            self.stage
                .ground
                .database
                .add_expired_records(merchant_id, EXPIRED)
                .await;
        }
        self.arm();
        if let Some(other) = other {
            wait_until(PATIENCE, async || {
                first.ended().is_some() || self.pends() || self.stage.attempts(KEY).await > attempts
            })
            .await;
            self.stage.open(&[first, other]);
            buyers.extend((0..count).map(|_| self.send(1)));
        }
        buyers
    }

    /// Waits for the death, or brings it about.
    async fn death(&self, first: &mut Process) -> ExitStatus {
        let past = usize::from(self.plan.history == History::Released) * 3;
        match self.strike {
            Strike::Point(..) => {}
            Strike::Heard => {
                self.stage.noted_after(Kind::Request, past).await;
                first.signal(Signal::SIGKILL);
            }
            Strike::Charged => {
                self.stage.noted_after(Kind::Effect, 0).await;
                first.signal(Signal::SIGKILL);
            }
        }
        let mut status = None;
        wait_until(PATIENCE, async || {
            if self.pends() {
                self.ask_now().await;
            }
            status = first.ended();
            status.is_some()
        })
        .await;
        status.unwrap()
    }

    /// What is pending is due.
    async fn ask_now(&self) {
        let due = "UPDATE pending_payments SET next_poll_at = now() WHERE next_poll_at > now()";
        self.stage.ground.database.execute(due).await;
    }

    /// What goes on without clients comes to its end.
    async fn settle_down(&self) {
        let left = "SELECT (SELECT count(*) FROM pending_payments)
            + (SELECT count(*) FROM idempotency_keys WHERE expires_at <= now())";
        wait_until(PATIENCE, async || {
            if self.pends() {
                self.ask_now().await;
            }
            self.stage.count(left).await == 0
        })
        .await;
    }
}
