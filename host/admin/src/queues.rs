//! The queues of the embedded broker, for an operator on the same machine: publish, and look.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pumphouse_contract::ports::{PublishError, Queues, Waiting};
use pumphouse_contract::{HeaderValue, Headers, Outgoing};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::sync::Semaphore;

use crate::AdminPorts;
use crate::answers::{now, refuse};

/// The longest request: a message of 4 MiB in base64, and what is around it.
pub(crate) const LONGEST_REQUEST: usize = 6 << 20;
/// The most messages of one look.
const MOST_SHOWN: usize = 100;
/// Looks at once. Each holds its bodies twice, as they are and as they are shown.
const LOOKS_AT_ONCE: usize = 4;

static LOOKS: Semaphore = Semaphore::const_new(LOOKS_AT_ONCE);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    body_base64: String,
    #[serde(default)]
    headers: Vec<(String, String)>,
    content_type: Option<String>,
    ordering_key: Option<String>,
}

#[derive(Serialize)]
struct Published {
    id: String,
}

/// `POST /v1/queues/{queue}/messages`.
pub(crate) async fn publish(
    State(ports): State<AdminPorts>,
    Path(queue): Path<String>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let queues = match allowed(&ports, &headers) {
        Ok(queues) => queues,
        Err(refusal) => return *refusal,
    };
    // A page in a browser can send no such request without asking first, and nobody answers that question.
    if !is_json(&headers) {
        return refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the content type must be application/json",
        );
    }
    let outgoing = match body.map_err(|error| error.to_string()).and_then(|body| outgoing(&body)) {
        Ok(outgoing) => outgoing,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, error),
    };
    match queues.publish(&queue, outgoing).await {
        Ok(id) => now(StatusCode::CREATED, Published { id }),
        Err(error) => failed(&error),
    }
}

fn outgoing(body: &[u8]) -> Result<Outgoing, String> {
    let message: Message = serde_json::from_slice(body)
        .map_err(|error| format!("the request describes no message: {error}"))?;
    let body = STANDARD
        .decode(&message.body_base64)
        .map_err(|error| format!("body_base64 is no base64: {error}"))?;
    Ok(Outgoing {
        headers: message.headers.into_iter().collect::<Headers>(),
        content_type: message.content_type,
        ordering_key: message.ordering_key,
        body: body.into(),
        ..Outgoing::default()
    })
}

#[derive(Deserialize)]
pub(crate) struct Look {
    max: Option<usize>,
}

#[derive(Serialize)]
struct Shown {
    messages: Vec<Item>,
}

#[derive(Serialize)]
struct Item {
    id: String,
    state: &'static str,
    deliveries: u32,
    headers: Vec<(String, String)>,
    content_type: Option<String>,
    ordering_key: Option<String>,
    published_at: Option<String>,
    /// The body, where it is text.
    body: Option<String>,
    /// The body, where it is not.
    body_base64: Option<String>,
}

/// `GET /v1/queues/{queue}/messages?max=N`.
pub(crate) async fn peek(
    State(ports): State<AdminPorts>,
    Path(queue): Path<String>,
    Query(look): Query<Look>,
    headers: HeaderMap,
) -> Response {
    let queues = match allowed(&ports, &headers) {
        Ok(queues) => queues,
        Err(refusal) => return *refusal,
    };
    let max = look.max.unwrap_or(MOST_SHOWN).min(MOST_SHOWN);
    let Ok(_look) = LOOKS.try_acquire() else {
        let error = "too many looks into queues at once; ask again";
        return refuse(StatusCode::TOO_MANY_REQUESTS, error);
    };
    match queues.peek(&queue, max).await {
        Ok(waiting) => {
            now(StatusCode::OK, Shown { messages: waiting.into_iter().map(Item::from).collect() })
        }
        Err(error) => failed(&error),
    }
}

impl From<Waiting> for Item {
    fn from(waiting: Waiting) -> Self {
        let Waiting { message, deliveries, state } = waiting;
        let text = std::str::from_utf8(&message.body).ok().map(str::to_owned);
        Self {
            id: message.id.clone(),
            state,
            deliveries,
            headers: message.headers.iter().map(|(n, v)| (n.to_owned(), shown(v))).collect(),
            content_type: message.content_type.clone(),
            ordering_key: message.ordering_key.clone(),
            published_at: message.published_at.map(|at| at.rfc3339()),
            body_base64: text.is_none().then(|| STANDARD.encode(&message.body)),
            body: text,
        }
    }
}

fn shown(value: &HeaderValue) -> String {
    match value {
        HeaderValue::Text(text) | HeaderValue::Number(text) => text.clone(),
        HeaderValue::Binary(bytes) => STANDARD.encode(bytes),
    }
}

/// The queues, where there are any and the request was meant for this host.
fn allowed(ports: &AdminPorts, headers: &HeaderMap) -> Result<Arc<dyn Queues>, Box<Response>> {
    let Some(queues) = &ports.queues else {
        let error = "this host has no embedded broker";
        return Err(Box::new(refuse(StatusCode::NOT_FOUND, error)));
    };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !is_address(host) {
        let error = "the host must be asked by its address or as localhost";
        return Err(Box::new(refuse(StatusCode::FORBIDDEN, error)));
    }
    Ok(queues.clone())
}

/// Whether a `Host` header names an address. A name could be anyone's who made it point here.
fn is_address(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || bare.parse::<std::net::IpAddr>().is_ok()
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

fn failed(error: &PublishError) -> Response {
    let status = match error {
        PublishError::Missing(..) => StatusCode::NOT_FOUND,
        PublishError::Refused(..) => StatusCode::UNPROCESSABLE_ENTITY,
        PublishError::Unavailable(..) => StatusCode::SERVICE_UNAVAILABLE,
    };
    refuse(status, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_asked_by_its_address() {
        for good in ["127.0.0.1", "127.0.0.1:9180", "[::1]:9180", "localhost:1", "LOCALHOST"] {
            assert!(is_address(good), "{good}");
        }
        for bad in ["", "evil.example", "evil.example:9180", "127.0.0.1.evil.example"] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
