//! The listening side: connections that cannot hold a socket for ever, and a stop that waits for
//! requests but not for idle connections.
//!
//! `axum::serve` sets no time limit on request headers, so that one slow client per socket holds
//! the service up; this one has limits for headers (`first_bytes`, hyper), bodies (`limits`), for a
//! connection on which nothing moves, and for the number of connections.

use std::{pin::Pin, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{Instant, sleep, timeout_at},
};
use tokio_io_timeout::TimeoutStream;

use super::first_bytes::FirstBytes;
use crate::{
    config::HttpSettings,
    lifecycle::{Drained, Tasks},
};

/// What a connection may be silent for while a request on it is answered: the longest request, and
/// time for the answer to be fetched.
const SILENCE_MARGIN: Duration = Duration::from_secs(30);

/// Streams of one HTTP/2 connection, which count as one connection but are many requests.
const STREAMS_MAX: u32 = 100;

/// Bytes of request line and headers. A key has 255 at most; proxies add a few kilobytes.
const HEADER_BYTES_MAX: usize = 64 * 1024;
const HEADER_LIST_BYTES_MAX: u32 = 64 * 1024;

/// After `accept` failed, which is mostly for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// After the last request was answered, for answers to be fetched. What is still open then is idle,
/// or has not sent a whole request.
const FLUSH: Duration = Duration::from_secs(1);

/// Serves `router` on `listener` until shutdown begins, and then until every request is answered,
/// at most for the shutdown timeout.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    settings: &HttpSettings,
    tasks: &Tasks,
) -> Drained {
    let connections = Tasks::default();
    let graceful = GracefulShutdown::new();
    accept(&listener, router, settings, tasks, &connections, &graceful).await;
    drop(listener);
    // Idle connections are closed, and busy ones after the answer that they wait for. One that is
    // half-way through a request is not waited for: only tasks of requests are.
    let deadline = Instant::now() + settings.shutdown_timeout;
    let mut closing = connections.spawn(graceful.shutdown());
    loop {
        let drained = tasks.drain(deadline - Instant::now()).await;
        let flushed = deadline.min(Instant::now() + FLUSH);
        let closed = timeout_at(flushed, &mut closing).await.is_ok();
        // A request whose last byte came meanwhile is a task like any other.
        if closed || drained != Drained::All || tasks.idle() {
            break;
        }
    }
    // Nothing may begin any more: what claimed from now on would be cut off by the exit.
    connections.stop();
    connections.drain(FLUSH).await;
    tasks.drain(deadline - Instant::now()).await
}

async fn accept(
    listener: &TcpListener,
    router: Router,
    settings: &HttpSettings,
    tasks: &Tasks,
    connections: &Tasks,
    graceful: &GracefulShutdown,
) {
    let builder = builder(settings);
    let silence = settings.request_timeout + SILENCE_MARGIN;
    let places = Arc::new(Semaphore::new(settings.connections_max));
    loop {
        // A place first: what cannot be served waits in the queue of the kernel.
        let place = tokio::select! {
            () = tasks.stopped() => return,
            place = Arc::clone(&places).acquire_owned() => place,
        };
        let accepted = tokio::select! {
            () = tasks.stopped() => return,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _peer)) => stream,
            Err(error) => {
                tracing::warn!(error = %error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        let stream = FirstBytes::within(settings.header_read_timeout, bounded(stream, silence));
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection.into_owned());
        let cut = connections.stopped();
        connections.spawn(async move {
            tokio::select! {
                ended = connection => {
                    // A client that goes away or breaks the protocol is no event of ours.
                    if let Err(error) = ended {
                        tracing::debug!(error = %error, "a connection ended early");
                    }
                }
                () = cut => {}
            }
            drop(place);
        });
    }
}

fn builder(settings: &HttpSettings) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_read_timeout)
        .max_buf_size(HEADER_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        // No pings of ours: their answers would keep a connection on which nothing happens from
        // being silent.
        .max_header_list_size(HEADER_LIST_BYTES_MAX);
    builder
}

/// A stream that fails when nothing moves on it for too long: also for a client that does not read
/// its answer.
fn bounded(stream: TcpStream, silence: Duration) -> Pin<Box<TimeoutStream<TcpStream>>> {
    // Answers are small and written at once; waiting for more to send would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(error = %error, "a connection keeps Nagle's algorithm");
    }
    let mut stream = TimeoutStream::new(stream);
    stream.set_read_timeout(Some(silence));
    stream.set_write_timeout(Some(silence));
    Box::pin(stream)
}
