//! A body of any bytes in a queue that takes texts only.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::attributes::is_allowed;

/// The body is base64.
const BASE64: &str = "base64";
/// The body has no byte; SQS does not take that, so something stands for it.
const EMPTY: &str = "empty";
const STAND_IN: &str = "(empty)";

/// The body as SQS takes it, and how it is encoded where it is.
pub(crate) fn encode(body: &Bytes) -> (String, Option<&'static str>) {
    if body.is_empty() {
        return (STAND_IN.to_owned(), Some(EMPTY));
    }
    match std::str::from_utf8(body) {
        Ok(text) if is_allowed(text) => (text.to_owned(), None),
        _ => (STANDARD.encode(body), Some(BASE64)),
    }
}

/// The body that was encoded so.
///
/// # Errors
/// Says why it can't be decoded, and gives the body back as it is.
pub(crate) fn decode(body: Bytes, encoding: &str) -> Result<Bytes, (Bytes, String)> {
    match encoding {
        EMPTY => Ok(Bytes::new()),
        BASE64 => match STANDARD.decode(&body) {
            Ok(bytes) => Ok(Bytes::from(bytes)),
            Err(error) => Err((body, format!("the body is marked as base64 and is not: {error}"))),
        },
        other => Err((body, format!("the body is encoded as {other:?}, which is not known"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_body_comes_back_byte_for_byte(body: Vec<u8>) {
            let body = Bytes::from(body);
            let (text, encoding) = encode(&body);
            prop_assert!(is_allowed(&text) && !text.is_empty());
            let back = match encoding {
                Some(encoding) => decode(Bytes::from(text), encoding),
                None => Ok(Bytes::from(text)),
            };
            prop_assert_eq!(back, Ok(body));
        }
    }

    #[test]
    fn a_text_stays_a_text() {
        let body = Bytes::from_static("{\"a\": \"ä\"}\n".as_bytes());
        assert_eq!(encode(&body), ("{\"a\": \"ä\"}\n".to_owned(), None));
    }

    #[test]
    fn what_is_wrongly_marked_is_given_back_with_a_reason() {
        let body = Bytes::from_static(b"%%%");
        let (back, why) = decode(body.clone(), "base64").expect_err("no base64");
        assert!(back == body && why.contains("base64"));
        assert!(decode(body, "rot13").is_err());
    }
}
