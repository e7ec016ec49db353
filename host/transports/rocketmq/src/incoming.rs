//! A message of RocketMQ as a delivery.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use cheetah_string::CheetahString;
use pumphouse_contract::copy::names as metadata;
use pumphouse_contract::trace::{TRACEPARENT, TraceContext};
use pumphouse_contract::{
    Attempt, Counted, Delivery, HeaderValue, Headers, Lease, Message, Receipt, Timestamp,
};
use rocketmq_model::common::sys_flag::message_sys_flag::MessageSysFlag;
use rocketmq_protocol::protocol::body::message_codec::DecodedMessageFrame as Frame;

use crate::inflate::inflate;
use crate::{CONTENT_TYPE, Kind, names, packed};

const FIRST_POP_TIME: &str = "1ST_POP_TIME";
const TRACE_CONTEXT: &str = "TRACE_CONTEXT";

/// A message that holds several in its body, which only topics of batches have.
const BATCH: i32 = MessageSysFlag::INNER_BATCH_FLAG | MessageSysFlag::NEED_UNWRAP_FLAG;

/// How a source reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reading {
    pub(crate) kind: Kind,
    /// Whether what is packed in a rejected copy is unpacked (C-7).
    pub(crate) rejected: bool,
}

/// The count of a message from its reconsume times, which are 0 on the first delivery; without allocating (C-6). A
/// negative number says nothing.
#[must_use]
pub fn counted(reconsume_times: i32) -> Counted {
    Attempt::from_wire(i64::from(reconsume_times) + 1).map_or(Counted::Unreported, Counted::AtLeast)
}

/// A message as it was popped.
pub(crate) struct Popped {
    pub(crate) frame: Frame,
    /// By the message itself, or by the answer that brought it (FIFO).
    pub(crate) reconsume_times: i32,
    pub(crate) receipt: String,
}

impl Popped {
    /// Makes the delivery of it.
    pub(crate) fn delivery(self, lease: Lease, reading: Reading) -> Delivery {
        let Self { frame, reconsume_times, receipt } = self;
        let first = self::first_received_at(&frame, reconsume_times, reading.kind);
        let (message, undecodable) = message(frame, reading);
        Delivery {
            message: Arc::new(message),
            undecodable,
            counted: counted(reconsume_times),
            first_received_at: first,
            lease,
            receipt: Receipt::from(receipt),
        }
    }
}

/// A delivery of what can't be read: its bytes are the body.
pub(crate) fn unreadable(frame: Bytes, id: String, receipt: String, lease: Lease) -> Delivery {
    Delivery {
        message: Arc::new(Message { id, body: frame, ..Message::default() }),
        undecodable: Some("the message is not laid out as RocketMQ's are".to_owned()),
        counted: Counted::Unreported,
        first_received_at: None,
        lease,
        receipt: Receipt::from(receipt),
    }
}

/// When a normal topic's message was first popped, or first given back: the broker writes it at the first redelivery,
/// and never for a FIFO topic.
fn first_received_at(frame: &Frame, reconsume_times: i32, kind: Kind) -> Option<Timestamp> {
    let text = frame.properties.get(FIRST_POP_TIME)?;
    let written = kind == Kind::Normal && reconsume_times > 0;
    written.then(|| text.parse().ok()).flatten().map(Timestamp)
}

/// The message, and why its body is not what its sender gave.
fn message(frame: Frame, reading: Reading) -> (Message, Option<String>) {
    let id = id(&frame);
    let Frame { mut properties, body: received, sys_flag, born_timestamp, .. } = frame;
    let inflated = match sys_flag & BATCH {
        0 => inflate(received.clone(), sys_flag),
        _ => Err("several messages lie in its body".to_owned()),
    };
    let (mut body, undecodable) = match inflated {
        Ok(body) => (body, None),
        Err(why) => (received, Some(why)),
    };
    let group = properties.remove(names::GROUP).map(|group| group.to_string());
    let mut ordering_key = group.filter(|group| !group.is_empty());
    let mut headers = headers(properties);
    if undecodable.is_none() {
        packed::restore(reading.rejected, &mut headers, &mut ordering_key, &mut body);
    }
    let content_type = take_content_type(&mut headers);
    let published_at = u64::try_from(born_timestamp).ok().filter(|at| *at > 0).map(Timestamp);
    (Message { id, headers, content_type, ordering_key, published_at, body }, undecodable)
}

/// The id that stays over redeliveries. Where its sender gave none, the place where this delivery of it is stored, as
/// RocketMQ spells it: that of a normal topic is stored anew for each redelivery.
fn id(frame: &Frame) -> String {
    match frame.properties.get(names::ID) {
        Some(id) => id.to_string(),
        None => offset_id(frame.store_host, frame.commit_log_offset),
    }
}

fn offset_id(host: SocketAddr, offset: i64) -> String {
    let port = host.port();
    match host {
        SocketAddr::V4(it) => format!("{:08X}{port:08X}{offset:016X}", it.ip().to_bits()),
        SocketAddr::V6(it) => format!("{:032X}{port:08X}{offset:016X}", it.ip().to_bits()),
    }
}

/// Sorted by name, since RocketMQ keeps no order.
fn headers(mut properties: HashMap<CheetahString, CheetahString>) -> Headers {
    properties
        .retain(|name, _| !names::is_system(name) && !metadata::COUNTERS.contains(&name.as_str()));
    rename_trace_context(&mut properties);
    let mut sorted: Vec<(String, HeaderValue)> = properties
        .into_iter()
        .map(|(name, text)| (name.to_string(), HeaderValue::Text(text.to_string())))
        .collect();
    sorted.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    sorted.into_iter().collect()
}

/// Gives the trace context of RocketMQ's own clients its usual name, where the message has no other.
fn rename_trace_context(properties: &mut HashMap<CheetahString, CheetahString>) {
    let theirs = properties.get(TRACE_CONTEXT).and_then(|text| TraceContext::parse(text));
    if theirs.is_none() || properties.contains_key(TRACEPARENT) {
        return;
    }
    if let Some(text) = properties.remove(TRACE_CONTEXT) {
        properties.insert(CheetahString::from_static_str(TRACEPARENT), text);
    }
}

fn take_content_type(headers: &mut Headers) -> Option<String> {
    let HeaderValue::Text(text) = headers.get(CONTENT_TYPE)? else { return None };
    let text = text.clone();
    headers.remove(CONTENT_TYPE);
    Some(text)
}

#[cfg(test)]
#[path = "incoming_tests.rs"]
mod tests;
