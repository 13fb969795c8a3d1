//! The network between two programs, on loopback: it can be slow, swallow everything, and be cut,
//! and it counts how often that was felt.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

use super::race::in_background;

/// How the network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    Up,
    /// Everything arrives that much later.
    Slow(Duration),
    /// Connections are closed, old and new ones.
    Cut,
    /// Connections stay and are made, and nothing arrives; it arrives when the network is up again.
    BlackHole,
}

/// What leads to a program that may move.
#[derive(Debug)]
pub struct Wire {
    to: Mutex<(String, u16)>,
    network: watch::Sender<Network>,
    felt: AtomicU64,
}

impl Wire {
    pub fn new(host: &str, port: u16) -> Self {
        Self {
            to: Mutex::new((host.to_owned(), port)),
            network: watch::Sender::new(Network::Up),
            felt: AtomicU64::new(0),
        }
    }

    /// New connections lead to another port.
    pub fn lead_to(&self, port: u16) {
        self.lock().1 = port;
    }

    pub fn set(&self, network: Network) {
        self.network.send_replace(network);
    }

    /// How often something met a network that was not up.
    pub fn felt(&self) -> u64 {
        self.felt.load(Ordering::Relaxed)
    }

    /// Connects to the program, unless the network is cut.
    pub async fn connect(&self) -> io::Result<TcpStream> {
        if *self.network.borrow() == Network::Cut {
            self.feel();
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let (host, port) = self.lock().clone();
        let stream = TcpStream::connect((host.as_str(), port)).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Passes bytes on as fast as the network is.
    pub async fn pass(&self, to: &mut OwnedWriteHalf, bytes: &[u8]) -> io::Result<()> {
        let now = *self.network.borrow();
        match now {
            Network::Up | Network::Cut => {}
            Network::Slow(delay) => {
                self.feel();
                tokio::time::sleep(delay).await;
            }
            Network::BlackHole => {
                self.feel();
                let mut network = self.network.subscribe();
                drop(
                    network
                        .wait_for(|network| *network != Network::BlackHole)
                        .await,
                );
            }
        }
        to.write_all(bytes).await
    }

    /// Resolves when the network is cut under a connection.
    pub async fn cut(&self) {
        let mut network = self.network.subscribe();
        drop(network.wait_for(|network| *network == Network::Cut).await);
        self.feel();
    }

    fn feel(&self) {
        self.felt.fetch_add(1, Ordering::Relaxed);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (String, u16)> {
        self.to.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A wire that carries whatever is sent, from a port of its own.
#[derive(Debug)]
pub struct Link {
    pub wire: Arc<Wire>,
    addr: SocketAddr,
}

impl Link {
    /// Leads to a port on this machine; ends with the runtime of the test.
    pub async fn start(port: u16) -> Self {
        let wire = Arc::new(Wire::new("127.0.0.1", port));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let accepting = Arc::clone(&wire);
        drop(in_background(async move {
            while let Ok((client, _)) = listener.accept().await {
                drop(in_background(carry(client, Arc::clone(&accepting))));
            }
        }));
        Self { wire, addr }
    }

    pub fn base(&self) -> String {
        format!("http://{}", self.addr)
    }
}

/// Ends with either side, or with the network; both sockets close then.
async fn carry(client: TcpStream, wire: Arc<Wire>) -> io::Result<()> {
    client.set_nodelay(true)?;
    let server = wire.connect().await?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        ended = one_way(from_client, to_server, &wire) => ended,
        ended = one_way(from_server, to_client, &wire) => ended,
        () = wire.cut() => Ok(()),
    }
}

async fn one_way(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, wire: &Wire) -> io::Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let count = from.read(&mut bytes).await?;
        let Some(read) = bytes.get(..count).filter(|read| !read.is_empty()) else {
            return Ok(());
        };
        wire.pass(&mut to, read).await?;
    }
}
