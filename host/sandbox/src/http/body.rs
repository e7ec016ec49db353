//! Bodies with a bound.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep_until};
use wasmtime_wasi_http::{Error, WasiBody};

use super::errors;

/// What one call sent and received, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Traffic {
    pub(super) fn send(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn receive(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What was sent, and what was received.
    pub(crate) fn both(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed))
    }
}

/// How much of a body may still come.
#[derive(Debug)]
struct Left(u64);

impl Left {
    fn take(&mut self, frame: &Frame<Bytes>) -> Option<u64> {
        let bytes = frame.data_ref().map_or(0, |data| data.remaining() as u64);
        self.0 = self.0.checked_sub(bytes)?;
        Some(bytes)
    }
}

/// The body of a request: the guest's, as far as it is allowed.
pub(super) struct Request {
    body: WasiBody,
    limit: u64,
    left: Left,
    /// Set where the body was too large: the connection reports that as an error of its own.
    exceeded: Arc<AtomicBool>,
    traffic: Arc<Traffic>,
}

impl Request {
    pub(super) fn new(body: WasiBody, limit: u64, traffic: Arc<Traffic>) -> Self {
        Self { body, limit, left: Left(limit), exceeded: Arc::default(), traffic }
    }

    pub(super) fn exceeded(&self) -> Arc<AtomicBool> {
        self.exceeded.clone()
    }
}

impl Body for Request {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
            return Poll::Ready(None);
        };
        let frame = frame?;
        match self.left.take(&frame) {
            Some(bytes) => {
                self.traffic.send(bytes);
                Poll::Ready(Some(Ok(frame)))
            }
            None => {
                self.exceeded.store(true, Ordering::Relaxed);
                Poll::Ready(Some(Err(Error::HttpRequestBodySize(Some(self.limit)))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// When a response's body must have come.
#[derive(Debug)]
pub(super) struct Times {
    /// All of it.
    pub(super) until: Instant,
    /// The next part of it.
    pub(super) between: Option<Duration>,
}

impl Times {
    fn next(&self) -> Instant {
        self.between
            .and_then(|b| Instant::now().checked_add(b))
            .map_or(self.until, |next| next.min(self.until))
    }

    fn passed(&self) -> Error {
        if Instant::now() >= self.until {
            Error::HttpResponseTimeout
        } else {
            Error::ConnectionReadTimeout
        }
    }
}

/// The body of a response: the server's, as far and as long as it is allowed. It keeps the request's place.
pub(super) struct Response {
    body: Incoming,
    limit: u64,
    left: Left,
    times: Times,
    timer: Pin<Box<Sleep>>,
    traffic: Arc<Traffic>,
    _place: OwnedSemaphorePermit,
}

impl Response {
    pub(super) fn new(
        body: Incoming,
        limit: u64,
        times: Times,
        traffic: Arc<Traffic>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        let timer = Box::pin(sleep_until(times.next()));
        Self { body, limit, left: Left(limit), times, timer, traffic, _place: place }
    }
}

impl Body for Response {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(error))) => {
                // The connection is cut when its time is over, and may be seen first.
                let late = Instant::now() >= self.times.until;
                let error = if late { Error::HttpResponseTimeout } else { errors::of_body(&error) };
                return Poll::Ready(Some(Err(error)));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => {
                ready!(self.timer.as_mut().poll(cx));
                return Poll::Ready(Some(Err(self.times.passed())));
            }
        };
        let Some(bytes) = self.left.take(&frame) else {
            return Poll::Ready(Some(Err(Error::HttpResponseBodySize(Some(self.limit)))));
        };
        self.traffic.receive(bytes);
        let next = self.times.next();
        self.timer.as_mut().reset(next);
        // A server that never pauses is bounded by the time, too.
        if Instant::now() >= self.times.until {
            return Poll::Ready(Some(Err(Error::HttpResponseTimeout)));
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
