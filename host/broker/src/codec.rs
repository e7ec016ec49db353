//! Headers as bytes in the store: for each its kind, its name and its value, lengths in 32 bits, little-endian.

use bytes::Bytes;
use pumphouse_contract::{HeaderValue, Headers};

const TEXT: u8 = 0;
const NUMBER: u8 = 1;
const BINARY: u8 = 2;

/// The headers as bytes.
pub(crate) fn encode(headers: &Headers) -> Vec<u8> {
    let mut out = Vec::with_capacity(headers.iter().map(|(n, v)| n.len() + v.len() + 9).sum());
    for (name, value) in headers.iter() {
        let (kind, bytes) = match value {
            HeaderValue::Text(text) => (TEXT, text.as_bytes()),
            HeaderValue::Number(digits) => (NUMBER, digits.as_bytes()),
            HeaderValue::Binary(bytes) => (BINARY, bytes.as_ref()),
        };
        out.push(kind);
        put(&mut out, name.as_bytes());
        put(&mut out, bytes);
    }
    out
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    // A message's size is limited far below 32 bits before it comes here.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// The headers again; none where the bytes are no headers.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<Headers> {
    let mut pairs = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        bytes = rest;
        let name = text(take(&mut bytes)?)?;
        let value = take(&mut bytes)?;
        pairs.push((
            name,
            match *kind {
                TEXT => HeaderValue::Text(text(value)?),
                NUMBER => HeaderValue::Number(text(value)?),
                BINARY => HeaderValue::Binary(Bytes::copy_from_slice(value)),
                _ => return None,
            },
        ));
    }
    Some(pairs.into_iter().collect())
}

fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (taken, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = HeaderValue> {
        prop_oneof![
            any::<String>().prop_map(HeaderValue::Text),
            "-?[0-9]{1,20}".prop_map(HeaderValue::Number),
            any::<Vec<u8>>().prop_map(|bytes| HeaderValue::Binary(bytes.into())),
        ]
    }

    proptest! {
        #[test]
        fn headers_come_back_as_they_went(pairs in prop::collection::vec((any::<String>(), value()), 0..8)) {
            let headers: Headers = pairs.into_iter().collect();
            prop_assert_eq!(decode(&encode(&headers)), Some(headers));
        }

        #[test]
        fn bytes_that_are_no_headers_do_no_harm(bytes in any::<Vec<u8>>()) {
            if let Some(headers) = decode(&bytes) {
                prop_assert_eq!(encode(&headers), bytes);
            }
        }
    }
}
