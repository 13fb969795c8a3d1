//! What a request needs: settings, database, clock, gateway, tasks. Built once, shared by all.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::{
    clock::Clock,
    config::Settings,
    db::Database,
    gateways::Gateway,
    idempotency::{lease::LeaseKeeper, waiting::Waiting},
    lifecycle::Tasks,
    payments::create::Presenter,
};

/// The parts of one running service.
#[derive(Clone, Debug)]
pub struct App {
    pub settings: Arc<Settings>,
    pub database: Database,
    pub clock: Arc<dyn Clock>,
    pub gateway: Arc<dyn Gateway>,
    pub tasks: Tasks,
    /// One place for each request under way, whether or not its client still waits.
    pub requests: Arc<Semaphore>,
    pub leases: LeaseKeeper,
    pub waiting: Waiting,
    /// How payments are shown, which only `http` knows.
    pub presenter: Presenter,
}
