//! HTTP/1.1 as bytes on a socket: what no client library would send, or not so slowly.

use std::time::Duration;

use reqwest::{
    StatusCode,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::client::Reply;

/// No answer takes longer, on any machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// One connection.
#[derive(Debug)]
pub struct Raw {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Raw {
    /// Connects to the service at `http://…`.
    pub async fn connect(base: &str) -> Self {
        let addr = base.strip_prefix("http://").unwrap();
        let stream = TcpStream::connect(addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            received: Vec::new(),
        }
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
        self
    }

    /// Sends where the other side may close in the middle.
    pub async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Says that nothing more will be sent.
    pub async fn end(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// The next answer, whole; an answer that does not come fails the test.
    pub async fn reply(&mut self) -> Reply {
        self.try_reply().await.expect("the service must answer")
    }

    /// The next answer, or nothing where the connection ends without one.
    pub async fn try_reply(&mut self) -> Option<Reply> {
        let head_end = loop {
            if let Some(at) = find(&self.received, b"\r\n\r\n") {
                break at + 4;
            }
            self.receive().await?;
        };
        let head = String::from_utf8(self.received.drain(..head_end).collect()).unwrap();
        let (status, headers) = read_head(&head);
        let length = headers
            .get("content-length")
            .map_or(0, |value| value.to_str().unwrap().parse().unwrap());
        while self.received.len() < length {
            self.receive().await?;
        }
        Some(Reply {
            status,
            headers,
            body: self.received.drain(..length).collect(),
        })
    }

    /// Waits until the service has closed the connection, whatever it says before; `false` when
    /// it is still open after `limit`.
    pub async fn closes_within(&mut self, limit: Duration) -> bool {
        let closed = async { while self.receive().await.is_some() {} };
        timeout(limit, closed).await.is_ok()
    }

    /// Whether nothing has come that was not read.
    pub fn is_silent(&self) -> bool {
        self.received.is_empty()
    }

    async fn receive(&mut self) -> Option<()> {
        let mut bytes = [0; 4096];
        let read = timeout(PATIENCE, self.stream.read(&mut bytes))
            .await
            .expect("the service must say something, or close");
        let count = read.ok().filter(|count| *count > 0)?;
        self.received.extend(bytes.iter().take(count));
        Some(())
    }
}

/// `POST /v1/payments` up to and including the blank line; `lines` are header lines of the test.
pub fn payment_head(secret: &str, lines: &str, body_bytes: usize) -> Vec<u8> {
    format!(
        "POST /v1/payments HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {secret}\r\n\
         content-type: application/json\r\ncontent-length: {body_bytes}\r\n{lines}\r\n"
    )
    .into_bytes()
}

fn read_head(head: &str) -> (StatusCode, HeaderMap) {
    let mut lines = head.trim_end().split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(':').unwrap();
        (
            name.parse::<HeaderName>().unwrap(),
            HeaderValue::from_str(value.trim()).unwrap(),
        )
    });
    (status.parse().unwrap(), headers.collect())
}

fn find(bytes: &[u8], sought: &[u8]) -> Option<usize> {
    bytes
        .windows(sought.len())
        .position(|window| window == sought)
}
