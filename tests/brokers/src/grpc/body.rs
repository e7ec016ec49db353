//! The two bodies of a call on their way: counted, and of the answer, changed or ended early.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, Incoming};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::message::{Borders, Kept, changed};
use super::rule::Edit;
use super::tally::{Side, Tally};
use super::wire::{Closed, status_trailers};
use crate::faults::InFlight;

/// The largest message that is looked at as a whole, in bytes: far beyond a service's limits.
const MESSAGE_LIMIT: usize = 64 * 1024 * 1024;

/// How long a half-closed stream may take to end.
pub(super) const LINGER: Duration = Duration::from_secs(5);

/// Resolves to the status that ends a stream early.
pub(super) type Ending = Pin<Box<dyn Future<Output = u32> + Send>>;

/// What ends a body before its time.
type Fault = Result<Frame<Bytes>, Box<dyn Error + Send + Sync>>;

type Polled<E> = Poll<Option<Result<Frame<Bytes>, E>>>;

/// Resolves when the answer of a call has ended or will not come: sent by nobody, dropped with
/// the answer. Without it the server would wait on for the rest of the request.
pub(super) type Over = oneshot::Receiver<std::convert::Infallible>;

/// Held as long as there is an answer to wait for.
pub(super) type Awaited = oneshot::Sender<std::convert::Infallible>;

/// What a request begins with, and the rest of it.
pub(super) struct Opening {
    /// The first message; empty when there is none.
    pub(super) message: Bytes,
    read: Bytes,
    rest: Option<Incoming>,
    pub(super) is_stream: bool,
}

impl Opening {
    /// Reads a request to its end, or, of a stream, until its first message is complete.
    pub(super) async fn read(mut body: Incoming, is_stream: bool) -> Result<Self, Closed> {
        let mut kept = Kept::default();
        let mut ended = false;
        while !(ended || is_stream && kept.first().is_some()) {
            match body.frame().await {
                Some(frame) => {
                    if let Ok(data) = frame.map_err(|_| Closed)?.into_data() {
                        kept.push(&data);
                    }
                }
                None => ended = true,
            }
            if kept.len() > MESSAGE_LIMIT {
                return Err(Closed);
            }
        }
        let message = kept.first().map(Bytes::copy_from_slice).unwrap_or_default();
        Ok(Self { message, read: kept.take_all(), rest: (!ended).then_some(body), is_stream })
    }
}

/// A request on its way to the server.
pub(super) struct Upward {
    read: Option<Bytes>,
    rest: Option<Incoming>,
    is_stream: bool,
    over: Over,
    borders: Borders,
    tally: Arc<Tally>,
    method: String,
}

impl Upward {
    pub(super) fn new(opening: Opening, over: Over, tally: Arc<Tally>, method: &str) -> Self {
        let read = Some(opening.read).filter(|read| !read.is_empty());
        let method = method.to_owned();
        let Opening { rest, is_stream, .. } = opening;
        Self { read, rest, is_stream, over, borders: Borders::default(), tally, method }
    }

    /// A stream is half-closed rather than reset: see [`linger`].
    fn given_up(&mut self, error: Box<dyn Error + Send + Sync>) -> Option<Fault> {
        (self.read, self.rest) = (None, None);
        (!self.is_stream).then_some(Err(error))
    }
}

impl Body for Upward {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled<Self::Error> {
        if Pin::new(&mut self.over).poll(context).is_ready() {
            return Poll::Ready(self.given_up(Closed.into()));
        }
        let frame = match (self.read.take(), &mut self.rest) {
            (Some(read), _) => Frame::data(read),
            (None, None) => return Poll::Ready(None),
            (None, Some(rest)) => match ready!(Pin::new(rest).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(self.given_up(error.into())),
                None => return Poll::Ready(None),
            },
        };
        let complete = frame.data_ref().map_or(0, |data| self.borders.pass(data));
        self.tally.add(Side::Up, &self.method, complete);
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_none() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }
}

/// An answer on its way to the client; the call is in flight while this lives.
pub(super) struct Downward {
    inner: Option<Incoming>,
    borders: Borders,
    kept: Kept,
    edit: Option<(Arc<Edit>, Bytes)>,
    ending: Option<Ending>,
    tally: Arc<Tally>,
    method: String,
    is_stream: bool,
    awaited: Option<Awaited>,
    _in_flight: Option<InFlight>,
}

impl Downward {
    /// Of an answer that is a head alone.
    pub(super) fn none(tally: Arc<Tally>) -> Self {
        Self {
            inner: None,
            borders: Borders::default(),
            kept: Kept::default(),
            edit: None,
            ending: None,
            tally,
            method: String::new(),
            is_stream: false,
            awaited: None,
            _in_flight: None,
        }
    }

    pub(super) fn new(inner: Incoming, awaited: Awaited, tally: Arc<Tally>, method: &str) -> Self {
        let mut body = Self::none(tally);
        body.inner = Some(inner);
        body.awaited = Some(awaited);
        body.method = method.to_owned();
        body
    }

    pub(super) fn edited(mut self, edit: Option<Arc<Edit>>, request: Bytes) -> Self {
        self.edit = edit.map(|edit| (edit, request));
        self
    }

    pub(super) fn ending(mut self, ending: Option<Ending>) -> Self {
        self.is_stream = ending.is_some();
        self.ending = ending;
        self
    }

    pub(super) fn in_flight(mut self, in_flight: InFlight) -> Self {
        self._in_flight = Some(in_flight);
        self
    }

    /// A stream ends between two messages: half a message would be another fault.
    fn ends(&mut self, context: &mut Context<'_>) -> Option<HeaderMap> {
        if !self.borders.between() {
            return None;
        }
        let Poll::Ready(code) = self.ending.as_mut()?.as_mut().poll(context) else { return None };
        self.ending = None;
        self.let_go();
        Some(status_trailers(code, "by rule"))
    }

    fn let_go(&mut self) {
        self.awaited = None;
        let inner = self.inner.take().filter(|inner| self.is_stream && !inner.is_end_stream());
        // Without a runtime, this is the end of all.
        if let (Some(inner), Ok(runtime)) = (inner, Handle::try_current()) {
            runtime.spawn(linger(inner));
        }
    }

    /// What of these bytes goes on now.
    fn passed(&mut self, data: Bytes) -> Bytes {
        let complete = self.borders.pass(&data);
        self.tally.add(Side::Down, &self.method, complete);
        let Some((edit, request)) = &self.edit else { return data };
        self.kept.push(&data);
        let mut out = Vec::new();
        while let Some(framed) = self.kept.take() {
            out.extend_from_slice(&changed(framed, |message| edit(request, message)));
        }
        out.into()
    }
}

impl Drop for Downward {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// Reads what is left of a stream that was half-closed, so that it is not reset for a while. The
/// Pub/Sub emulator may go on giving messages to a stream that was reset, and tests would wait
/// for their leases; one that is half-closed it ends at once.
pub(super) async fn linger(mut body: Incoming) {
    let reading = async { while let Some(Ok(_)) = body.frame().await {} };
    // A server that does not end it gets the reset after all.
    let _ = timeout(LINGER, reading).await;
}

impl Body for Downward {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled<hyper::Error> {
        if let Some(trailers) = self.ends(context) {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        let Some(inner) = &mut self.inner else { return Poll::Ready(None) };
        match ready!(Pin::new(inner).poll_frame(context)) {
            Some(Ok(frame)) => Poll::Ready(Some(Ok(match frame.into_data() {
                Ok(data) => Frame::data(self.passed(data)),
                Err(trailers) => trailers,
            }))),
            end => Poll::Ready(end),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }
}
