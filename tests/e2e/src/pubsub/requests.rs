//! What a host asked of Pub/Sub, read from the bytes that passed a proxy.

use std::collections::BTreeMap;

use pumphouse_test_brokers::grpc::Seen;

/// A change of leases: one `ModifyAckDeadline`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadline {
    /// From now on, in seconds; 0 gives back.
    pub seconds: u64,
    /// Whose.
    pub ack_ids: Vec<String>,
}

/// A message of a `Publish`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The full name of the topic.
    pub topic: String,
    /// The body.
    pub body: Vec<u8>,
    /// The attributes.
    pub attributes: BTreeMap<String, String>,
    /// The ordering key; empty where there is none.
    pub key: String,
}

/// The subscription of an `Acknowledge`, a `ModifyAckDeadline`, a `Pull` or the first message of a stream: its full
/// name.
#[must_use]
pub fn subscription_of(message: &[u8]) -> String {
    texts(message, 1).pop().unwrap_or_default()
}

/// The ids of an `Acknowledge`; none of another call.
#[must_use]
pub fn acknowledged(seen: &Seen) -> Vec<String> {
    if seen.operation == "Acknowledge" { texts(&seen.body, 2) } else { Vec::new() }
}

/// What a `ModifyAckDeadline` asks for; none of another call.
#[must_use]
pub fn deadline(seen: &Seen) -> Option<Deadline> {
    (seen.operation == "ModifyAckDeadline").then(|| Deadline {
        // What is 0 is not sent.
        seconds: numbers(&seen.body, 3).pop().unwrap_or_default(),
        ack_ids: texts(&seen.body, 4),
    })
}

/// The messages of a `Publish`; none of another call.
#[must_use]
pub fn published(seen: &Seen) -> Vec<Published> {
    if seen.operation != "Publish" {
        return Vec::new();
    }
    let topic = texts(&seen.body, 1).pop().unwrap_or_default();
    let one = |message: &[u8]| Published {
        topic: topic.clone(),
        body: values(message, 1).pop().unwrap_or_default().to_vec(),
        attributes: values(message, 2).into_iter().map(pair).collect(),
        key: texts(message, 5).pop().unwrap_or_default(),
    };
    values(&seen.body, 2).into_iter().map(one).collect()
}

/// The id of acknowledgement and the message id of each message in an answer to `Pull` or of a stream.
pub(super) fn delivered(answer: &[u8]) -> Vec<(String, String)> {
    let one = |received: &[u8]| {
        let message = values(received, 2).pop().unwrap_or_default();
        let ack_id = texts(received, 1).pop().unwrap_or_default();
        (ack_id, texts(message, 3).pop().unwrap_or_default())
    };
    values(answer, 1).into_iter().map(one).collect()
}

fn pair(entry: &[u8]) -> (String, String) {
    let text = |field| texts(entry, field).pop().unwrap_or_default();
    (text(1), text(2))
}

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn texts(message: &[u8], wanted: u64) -> Vec<String> {
    let values = values(message, wanted).into_iter();
    values.map(|value| String::from_utf8_lossy(value).into_owned()).collect()
}

fn values(message: &[u8], wanted: u64) -> Vec<&[u8]> {
    let of = |(number, field)| match field {
        Field::Bytes(bytes) if number == wanted => Some(bytes),
        Field::Bytes(_) | Field::Number(_) => None,
    };
    fields(message).into_iter().filter_map(of).collect()
}

fn numbers(message: &[u8], wanted: u64) -> Vec<u64> {
    let of = |(number, field)| match field {
        Field::Number(value) if number == wanted => Some(value),
        Field::Bytes(_) | Field::Number(_) => None,
    };
    fields(message).into_iter().filter_map(of).collect()
}

/// The fields of a protobuf message, as far as it goes: a recorded one may have been cut.
fn fields(mut message: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut found = Vec::new();
    while let Some(field) = next(&mut message) {
        found.push(field);
    }
    found
}

fn next<'a>(message: &mut &'a [u8]) -> Option<(u64, Field<'a>)> {
    let tag = number(message)?;
    let field = match tag & 7 {
        0 => Field::Number(number(message)?),
        1 => Field::Bytes(bytes(message, 8)?),
        2 => {
            let length = usize::try_from(number(message)?).ok()?;
            Field::Bytes(bytes(message, length)?)
        }
        5 => Field::Bytes(bytes(message, 4)?),
        _ => return None,
    };
    Some((tag >> 3, field))
}

fn bytes<'a>(message: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = message.split_at_checked(length)?;
    *message = rest;
    Some(taken)
}

fn number(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
