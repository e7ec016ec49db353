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

/// Takes off what marks a body of nothing. Where a source knows rejected copies, after [`undo`].
pub(crate) fn uncover(headers: &mut Headers, body: &mut Bytes) {
    if headers.text(ENCODING) == Some(EMPTY) && body == EMPTY_BODY.as_bytes() {
        headers.remove(ENCODING);
        body.clear();
    }
}

/// Undoes what was packed in a rejected copy, for a source that knows them (C-7). The headers are all properties that
/// are none of RocketMQ's own, `content-type` included. Nothing is touched where it is no copy, or the property none
/// of ours.
pub(crate) fn undo(headers: &mut Headers, ordering_key: &mut Option<String>, body: &mut Bytes) {
    if !is_routed_copy(headers) {
        return;
    }
    for name in MAYBE_EMPTY {
        if headers.get(name).is_none() {
            headers.set(name, "");
        }
    }
    if let Some(packed) = headers.text(PACKED).and_then(|text| Packed::take(text, body)) {
        unpack(headers, ordering_key, packed);
    }
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
