//! A proxy between a service and PostgreSQL, on loopback: a network of its own, which can lose
//! exactly one statement or the answer to it.
//!
//! It reads the frontend's messages as far as is needed to know which statement is executed; a
//! prepared one is known by the text that it was parsed from.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use sqlx::{
    ConnectOptions as _,
    postgres::{PgConnectOptions, PgSslMode},
};
use tokio::{
    io::AsyncReadExt as _,
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    runtime::Handle,
    sync::watch,
};

use super::{database::TestDatabase, network::Wire, postgres::server};

pub use super::network::Network;

/// What happens once, to the next execution of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection breaks before the server hears of it.
    StatementLost,
    /// The same, and the network is cut.
    StatementLostAndCut,
    /// The server has committed; the connection breaks before the answer.
    AnswerLost,
    /// The same, and the network is cut.
    AnswerLostAndCut,
}

/// A running proxy; its connections end with the test's database.
#[derive(Debug)]
pub struct Proxy {
    options: PgConnectOptions,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    wire: Wire,
    fault: Mutex<Option<(String, Fault)>>,
}

impl Proxy {
    /// A proxy in front of the server of `database`. It runs outside of the test's own runtime, so
    /// that a test may block on a process that needs it.
    pub async fn start(database: &TestDatabase) -> Self {
        Self::start_on(&server().runtime, database.options()).await
    }

    /// A proxy in front of any server, as long as `runtime` lives.
    pub async fn start_on(runtime: &Handle, options: PgConnectOptions) -> Self {
        let state = Arc::new(State {
            wire: Wire::new(options.get_host(), options.get_port()),
            fault: Mutex::default(),
        });
        let (accepting, spawning) = (Arc::clone(&state), runtime.clone());
        let addr = runtime
            .spawn(async move { listen(spawning, accepting).await })
            .await
            .unwrap();
        Self {
            options: options
                .host("127.0.0.1")
                .port(addr.port())
                .ssl_mode(PgSslMode::Disable),
            state,
        }
    }

    /// The database, by way of the proxy.
    pub fn url(&self) -> String {
        self.options.to_url_lossy().to_string()
    }

    pub fn set(&self, network: Network) {
        self.state.wire.set(network);
    }

    pub fn wire(&self) -> &Wire {
        &self.state.wire
    }

    /// Arms a fault for the next execution of a statement whose text holds `statement`.
    pub fn arm(&self, statement: &str, fault: Fault) {
        *lock(&self.state.fault) = Some((statement.to_owned(), fault));
    }

    /// Takes a fault back that has not struck.
    pub fn disarm(&self) {
        *lock(&self.state.fault) = None;
    }

    /// Whether the fault that was armed has struck.
    pub fn struck(&self) -> bool {
        lock(&self.state.fault).is_none()
    }
}

impl State {
    /// The fault that this execution meets, which disarms it.
    fn strike(&self, sql: &str) -> Option<Fault> {
        let mut armed = lock(&self.fault);
        let (_, fault) = armed.take_if(|(statement, _)| sql.contains(statement.as_str()))?;
        Some(fault)
    }
}

async fn listen(runtime: Handle, state: Arc<State>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let serving = runtime.clone();
    runtime.spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            serving.spawn(serve(client, Arc::clone(&state)));
        }
    });
    addr
}

/// Ends with either side, or with the network; both sockets close then.
async fn serve(client: TcpStream, state: Arc<State>) -> io::Result<()> {
    // Answers are passed on message by message, each of which would wait for the one before.
    client.set_nodelay(true)?;
    let upstream = state.wire.connect().await?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = upstream.into_split();
    let (withhold, withholding) = watch::channel(None);
    tokio::select! {
        ended = statements(from_client, to_server, &state, &withhold) => ended,
        ended = answers(from_server, to_client, &state, &withholding) => ended,
        () = state.wire.cut() => Ok(()),
    }
}

async fn statements(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &State,
    withhold: &watch::Sender<Option<Fault>>,
) -> io::Result<()> {
    let mut prepared: BTreeMap<Vec<u8>, String> = BTreeMap::new();
    // The first message has no type.
    let startup = read_message(&mut from, None).await?;
    state.wire.pass(&mut to, &startup).await?;
    loop {
        let kind = from.read_u8().await?;
        let message = read_message(&mut from, Some(kind)).await?;
        let body = message.get(5..).unwrap_or_default();
        match executed(kind, body, &mut prepared).and_then(|sql| state.strike(&sql)) {
            Some(Fault::StatementLost) => return Ok(()),
            Some(Fault::StatementLostAndCut) => {
                state.wire.set(Network::Cut);
                return Ok(());
            }
            Some(fault) => {
                withhold.send_replace(Some(fault));
            }
            None => {}
        }
        state.wire.pass(&mut to, &message).await?;
    }
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &State,
    withholding: &watch::Receiver<Option<Fault>>,
) -> io::Result<()> {
    loop {
        let kind = from.read_u8().await?;
        let message = read_message(&mut from, Some(kind)).await?;
        let fault = *withholding.borrow();
        match fault {
            None => state.wire.pass(&mut to, &message).await?,
            // ReadyForQuery: what was sent is committed, or refused.
            Some(fault) if kind == b'Z' => {
                if fault == Fault::AnswerLostAndCut {
                    state.wire.set(Network::Cut);
                }
                return Ok(());
            }
            Some(_) => {}
        }
    }
}

/// The text of the statement that a message executes.
fn executed(kind: u8, body: &[u8], prepared: &mut BTreeMap<Vec<u8>, String>) -> Option<String> {
    let mut parts = body.split(|byte| *byte == 0);
    let first = parts.next()?.to_vec();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match kind {
        b'P' => {
            prepared.insert(first, text(parts.next()?));
            None
        }
        b'B' => prepared.get(parts.next()?).cloned(),
        b'Q' => Some(text(&first)),
        _ => None,
    }
}

/// A whole message, with its type and length.
async fn read_message(from: &mut OwnedReadHalf, kind: Option<u8>) -> io::Result<Vec<u8>> {
    let length = from.read_u32().await?;
    let mut message: Vec<u8> = kind.into_iter().collect();
    message.extend(length.to_be_bytes());
    let start = message.len();
    let body = usize::try_from(length).unwrap().saturating_sub(4);
    message.resize(start + body, 0);
    from.read_exact(message.get_mut(start..).unwrap_or_default())
        .await?;
    Ok(message)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
