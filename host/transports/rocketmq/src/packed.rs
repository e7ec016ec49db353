//! What of a message can't be a property, or no body of RocketMQ's: [`PACKED`](crate::PACKED) and
//! [`ENCODING`](crate::ENCODING).

use bytes::Bytes;
use pumphouse_contract::copy::{is_routed_copy, names};
use pumphouse_contract::{HeaderValue, Headers, Packed};

use crate::{ENCODING, PACKED};

/// What stands for a body of nothing, which RocketMQ does not take.
pub(crate) const EMPTY: &str = "empty";
pub(crate) const EMPTY_BODY: &str = " ";

/// The metadata that may be empty, which no property can be.
const MAYBE_EMPTY: [&str; 2] = [names::ORIGINAL_MESSAGE_TYPE, names::REJECTION_MESSAGE];

/// Makes a message what it was before it was sent. The headers are all properties that are none of RocketMQ's own,
/// `content-type` included. What was packed in a rejected copy is undone for a source that knows them (C-7); nothing is
/// touched where it is no copy, or the property none of ours.
pub(crate) fn restore(
    knows_copies: bool,
    headers: &mut Headers,
    ordering_key: &mut Option<String>,
    body: &mut Bytes,
) {
    let packed = if knows_copies { take(headers, body) } else { None };
    // Behind the body nothing is left by now, and the original's own header of that name is not there yet.
    uncover(headers, body);
    if let Some(packed) = packed {
        unpack(headers, ordering_key, packed);
    }
}

/// Takes off what marks a body of nothing.
fn uncover(headers: &mut Headers, body: &mut Bytes) {
    if headers.text(ENCODING) == Some(EMPTY) && body == EMPTY_BODY.as_bytes() {
        headers.remove(ENCODING);
        body.clear();
    }
}

/// What was packed in a copy, taken off its body.
fn take(headers: &mut Headers, body: &mut Bytes) -> Option<Packed> {
    if !is_routed_copy(headers) {
        return None;
    }
    for name in MAYBE_EMPTY {
        if headers.get(name).is_none() {
            headers.set(name, "");
        }
    }
    headers.text(PACKED).and_then(|text| Packed::take(text, body))
}

fn unpack(headers: &mut Headers, ordering_key: &mut Option<String>, packed: Packed) {
    let plain = headers.iter().filter(|(name, _)| *name != PACKED).map(|(name, value)| {
        let value = match value {
            HeaderValue::Text(text) if packed.numbers.iter().any(|it| it == name) => {
                HeaderValue::Number(text.clone())
            }
            value => value.clone(),
        };
        (name.to_owned(), value)
    });
    *headers = plain.chain(packed.headers.iter().cloned()).collect();
    if let Some(group) = packed.ordering_key {
        *ordering_key = Some(group).filter(|group| !group.is_empty());
    }
}
