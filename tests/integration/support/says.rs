//! A server that says what a test wants, byte for byte, and counts who asks: for answers that no
//! server would give.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use oncepay::lifecycle::Tasks;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// Answers each connection once and closes it; stops with its test.
#[derive(Debug)]
pub struct Says {
    pub base: String,
    requests: Arc<AtomicUsize>,
    tasks: Tasks,
}

impl Says {
    /// `answer` is given the request as it came, from the first byte of its head.
    pub async fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let tasks = Tasks::default();
        let stopped = tasks.stopped();
        drop(tasks.spawn(async move {
            let serve = async {
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let Some(request) = read_request(&mut stream).await else {
                        continue;
                    };
                    counted.fetch_add(1, Ordering::SeqCst);
                    // The client may hang up in the middle of a long answer.
                    drop(stream.write_all(&answer(&request)).await);
                }
            };
            tokio::select! { () = stopped => {}, () = serve => {} }
        }));
        Self {
            base,
            requests,
            tasks,
        }
    }

    /// How many requests have come. One that was sent again behind the caller's back would have
    /// come before its answer.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Says {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

/// An answer with a JSON body, and its length.
pub fn json_answer(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Reads a request to its end; nothing where the connection ends before.
pub async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut text = String::new();
    loop {
        let mut part = [0; 4096];
        let read = stream.read(&mut part).await.ok().filter(|read| *read > 0)?;
        text.push_str(std::str::from_utf8(&part[..read]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1);
        let length = length.map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
        if body.len() >= length {
            return Some(text);
        }
    }
}
