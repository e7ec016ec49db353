//! What happens between a call and its answer.

use std::fmt::Write;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use super::body::{Downward, Ending, LINGER, Opening, Upward, linger};
use super::rule::{Action, Edit};
use super::tally::Tally;
use crate::faults::{Gate, Journal, Rules, Serve, Valve};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Of methods that begin so, the client sends more than one message: their request is passed on
/// as it comes. HTTP tells no other way, and a unary request is read whole before it is judged.
const STREAMING: &str = "Streaming";

/// A number of resets, and the status of the last.
type Resets = (u64, u32);

type Answer = Response<Downward>;
type Server = SendRequest<Upward>;

/// The call is reset without an answer.
#[derive(Debug, thiserror::Error)]
#[error("call reset on purpose, or because there is no answer from the server")]
pub(super) struct Closed;

/// One proxy's state, shared by its connections.
#[derive(Debug)]
pub(super) struct Wire {
    /// `HOST:PORT`.
    upstream: String,
    resets: watch::Sender<Resets>,
    pub(super) rules: Rules<Action>,
    pub(super) journal: Arc<Journal>,
    pub(super) tally: Arc<Tally>,
    pub(super) valve: Arc<Valve>,
}

impl Serve for Wire {
    fn valve(&self) -> &Arc<Valve> {
        &self.valve
    }

    /// Each connection has one of its own to the server, and they end together.
    async fn serve(self: Arc<Self>, mut gate: Gate) {
        let Ok(is_grpc) = gate.speaks_http2().await else { return };
        let connecting = timeout(CONNECT_TIMEOUT, TcpStream::connect(&self.upstream)).await;
        let Ok(Ok(stream)) = connecting else { return };
        // Without it a small frame would wait for the confirmation of the one before it.
        let _ = stream.set_nodelay(true);
        if !is_grpc {
            // An error of either is a peer that left.
            let mut stream = stream;
            let _ = copy_bidirectional(&mut gate, &mut stream).await;
            return;
        }
        let client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        let Ok((server, to_server)) = client.handshake(TokioIo::new(stream)).await else { return };
        let service = service_fn(|call| self.clone().answer(server.clone(), call));
        let to_client = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(gate), service);
        // An error of either is a peer that left. Neither is used again.
        tokio::select! {
            _ = to_client => {}
            _ = to_server => {}
        }
    }
}

impl Wire {
    pub(super) fn new(upstream: &str) -> Self {
        let upstream = upstream.trim_start_matches("http://").trim_end_matches('/');
        Self {
            upstream: upstream.to_owned(),
            resets: watch::Sender::default(),
            rules: Rules::default(),
            journal: Arc::default(),
            tally: Arc::default(),
            valve: Arc::default(),
        }
    }

    pub(super) fn reset_streams(&self, code: u32) {
        self.resets.send_modify(|(count, last)| (*count, *last) = (*count + 1, code));
    }

    /// Dropped halfway when the client gives up the call, or its connection ends.
    async fn answer(
        self: Arc<Self>,
        server: Server,
        call: Request<Incoming>,
    ) -> Result<Answer, Closed> {
        let (parts, body) = call.into_parts();
        let path = parts.uri.path();
        let method = path.rsplit('/').next().unwrap_or(path).to_owned();
        let is_stream = method.starts_with(STREAMING);
        // Before anything is awaited: a reset ends what is open at its moment.
        let resets = is_stream.then(|| self.resets.subscribe());
        let opening = Opening::read(body, is_stream).await?;
        let in_flight = self.journal.begin(&method, &opening.message);
        let action = self.rules.pick(&method, &opening.message);
        let following = self.follow(action, server, &method, &parts, opening, is_stream);
        let answer = tokio::select! {
            answer = following => answer?,
            code = ended(resets.clone()) => status(code, "by rule", self.tally.clone()),
        };
        let ending = resets.map(|resets| -> Ending { Box::pin(ended(Some(resets))) });
        Ok(answer.map(|body| body.ending(ending).in_flight(in_flight)))
    }

