//! Message attributes: what SQS takes, and how they stand for headers.

use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::MessageAttributeValue;
use bytes::Bytes;
use pumphouse_contract::HeaderValue;

/// The most attributes of one message.
pub(crate) const MOST: usize = 10;

/// The longest name and the longest data type.
const LONGEST_NAME: usize = 256;

/// The most digits of a number.
const MOST_DIGITS: usize = 38;

/// One attribute on its way to SQS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    /// `String`, `Number` or `Binary`, maybe with a custom label after a dot.
    pub(crate) data_type: String,
    pub(crate) value: HeaderValue,
}

impl Attribute {
    /// A header as an attribute of the basic type of its value.
    pub(crate) fn new(name: impl Into<String>, value: HeaderValue) -> Self {
        Self { name: name.into(), data_type: base_type(&value).to_owned(), value }
    }

    /// What counts towards the message's size.
    pub(crate) fn size(&self) -> usize {
        self.name.len() + self.data_type.len() + self.value.len()
    }

    /// Why SQS would not take it; none where it would.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        if !is_name(&self.name) {
            return Some("its name is not allowed for an SQS attribute");
        }
        if self.value.is_empty() {
            return Some("it is empty, which SQS does not take");
        }
        match &self.value {
            HeaderValue::Number(number) if !is_number(number) => Some("it is no number to SQS"),
            HeaderValue::Text(text) | HeaderValue::Number(text) if !is_allowed(text) => {
                Some("it has characters that SQS does not take")
            }
            _ => None,
        }
    }

    pub(crate) fn into_sdk(self) -> Result<(String, MessageAttributeValue), BuildError> {
        let value = MessageAttributeValue::builder().data_type(self.data_type);
        let value = match self.value {
            HeaderValue::Text(text) | HeaderValue::Number(text) => value.string_value(text),
            HeaderValue::Binary(bytes) => value.binary_value(Blob::new(bytes)),
        };
        Ok((self.name, value.build()?))
    }
}

/// The basic data type of a value.
pub(crate) fn base_type(value: &HeaderValue) -> &'static str {
    match value {
        HeaderValue::Text(_) => "String",
        HeaderValue::Number(_) => "Number",
        HeaderValue::Binary(_) => "Binary",
    }
}

/// A received attribute as a header's value, and its data type where it is not the basic one.
pub(crate) fn received(value: MessageAttributeValue) -> (HeaderValue, Option<String>) {
    let text = value.string_value;
    let bytes = value.binary_value.map(Blob::into_inner).unwrap_or_default();
    let data_type = value.data_type;
    let read = match basic(&data_type) {
        "Binary" => HeaderValue::Binary(Bytes::from(bytes)),
        "Number" => HeaderValue::Number(text.unwrap_or_default()),
        _ => HeaderValue::Text(text.unwrap_or_default()),
    };
    let label = (data_type != base_type(&read)).then_some(data_type);
    (read, label)
}

/// The part of a data type before its label.
pub(crate) fn basic(data_type: &str) -> &str {
    data_type.split('.').next().unwrap_or(data_type)
}

/// Whether a data type may stand for a value: of the value's basic type, with a label or without.
pub(crate) fn fits(data_type: &str, value: &HeaderValue) -> bool {
    basic(data_type) == base_type(value)
        && data_type.len() <= LONGEST_NAME
        && data_type.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether every character is one that SQS takes.
pub(crate) fn is_allowed(text: &str) -> bool {
    text.chars().all(|c| {
        matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
    })
}

fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let lower = name.to_ascii_lowercase();
    (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(allowed)
        && !name.starts_with('.')
        && !name.ends_with('.')
        && !name.contains("..")
        && !lower.starts_with("aws.")
        && !lower.starts_with("amazon.")
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    all_digits(whole) && all_digits(fraction) && digits.len() <= MOST_DIGITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sqs_does_not_take_is_known_beforehand() {
        let text = |name: &str, value: &str| Attribute::new(name, HeaderValue::from(value));
        for good in ["a", "a.b-c_D", "9"] {
            assert_eq!(text(good, "x").problem(), None, "{good}");
        }
        for bad in ["", ".a", "a.", "a..b", "a b", "ä", "AWS.x", "amazon.x"] {
            assert!(text(bad, "x").problem().is_some(), "{bad}");
        }
        for bad in ["", "\0", "\u{b}", "\u{fffe}", "\u{ffff}"] {
            assert!(text("a", bad).problem().is_some(), "{bad:?}");
        }
        assert_eq!(text("a", "\t\r\n ä\u{7f}\u{10ffff}").problem(), None);
    }

    #[test]
    fn a_number_that_sqs_refuses_is_known_beforehand() {
        let number = |text: &str| Attribute::new("n", HeaderValue::Number(text.to_owned()));
        for good in ["0", "-1", "12.50", "00012345678901234567890123456789012345"] {
            assert_eq!(number(good).problem(), None, "{good}");
        }
        for bad in ["", "-", "1.", ".5", "NaN", "1e5", "1 ", &"9".repeat(39)] {
            assert!(number(bad).problem().is_some(), "{bad}");
        }
    }

    #[test]
    fn a_label_is_told_beside_the_value() {
        let sdk = |data_type: &str| {
            let value = MessageAttributeValue::builder().data_type(data_type).string_value("7");
            received(value.build().expect("a data type"))
        };
        assert_eq!(sdk("String"), (HeaderValue::from("7"), None));
        assert_eq!(sdk("Number"), (HeaderValue::Number("7".into()), None));
        let (value, label) = sdk("Number.int");
        assert_eq!(
            (value, label.as_deref()),
            (HeaderValue::Number("7".into()), Some("Number.int"))
        );
    }
}
