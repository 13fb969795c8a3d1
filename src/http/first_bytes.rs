//! A limit for the first bytes of a connection.
//!
//! hyper limits the time for headers once it knows the version of HTTP, and it tells the versions
//! apart by the preface of HTTP/2, for which it waits without a limit. A client that says nothing,
//! or that preface byte by byte, would hold its place among the connections for minutes.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// The preface of HTTP/2 (RFC 9113, section 3.4). No request of HTTP/1.1 with a `Host` is shorter.
const PREFACE_BYTES: usize = 24;

/// A stream that fails when the bytes that tell the version do not come in time.
#[derive(Debug)]
pub struct FirstBytes<S> {
    stream: S,
    missing: usize,
    deadline: Pin<Box<Sleep>>,
}

impl<S> FirstBytes<S> {
    pub fn within(limit: Duration, stream: S) -> Self {
        Self {
            stream,
            missing: PREFACE_BYTES,
            deadline: Box::pin(sleep(limit)),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FirstBytes<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.missing == 0 {
            return read;
        }
        self.missing = self.missing.saturating_sub(buffer.filled().len() - before);
        if read.is_pending() && self.deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FirstBytes<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
