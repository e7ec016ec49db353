//! What can happen to a connection below HTTP: falling silent, being slow, being reset.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// A limited connection moves at most what is due in this part of a second at a time.
const SLICES_PER_SECOND: u64 = 20;

/// The most that a limited connection reads at a time, in bytes.
const SCRATCH: usize = 4_096;

/// What a client sends first that speaks HTTP/2. No other method begins so.
const HTTP2: &[u8] = b"PRI";

/// How often a beginning that came in parts is looked at.
const PEEK_EVERY: Duration = Duration::from_millis(5);

/// Shared by all connections of a proxy.
#[derive(Debug, Default)]
pub(crate) struct Valve {
    /// Connections made before this moment, counted in freezes, are silent.
    freezes: AtomicU64,
    bytes_per_second: AtomicU64,
    abrupt: AtomicBool,
    open: AtomicU64,
}

impl Valve {
    pub(crate) fn freeze(&self) {
        self.freezes.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn limit(&self, bytes_per_second: u64) {
        self.bytes_per_second.store(bytes_per_second, Ordering::SeqCst);
    }

    /// While set, a connection that is dropped is reset instead of closed.
    pub(crate) fn set_abrupt(&self, abrupt: bool) {
        self.abrupt.store(abrupt, Ordering::SeqCst);
    }

    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::SeqCst)
    }

    fn is_limited(&self) -> bool {
        self.bytes_per_second.load(Ordering::SeqCst) > 0
    }

    fn slice(&self, length: usize) -> usize {
        match self.bytes_per_second.load(Ordering::SeqCst) {
            0 => length,
            rate => length.min(usize::try_from(rate / SLICES_PER_SECOND).unwrap_or(length).max(1)),
        }
    }

    fn pause(&self, moved: usize) -> Option<Pin<Box<Sleep>>> {
        let rate = self.bytes_per_second.load(Ordering::SeqCst);
        let micros = (moved as u64).saturating_mul(1_000_000).checked_div(rate)?;
        Some(Box::pin(sleep(Duration::from_micros(micros))))
    }
}

/// One client's connection.
pub(crate) struct Gate {
    stream: TcpStream,
    valve: Arc<Valve>,
    born: u64,
    reading: Option<Pin<Box<Sleep>>>,
    writing: Option<Pin<Box<Sleep>>>,
}

impl Gate {
    pub(crate) fn new(stream: TcpStream, valve: Arc<Valve>) -> Self {
        valve.open.fetch_add(1, Ordering::SeqCst);
        let born = valve.freezes.load(Ordering::SeqCst);
        Self { stream, valve, born, reading: None, writing: None }
    }

    /// Whether the client begins as HTTP/2 does. What it sent stays to be read.
    pub(crate) async fn speaks_http2(&self) -> io::Result<bool> {
        let mut begin = [0; HTTP2.len()];
        loop {
            let read = self.stream.peek(&mut begin).await?;
            if read == 0 || begin.get(..read) != HTTP2.get(..read) {
                return Ok(false);
            }
            if read == HTTP2.len() {
                return Ok(true);
            }
            sleep(PEEK_EVERY).await;
        }
    }

    fn is_silent(&self) -> bool {
        self.valve.freezes.load(Ordering::SeqCst) > self.born
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.valve.open.fetch_sub(1, Ordering::SeqCst);
        if self.valve.abrupt.load(Ordering::SeqCst) {
            // On failure it is closed instead, which is a cut as well.
            let _ = self.stream.set_zero_linger();
        }
    }
}

/// A silent connection is pending for good: nothing wakes it, and dropping its task ends it.
impl AsyncRead for Gate {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(poll_pause(&mut self.reading, context));
        if self.is_silent() {
            return Poll::Pending;
        }
        if !self.valve.is_limited() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let mut scratch = [0; SCRATCH];
        let slice = self.valve.slice(buffer.remaining().min(SCRATCH));
        let mut part = ReadBuf::new(scratch.get_mut(..slice).unwrap_or_default());
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut part))?;
        buffer.put_slice(part.filled());
        self.reading = self.valve.pause(part.filled().len());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Gate {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(poll_pause(&mut self.writing, context));
        if self.is_silent() {
            return Poll::Pending;
        }
        let part = bytes.get(..self.valve.slice(bytes.len())).unwrap_or(bytes);
        let moved = ready!(Pin::new(&mut self.stream).poll_write(context, part))?;
        self.writing = self.valve.pause(moved);
        Poll::Ready(Ok(moved))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_silent() {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

fn poll_pause(pause: &mut Option<Pin<Box<Sleep>>>, context: &mut Context<'_>) -> Poll<()> {
    if let Some(sleep) = pause {
        ready!(sleep.as_mut().poll(context));
    }
    *pause = None;
    Poll::Ready(())
}
