//! What happens between a request and its answer.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::rule::Action;
use crate::faults::{Gate, Journal, Rules, Serve, Valve};

/// A batch of the largest size, escaped, is below this.
const BODY_LIMIT: usize = 16 * 1024 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longer than the longest long poll, which is 20 s.
const UPSTREAM_TIMEOUT: Duration = Duration::from_secs(60);

const JSON: &str = "application/x-amz-json-1.0";
const XML: &str = "text/xml";

/// What [`Action::HeadersOnly`] promises and never sends, in bytes.
const PROMISED: u64 = 4_096;

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// The connection is closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("connection closed on purpose, or because there is no answer from the server")]
pub(super) struct Closed;

/// One proxy's state, shared by its connections.
#[derive(Debug)]
pub(super) struct Exchange {
    upstream: String,
    own: String,
    client: Client<HttpConnector, Full<Bytes>>,
    pub(super) rules: Rules<Action>,
    pub(super) journal: Arc<Journal>,
    pub(super) valve: Arc<Valve>,
}

impl Exchange {
    pub(super) fn new(upstream: &str, own: SocketAddr) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        Self {
            upstream: upstream.trim_end_matches('/').to_owned(),
            own: format!("http://{own}"),
            client: Client::builder(TokioExecutor::new()).build(connector),
            rules: Rules::default(),
            journal: Arc::default(),
            valve: Arc::default(),
        }
    }

    /// Dropped halfway when the client leaves or its connection is cut.
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Answer, Closed> {
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, BODY_LIMIT).collect().await.map_err(|_| Closed)?.to_bytes();
        let operation = operation(&parts, &body);
        let _in_flight = self.journal.begin(&operation, &body);
        let action = self.rules.pick(&operation, &body).unwrap_or(Action::Forward);
        self.follow(action, &operation, &parts, body).await
    }

    async fn follow(
        &self,
        action: Action,
        operation: &str,
        parts: &Parts,
        body: Bytes,
    ) -> Result<Answer, Closed> {
        match action {
            Action::Forward => self.forward(operation, parts, body).await.map(full),
            Action::Answer { status, error_header, body } => made(status, error_header, body),
            Action::DropBefore => Err(Closed),
            Action::DropAfter => {
                self.forward(operation, parts, body).await?;
                Err(Closed)
            }
            Action::Delay(duration) => {
                sleep(duration).await;
                self.forward(operation, parts, body).await.map(full)
            }
            Action::Hang => std::future::pending().await,
            Action::HeadersOnly => Ok(headers_only()),
            Action::Rewrite(edit) => {
                let request = serde_json::from_slice(&body).unwrap_or_default();
                let answer = self.forward(operation, parts, body).await?;
                Ok(full(answer.map(|answer| edited(answer, |json| edit(&request, json)))))
            }
            Action::FailEntries { first, code, sender_fault } => {
                let (rest, failed) = split(&body, first, &code, sender_fault);
                let answer = match rest {
                    Some(rest) => self.forward(operation, parts, rest).await?,
                    None => Response::new(Bytes::from_static(b"{}")),
                };
                Ok(full(answer.map(|answer| edited(answer, |json| add_failed(json, failed)))))
            }
        }
    }

    async fn forward(
        &self,
        operation: &str,
        parts: &Parts,
        body: Bytes,
    ) -> Result<Response<Bytes>, Closed> {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let uri: Uri = format!("{}{path}", self.upstream).parse().map_err(|_| Closed)?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = parts.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = passed_on(&parts.headers);
        let exchange = async {
            let response = self.client.request(request).await.map_err(|_| Closed)?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, BODY_LIMIT).collect().await.map_err(|_| Closed)?;
            Ok((parts, body.to_bytes()))
        };
        let (mut parts, body) = timeout(UPSTREAM_TIMEOUT, exchange).await.map_err(|_| Closed)??;
        parts.headers = passed_on(&parts.headers);
        Ok(Response::from_parts(parts, self.with_own_address(operation, body)))
    }

    fn with_own_address(&self, operation: &str, body: Bytes) -> Bytes {
        if !matches!(operation, "CreateQueue" | "GetQueueUrl" | "ListQueues") {
            return body;
        }
        String::from_utf8_lossy(&body).replace(&self.upstream, &self.own).into()
    }
}

impl Serve for Exchange {
    fn valve(&self) -> &Arc<Valve> {
        &self.valve
    }

    async fn serve(self: Arc<Self>, gate: Gate) {
        let service = service_fn(|request| self.clone().answer(request));
        // An error is a client that left, or a rule that closes the connection.
        let _ = http1::Builder::new().serve_connection(TokioIo::new(gate), service).await;
    }
}

fn operation(parts: &Parts, body: &Bytes) -> String {
    let target = parts.headers.get("x-amz-target").and_then(|value| value.to_str().ok());
    if let Some(target) = target {
        return target.rsplit('.').next().unwrap_or(target).to_owned();
    }
    std::str::from_utf8(body)
        .ok()
        .and_then(|form| form.split('&').find_map(|pair| pair.strip_prefix("Action=")))
        .map_or_else(|| format!("{} {}", parts.method, parts.uri.path()), str::to_owned)
}

/// Without what belongs to one connection or is made anew from the body.
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for own in [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING] {
        headers.remove(own);
    }
    headers.remove("keep-alive");
    headers
}

fn full(answer: Response<Bytes>) -> Answer {
    answer.map(|body| Full::new(body).boxed_unsync())
}

fn made(status: u16, error_header: Option<String>, body: Bytes) -> Result<Answer, Closed> {
    let kind = if body.starts_with(b"<") { XML } else { JSON };
    let mut builder = Response::builder().status(status).header(CONTENT_TYPE, kind);
    if let Some(header) = error_header {
        builder = builder.header("x-amzn-query-error", header);
    }
    builder.body(body).map(full).map_err(|_| Closed)
}

fn headers_only() -> Answer {
    let mut answer = Response::new(Never.boxed_unsync());
    *answer.status_mut() = StatusCode::OK;
    answer.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(JSON));
    answer
}

fn edited(answer: Bytes, edit: impl FnOnce(&mut Value)) -> Bytes {
    let Ok(mut json) = serde_json::from_slice(&answer) else { return answer };
    edit(&mut json);
    json.to_string().into()
}

/// Takes the first entries from a batch: what is left to forward, and the failures to report.
fn split(body: &Bytes, first: usize, code: &str, fault: bool) -> (Option<Bytes>, Vec<Value>) {
    let mut request: Value = serde_json::from_slice(body).unwrap_or_default();
    let Some(entries) = request.get_mut("Entries").and_then(Value::as_array_mut) else {
        return (Some(body.clone()), Vec::new());
    };
    let failed = entries
        .drain(..first.min(entries.len()))
        .filter_map(|entry| entry.get("Id").cloned())
        .map(|id| json!({ "Id": id, "Code": code, "SenderFault": fault, "Message": "by rule" }))
        .collect();
    let rest = (!entries.is_empty()).then(|| request.to_string().into());
    (rest, failed)
}

fn add_failed(answer: &mut Value, failed: Vec<Value>) {
    let Some(answer) = answer.as_object_mut() else { return };
    answer.entry("Successful").or_insert_with(|| json!([]));
    let list = answer.entry("Failed").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.extend(failed);
    }
}

/// A body that is promised and never comes.
struct Never;

impl Body for Never {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(PROMISED)
    }
}
