//! Calls out as its message says, and rejects the message with what came of it.

#![cfg(target_family = "wasm")]

use pumphouse_sdk::{Failure, Message, Outcome};
use serde::{Deserialize, Serialize};
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method,
    OutgoingBody, OutgoingRequest, RequestOptions, Scheme, http_error_code,
};
use wasip2::io::streams::{InputStream, OutputStream, StreamError};

pumphouse_sdk::handler!(handle);

const SHOWN: usize = 1_000;
const MILLION: u64 = 1_000_000;

/// What to do: the requests, all begun before the first is waited for.
#[derive(Deserialize)]
struct Plan {
    requests: Vec<Request>,
}

#[derive(Deserialize, Clone)]
#[serde(default)]
struct Request {
    method: String,
    scheme: String,
    authority: String,
    path: String,
    headers: Vec<(String, String)>,
    /// Bytes of a body; none is sent where there are none.
    body: usize,
    /// Whether a redirect is followed, as any library of a guest would.
    follow: bool,
    first_byte_ms: Option<u64>,
    between_bytes_ms: Option<u64>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            method: "GET".into(),
            scheme: "http".into(),
            authority: String::new(),
            path: "/".into(),
            headers: Vec::new(),
            body: 0,
            follow: false,
            first_byte_ms: None,
            between_bytes_ms: None,
        }
    }
}

/// What came of a request.
#[derive(Serialize, Default)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    body: String,
    bytes: usize,
}

impl Answer {
    fn error(error: impl std::fmt::Debug) -> Self {
        Self { error: Some(format!("{error:?}")), ..Self::default() }
    }
}

fn handle(message: Message) -> Result<Outcome, Failure> {
    let plan: Plan = message.json()?;
    let begun: Vec<_> = plan.requests.iter().map(begin).collect();
    let answers = plan.requests.iter().zip(begun).map(|(request, begun)| end(request, begun));
    let answers =
        serde_json::to_string(&answers.collect::<Vec<_>>()).map_err(Failure::unacceptable)?;
    Ok(Outcome::delivery_error(answers))
}

fn end(request: &Request, begun: Result<FutureIncomingResponse, String>) -> Answer {
    let response = match begun {
        Ok(response) => response,
        Err(error) => return Answer { error: Some(error), ..Answer::default() },
    };
    response.subscribe().block();
    match response.get() {
        Some(Ok(Ok(response))) => read(request, response),
        Some(Ok(Err(error))) => Answer::error(error),
        other => Answer::error(other.is_some()),
    }
}

fn begin(request: &Request) -> Result<FutureIncomingResponse, String> {
    let fields = Fields::new();
    for (name, value) in &request.headers {
        fields.append(name, value.as_bytes()).map_err(|error| format!("{error:?}"))?;
    }
    if request.body > 0 {
        let length = request.body.to_string();
        let _ = fields.append("x-announced", length.as_bytes());
    }
    let outgoing = OutgoingRequest::new(fields);
    let set = [
        outgoing.set_method(&method(&request.method)),
        outgoing.set_scheme(Some(&scheme(&request.scheme))),
        outgoing.set_authority(Some(&request.authority)),
        outgoing.set_path_with_query(Some(&request.path)),
    ];
    if set.iter().any(Result::is_err) {
        return Err("not a request".into());
    }
    let options = RequestOptions::new();
    let _ = options.set_first_byte_timeout(request.first_byte_ms.map(|ms| ms * MILLION));
    let _ = options.set_between_bytes_timeout(request.between_bytes_ms.map(|ms| ms * MILLION));
    let body = (request.body > 0).then(|| outgoing.body());
    let response =
        outgoing_handler::handle(outgoing, Some(options)).map_err(|error| format!("{error:?}"))?;
    if let Some(Ok(body)) = body {
        if let Ok(stream) = body.write() {
            write(&stream, request.body);
        }
        let _ = OutgoingBody::finish(body, None);
    }
    Ok(response)
}

fn method(text: &str) -> Method {
    match text {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "CONNECT" => Method::Connect,
        other => Method::Other(other.into()),
    }
}

fn scheme(text: &str) -> Scheme {
    match text {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.into()),
    }
}

/// Writes until all is written or the other side takes no more.
fn write(stream: &OutputStream, mut left: usize) {
    let chunk = [b'x'; 16 * 1024];
    while left > 0 {
        stream.subscribe().block();
        let Ok(room) = stream.check_write() else { return };
        let now = left.min(chunk.len()).min(usize::try_from(room).unwrap_or(usize::MAX));
        if now > 0 && stream.write(chunk.get(..now).unwrap_or_default()).is_err() {
            return;
        }
        left -= now;
    }
}

fn read(request: &Request, response: IncomingResponse) -> Answer {
    let status = response.status();
    let location = response.headers().get("location");
    if let (true, 300..400, Some(location)) = (request.follow, status, location.first()) {
        return followed(request, &String::from_utf8_lossy(location));
    }
    let mut answer = Answer { status: Some(status), ..Answer::default() };
    let Ok(body) = response.consume() else { return Answer::error("no body") };
    if let Ok(stream) = body.stream() {
        answer.error = read_all(&stream, &mut answer).err();
    }
    drop(IncomingBody::finish(body));
    answer
}

/// What a guest's library does: another request.
fn followed(request: &Request, location: &str) -> Answer {
    let (scheme, rest) = location.split_once("://").unwrap_or(("http", location));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let next = Request {
        scheme: scheme.into(),
        authority: authority.into(),
        path: format!("/{path}"),
        ..request.clone()
    };
    end(&next, begin(&next))
}

fn read_all(stream: &InputStream, answer: &mut Answer) -> Result<(), String> {
    loop {
        match stream.blocking_read(64 * 1024) {
            Ok(bytes) => {
                answer.bytes += bytes.len();
                let room = SHOWN.saturating_sub(answer.body.len());
                let shown = bytes.get(..room).unwrap_or(&bytes);
                answer.body.push_str(&String::from_utf8_lossy(shown));
            }
            Err(StreamError::Closed) => return Ok(()),
            Err(StreamError::LastOperationFailed(error)) => {
                let code: Option<ErrorCode> = http_error_code(&error);
                return Err(
                    code.map_or_else(|| error.to_debug_string(), |code| format!("{code:?}"))
                );
            }
        }
    }
}
