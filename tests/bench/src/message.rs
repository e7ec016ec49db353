//! The message that everything is measured with: 256 bytes and one header.

use std::sync::Arc;

use bytes::Bytes;
use pumphouse_contract::ports::Invocation;
use pumphouse_contract::{Count, HeaderValue, Headers, Message, Outgoing, Timestamp};

pub(crate) const HEADER: (&str, &str) = ("type", "bench.message");

const BODY: &[u8; 256] = &[b'x'; 256];

/// The body as text, for brokers that take nothing else.
pub(crate) fn text() -> String {
    "x".repeat(BODY.len())
}

pub(crate) fn outgoing() -> Outgoing {
    let (name, value) = HEADER;
    Outgoing {
        headers: [(name, HeaderValue::from(value))].into_iter().collect(),
        body: Bytes::from_static(BODY),
        ..Outgoing::default()
    }
}

pub(crate) fn invocation() -> Invocation {
    let Outgoing { headers, body, .. } = outgoing();
    of(headers, body)
}

/// With another body.
pub(crate) fn with_body(body: &str) -> Invocation {
    of(outgoing().headers, body.to_owned().into())
}

fn of(headers: Headers, body: Bytes) -> Invocation {
    let message = Message {
        id: "0199d2f9a1b3c0ffee00000000000001".to_owned(),
        headers,
        content_type: None,
        ordering_key: None,
        published_at: Some(Timestamp(1_796_007_014_123)),
        body,
    };
    Invocation {
        message: Arc::new(message),
        source: "bench".into(),
        subscription: "bench".into(),
        count: Count(0),
    }
}
