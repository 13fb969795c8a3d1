//! Killing, stopping and ending processes. Each of these strikes whenever it is inflicted.

use nix::sys::signal::Signal;
use tokio::time::sleep;

use crate::chaos::{
    cluster::{Cluster, End, LEASE, Stop},
    fault::ProcessFault,
    schedule::Step,
};

pub async fn inflict(cluster: &Cluster, fault: ProcessFault, step: Step) -> bool {
    match fault {
        ProcessFault::Kill => cluster.restart_service(step.service, End::Killed).await,
        ProcessFault::Terminate => {
            cluster.restart_service(step.service, End::Terminated).await;
        }
        ProcessFault::Pause => return pause(cluster, step).await,
        ProcessFault::PostgresFast => cluster.restart_postgres(Stop::Fast).await,
        ProcessFault::PostgresImmediate => cluster.restart_postgres(Stop::Immediate).await,
        ProcessFault::PostgresCrash => cluster.restart_postgres(Stop::Crash).await,
        ProcessFault::SandboxKill => {
            let mut sandbox = cluster.sandbox.lock().await;
            tokio::task::block_in_place(|| {
                sandbox.kill();
                sandbox.restart();
            });
        }
    }
    true
}

/// Stops a service for longer than its leases: when it goes on, others have done its work.
async fn pause(cluster: &Cluster, step: Step) -> bool {
    assert!(step.lasts > LEASE, "or nobody takes over");
    let service = cluster.services[step.service].lock().await;
    let struck = service.signal(Signal::SIGSTOP);
    sleep(step.lasts).await;
    service.signal(Signal::SIGCONT);
    struck
}
