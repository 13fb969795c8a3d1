//! The listening side. A call whose client goes away is dropped with its connection, which is what
//! makes *hang* and *delay* behave as at a real gateway.

use std::time::Duration;

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};

use super::{Shared, route};
use crate::lifecycle::Tasks;

/// After `accept` failed, which is mostly for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts until `tasks` are stopped.
pub(super) async fn serve(listener: TcpListener, shared: Shared, tasks: &Tasks) {
    loop {
        let accepted = tokio::select! {
            () = tasks.stopped() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _peer)) => connect(stream, shared.clone(), tasks),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn connect(stream: TcpStream, shared: Shared, tasks: &Tasks) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps Nagle's algorithm");
    }
    let service = service_fn(move |request| route::handle(shared.clone(), request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    let stopped = tasks.stopped();
    tasks.spawn(async move {
        tokio::select! {
            () = stopped => {}
            // A client that goes away is no event of ours.
            ended = connection => if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            },
        }
    });
}