    async fn follow(
        &self,
        action: Option<Action>,
        server: Server,
        method: &str,
        parts: &Parts,
        opening: Opening,
        is_stream: bool,
    ) -> Result<Answer, Closed> {
        let edit = match action {
            None | Some(Action::DropAfter) => None,
            Some(Action::Status { code, message }) => {
                return Ok(status(code, &message, self.tally.clone()));
            }
            Some(Action::DropBefore) => return Err(Closed),
            Some(Action::Delay(duration)) => {
                sleep(duration).await;
                None
            }
            Some(Action::Hang) => return std::future::pending().await,
            Some(Action::Rewrite(ref edit)) => Some(edit.clone()),
        };
        let answer = self.forward(server, method, parts, opening, edit).await?;
        if !matches!(action, Some(Action::DropAfter)) {
            return Ok(answer);
        }
        if !is_stream {
            answer.into_body().collect().await.map_err(|_| Closed)?;
        }
        Err(Closed)
    }

    async fn forward(
        &self,
        server: Server,
        method: &str,
        parts: &Parts,
        opening: Opening,
        edit: Option<Arc<Edit>>,
    ) -> Result<Answer, Closed> {
        let uri: Uri =
            format!("http://{}{}", self.upstream, parts.uri.path()).parse().map_err(|_| Closed)?;
        let (message, is_stream) = (opening.message.clone(), opening.is_stream);
        let (awaited, over) = oneshot::channel();
        let mut request = Request::new(Upward::new(opening, over, self.tally.clone(), method));
        *request.method_mut() = parts.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = passed_on(&parts.headers);
        let mut answer = ask(server, request, is_stream).await?;
        if edit.is_some() {
            answer.headers_mut().remove(CONTENT_LENGTH);
        }
        let passed =
            |body| Downward::new(body, awaited, self.tally.clone(), method).edited(edit, message);
        Ok(answer.map(passed))
    }
}

/// The head of the answer. A stream that is given up before is half-closed, and its answer read.
async fn ask(
    mut server: Server,
    request: Request<Upward>,
    is_stream: bool,
) -> Result<Response<Incoming>, Closed> {
    let asking = server.send_request(request);
    if !is_stream {
        return asking.await.map_err(|_| Closed);
    }
    let (mut wanted, head) = oneshot::channel();
    tokio::spawn(async move {
        let mut asking = pin!(asking);
        let answer = tokio::select! {
            answer = &mut asking => answer,
            () = wanted.closed() => match timeout(LINGER, asking).await {
                Ok(answer) => answer,
                Err(_) => return,
            },
        };
        if let Err(Ok(answer)) = wanted.send(answer) {
            linger(answer.into_body()).await;
        }
    });
    head.await.map_err(|_| Closed)?.map_err(|_| Closed)
}

/// The status of the next reset; for a call that is no stream, never.
async fn ended(resets: Option<watch::Receiver<Resets>>) -> u32 {
    let Some(mut resets) = resets else { return std::future::pending().await };
    if resets.changed().await.is_err() {
        // The proxy is gone, and with it the connection.
        return std::future::pending().await;
    }
    let (_, code) = *resets.borrow();
    code
}

/// Without the host, which is another, and without the offer to take compressed answers, which
/// rules could not read.
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    headers.remove(HOST);
    headers.remove("grpc-accept-encoding");
    headers
}

/// An answer that is a status alone.
fn status(code: u32, message: &str, tally: Arc<Tally>) -> Answer {
    let mut answer = Response::new(Downward::none(tally));
    *answer.headers_mut() = status_trailers(code, message);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    answer
}

pub(super) fn status_trailers(code: u32, message: &str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(code));
    if let Ok(message) = HeaderValue::from_str(&escaped(message)) {
        trailers.insert("grpc-message", message);
    }
    trailers
}

/// Percent-encoding, as gRPC wants it of a message.
fn escaped(message: &str) -> String {
    message.bytes().fold(String::with_capacity(message.len()), |mut out, byte| {
        if (b' '..=b'~').contains(&byte) && byte != b'%' {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}
