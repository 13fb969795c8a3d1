//! One HTTP exchange with a gateway: sent once, bounded in time and size.
//!
//! It promises that a failure is [`TransportError::Unreachable`] only when no byte of the request
//! can have left: no address, no connection, no TLS session. Everything later is another error,
//! also on a kept-alive connection that the other side had closed meanwhile: from here that cannot
//! be told from an answer that was lost.
//!
//! It refuses to repeat a request by itself, to follow a redirect (which would carry the request
//! and its secret to somewhere else) and to read an answer without end. Only HTTP/1.1 is spoken: a
//! broken connection then concerns one request and not all that shared it.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::{HeaderMap, Request, StatusCode, Uri};
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use tokio::net::TcpStream;
use tower::{BoxError, ServiceBuilder, util::BoxCloneSyncService};

/// A first SYN that is lost is repeated after one second, and again two seconds later: who has not
/// been reached by then is not there.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(3);

/// Connections kept open between payments. More may be open while they are in use.
const IDLE_CONNECTIONS_MAX: usize = 128;

/// How long one is kept. Well below what load balancers allow (a minute and more): a connection
/// that the other side closes at the moment of a send makes that send's outcome unknown.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// An answer is a few kilobytes, and a page of a hundred refunds about a hundred.
pub(super) const ANSWER_BYTES_MAX: usize = 1024 * 1024;

type Connector = BoxCloneSyncService<Uri, MaybeHttpsStream<TokioIo<TcpStream>>, BoxError>;

/// Sends requests to one gateway. Cloning shares its connections.
#[derive(Clone, Debug)]
pub(super) struct HttpClient {
    client: Client<Connector, Full<Bytes>>,
    timeout: Duration,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Why there is no whole answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransportError {
    /// Certainly no byte of the request was sent.
    #[error("no connection came about")]
    Unreachable(#[source] BoxError),
    #[error("there was no whole answer in time")]
    Timeout,
    /// The connection broke, or what came was no HTTP.
    #[error("the answer was lost")]
    Lost(#[source] BoxError),
    #[error("the answer is longer than any answer of a gateway")]
    TooLong,
}

impl HttpClient {
    /// `timeout` is for everything from connecting to the last byte of the answer. `scheme` is
    /// that of the gateway's address; certificates are only read where it needs them.
    pub(super) fn new(scheme: Scheme, timeout: Duration) -> io::Result<Self> {
        // Shorter than the whole, so that a gateway that cannot be reached is known to be that,
        // and not a call whose outcome is unknown.
        let connect_timeout = CONNECT_TIMEOUT_MAX.min(timeout / 2);
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let tls = HttpsConnectorBuilder::new().with_tls_config(tls_config(scheme)?);
        let https = match scheme {
            Scheme::Http => tls.https_or_http(),
            Scheme::Https => tls.https_only(),
        }
        .enable_http1()
        .wrap_connector(tcp);
        // Around all of it, because a TLS handshake can hang as well as a SYN.
        let connector = ServiceBuilder::new()
            .timeout(connect_timeout)
            .service(https);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .retry_canceled_requests(false)
            .build(BoxCloneSyncService::new(connector));
        Ok(Self { client, timeout })
    }

    /// Of the answer's body, `bytes_max` are read; a longer one is [`TransportError::TooLong`].
    pub(super) async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        bytes_max: usize,
    ) -> Result<Reply, TransportError> {
        tokio::time::timeout(self.timeout, self.send(request, bytes_max))
            .await
            .unwrap_or(Err(TransportError::Timeout))
    }

    async fn send(
        &self,
        request: Request<Full<Bytes>>,
        bytes_max: usize,
    ) -> Result<Reply, TransportError> {
        let response = match self.client.request(request).await {
            Ok(response) => response,
            Err(error) if error.is_connect() => {
                return Err(TransportError::Unreachable(error.into()));
            }
            Err(error) => return Err(TransportError::Lost(error.into())),
        };
        let (head, body) = response.into_parts();
        match Limited::new(body, bytes_max).collect().await {
            Ok(body) => Ok(Reply {
                status: head.status,
                headers: head.headers,
                body: body.to_bytes(),
            }),
            Err(error) if error.is::<LengthLimitError>() => Err(TransportError::TooLong),
            Err(error) => Err(TransportError::Lost(error)),
        }
    }
}

/// How the gateway's address begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

fn tls_config(scheme: Scheme) -> io::Result<ClientConfig> {
    // Named, so that no other crate's choice of a provider can make this one ambiguous.
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let config = match scheme {
        Scheme::Http => config.with_root_certificates(RootCertStore::empty()),
        Scheme::Https => config.with_native_roots()?,
    };
    Ok(config.with_no_client_auth())
}
