//! A message of SQS as a delivery.

use std::collections::HashMap;
use std::sync::Arc;

use aws_sdk_sqs::types::{
    Message as SqsMessage, MessageAttributeValue, MessageSystemAttributeName,
};
use bytes::Bytes;
use pumphouse_contract::{
    Attempt, Counted, Delivery, HeaderValue, Headers, Lease, Message, Timestamp,
};

use crate::attributes::{Attribute, base_type, received};
use crate::labels::{self, Labels};
use crate::{CONTENT_TYPE, ENCODING, Envelope, PACKED, body, envelope, packed, receipt, trace};

const TRACEPARENT: &str = "traceparent";

/// How a source reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) envelope: Envelope,
    /// Whether packed metadata is unpacked (C-7).
    pub(crate) rejected: bool,
}

/// A delivery can't be made of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lacking {
    /// It has no delivery count.
    Count,
    /// It has no id, or no receipt handle.
    Identity,
}

/// Says what a message lacks that every delivery needs.
pub(crate) fn lacking(message: &SqsMessage) -> Option<Lacking> {
    if message.message_id().is_none() || message.receipt_handle().is_none() {
        return Some(Lacking::Identity);
    }
    let count = system(message, &MessageSystemAttributeName::ApproximateReceiveCount);
    if count.is_none() { Some(Lacking::Count) } else { None }
}

/// The count of a message, from its own field and without allocating, which the conformance suite proves (C-6).
#[must_use]
pub fn counted(message: &SqsMessage) -> Counted {
    system(message, &MessageSystemAttributeName::ApproximateReceiveCount)
        .and_then(Attempt::parse)
        .map_or(Counted::Unreported, Counted::AtLeast)
}

fn system<'a>(message: &'a SqsMessage, name: &MessageSystemAttributeName) -> Option<&'a str> {
    message.attributes.as_ref()?.get(name).map(String::as_str)
}

fn instant(message: &SqsMessage, name: &MessageSystemAttributeName) -> Option<Timestamp> {
    system(message, name)?.parse().ok().map(Timestamp)
}

/// Makes the delivery of a message that lacks nothing.
pub(crate) fn delivery(mut message: SqsMessage, lease: Lease, reading: Reading) -> Delivery {
    let raw = message.body.take().unwrap_or_default();
    let attributes = from_sdk(message.message_attributes.take());
    let mut read = Read::new(attributes);
    read.published_at = instant(&message, &MessageSystemAttributeName::SentTimestamp);
    read.ordering_key =
        system(&message, &MessageSystemAttributeName::MessageGroupId).map(str::to_owned);
    read.open(raw, reading);
    if let Some(header) = system(&message, &MessageSystemAttributeName::AwsTraceHeader) {
        read.trace(header);
    }
    let handle = message.receipt_handle().unwrap_or_default();
    Delivery {
        counted: counted(&message),
        first_received_at: instant(
            &message,
            &MessageSystemAttributeName::ApproximateFirstReceiveTimestamp,
        ),
        lease,
        receipt: receipt::seal(lease.received, handle),
        undecodable: read.problem.take(),
        message: Arc::new(read.message(message.message_id.take().unwrap_or_default())),
    }
}

/// Sorted by name, since SQS keeps no order.
fn from_sdk(attributes: Option<HashMap<String, MessageAttributeValue>>) -> Vec<Attribute> {
    let mut all: Vec<Attribute> = attributes
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            let (value, label) = received(value);
            let data_type = label.unwrap_or_else(|| base_type(&value).to_owned());
            Attribute { name, data_type, value }
        })
        .collect();
    all.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    all
}

/// A message as far as it is read.
#[derive(Default)]
struct Read {
    attributes: Vec<Attribute>,
    body: Bytes,
    ordering_key: Option<String>,
    published_at: Option<Timestamp>,
    metadata: Vec<(&'static str, String)>,
    /// What was packed beside the metadata. Nothing of it says how this message is encoded.
    unpacked: Vec<Attribute>,
    problem: Option<String>,
}

impl Read {
    fn new(attributes: Vec<Attribute>) -> Self {
        Self { attributes, ..Self::default() }
    }

    /// Takes the message out of what is around it: the envelope, the packed metadata, the encoding.
    fn open(&mut self, raw: String, reading: Reading) {
        if reading.rejected {
            self.unpack();
        }
        match reading.envelope {
            Envelope::Raw => self.body = Bytes::from(raw),
            Envelope::Enveloped => self.unwrap_envelope(raw),
        }
        if self.problem.is_none() {
            self.decode();
        }
    }

    fn unwrap_envelope(&mut self, raw: String) {
        match envelope::open(&raw) {
            Ok(opened) => {
                self.body = Bytes::from(opened.body);
                self.published_at = opened.published_at.or(self.published_at);
                let inside = |name: &str| opened.attributes.iter().any(|one| one.name == name);
                self.attributes.retain(|one| !inside(&one.name));
                self.attributes.extend(opened.attributes);
            }
            Err(problem) => {
                self.body = Bytes::from(raw);
                self.problem = Some(problem);
            }
        }
    }

    fn unpack(&mut self) {
        let at = self.attributes.iter().position(|one| one.name == PACKED);
        let text = at.and_then(|at| self.attributes.get(at)?.value.as_str());
        let Some((at, found)) = at.zip(text.and_then(packed::unpack)) else { return };
        self.attributes.remove(at);
        self.unpacked = found.headers;
        self.metadata = found.metadata;
        self.ordering_key = found.ordering_key.or(self.ordering_key.take());
    }

    fn decode(&mut self) {
        let Some(encoding) = self.take_text(ENCODING) else { return };
        match body::decode(std::mem::take(&mut self.body), &encoding) {
            Ok(body) => self.body = body,
            Err((body, problem)) => {
                self.body = body;
                self.problem = Some(problem);
            }
        }
    }

    /// Takes out an attribute that is a plain text.
    fn take_text(&mut self, name: &str) -> Option<String> {
        let plain = |one: &Attribute| one.name == name && one.data_type == "String";
        let at = self.attributes.iter().position(plain)?;
        match self.attributes.remove(at).value {
            HeaderValue::Text(text) => Some(text),
            HeaderValue::Number(_) | HeaderValue::Binary(_) => None,
        }
    }

    fn trace(&mut self, header: &str) {
        if self.attributes.iter().chain(&self.unpacked).any(|one| one.name == TRACEPARENT) {
            return;
        }
        let traceparent = trace::traceparent(header);
        let attribute = traceparent.map(|text| Attribute::new(TRACEPARENT, text.into()));
        self.attributes.extend(attribute);
    }

    fn message(mut self, id: String) -> Message {
        self.attributes.append(&mut self.unpacked);
        let content_type = self.take_text(CONTENT_TYPE);
        let labels: Labels = self
            .attributes
            .iter()
            .filter(|one| one.data_type != base_type(&one.value))
            .map(|one| (one.name.clone(), one.data_type.clone()))
            .collect();
        let mut headers: Headers =
            self.attributes.into_iter().map(|one| (one.name, one.value)).collect();
        labels::store(&mut headers, &labels);
        for (name, value) in self.metadata {
            headers.set(name, value);
        }
        Message {
            id,
            headers,
            content_type,
            ordering_key: self.ordering_key,
            published_at: self.published_at,
            body: self.body,
        }
    }
}

#[cfg(test)]
#[path = "incoming_tests.rs"]
mod tests;
