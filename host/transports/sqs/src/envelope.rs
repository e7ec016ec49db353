//! The JSON envelope that SNS puts around a message where raw delivery is off.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use pumphouse_contract::{HeaderValue, Timestamp};
use serde::Deserialize;

use crate::attributes::{Attribute, base_type, basic};

/// The header that holds the subject of a notification that has one.
const SUBJECT: &str = "Subject";

/// The one type of envelope that holds a message.
const NOTIFICATION: &str = "Notification";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Notification {
    r#type: String,
    #[serde(rename = "TopicArn")]
    _topic_arn: String,
    message: String,
    subject: Option<String>,
    timestamp: Option<String>,
    #[serde(default)]
    message_attributes: BTreeMap<String, Enveloped>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Enveloped {
    r#type: String,
    value: String,
}

/// What was inside an envelope.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) body: String,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) published_at: Option<Timestamp>,
}

/// Takes a message out of its envelope.
///
/// # Errors
/// Says why the text is no envelope with a message.
pub(crate) fn open(text: &str) -> Result<Opened, String> {
    let envelope: Notification = serde_json::from_str(text)
        .map_err(|error| format!("the body is no envelope of SNS: {error}"))?;
    if envelope.r#type != NOTIFICATION {
        return Err(format!("the envelope of SNS is a {:?} and no message", envelope.r#type));
    }
    let mut attributes: Vec<Attribute> =
        envelope.subject.map(|it| Attribute::new(SUBJECT, it.into())).into_iter().collect();
    for (name, enveloped) in envelope.message_attributes {
        attributes.retain(|other| other.name != name);
        attributes.push(attribute(name, enveloped)?);
    }
    let published_at = envelope.timestamp.as_deref().and_then(timestamp);
    Ok(Opened { body: envelope.message, attributes, published_at })
}

fn attribute(name: String, enveloped: Enveloped) -> Result<Attribute, String> {
    let Enveloped { r#type, value } = enveloped;
    let value = match basic(&r#type) {
        "Binary" => match STANDARD.decode(&value) {
            Ok(bytes) => HeaderValue::Binary(Bytes::from(bytes)),
            Err(error) => return Err(format!("attribute {name:?} of the envelope: {error}")),
        },
        "Number" => HeaderValue::Number(value),
        _ => HeaderValue::Text(value),
    };
    let data_type = if basic(&r#type) == base_type(&value) { r#type } else { "String".into() };
    Ok(Attribute { name, data_type, value })
}

fn timestamp(text: &str) -> Option<Timestamp> {
    let at: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(at.as_millisecond()).ok().map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_opened() {
        let text = r#"{"Type": "Notification", "MessageId": "m", "TopicArn": "arn:aws:sns:r:1:t",
            "Subject": "s", "Message": "hello", "Timestamp": "1970-01-01T00:00:01.500Z",
            "SignatureVersion": "1", "MessageAttributes": {
                "b": {"Type": "Binary", "Value": "AP8="},
                "l": {"Type": "String.Array", "Value": "[1]"},
                "n": {"Type": "Number", "Value": "5"}}}"#;
        let opened = open(text).expect("an envelope");
        assert_eq!((opened.body.as_str(), opened.published_at), ("hello", Some(Timestamp(1_500))));
        let expected = [
            ("Subject", "String", HeaderValue::from("s")),
            ("b", "Binary", HeaderValue::Binary(Bytes::from_static(b"\0\xff"))),
            ("l", "String.Array", HeaderValue::from("[1]")),
            ("n", "Number", HeaderValue::Number("5".into())),
        ];
        let expected = expected.map(|(name, data_type, value)| Attribute {
            name: name.into(),
            data_type: data_type.into(),
            value,
        });
        assert_eq!(opened.attributes, expected);
    }

    /// FR-06: what can't be decoded says why.
    #[test]
    fn fr_06_what_is_no_envelope_is_told_so() {
        for (text, why) in [
            ("plain", "no envelope"),
            (r#"{"Message": "m"}"#, "Type"),
            (r#"{"Type": "Notification", "Message": "m"}"#, "TopicArn"),
            (r#"{"Type": "UnsubscribeConfirmation", "TopicArn": "t", "Message": "m"}"#, "Unsub"),
            (
                r#"{"Type": "Notification", "TopicArn": "t", "Message": "m",
                    "MessageAttributes": {"b": {"Type": "Binary", "Value": "%"}}}"#,
                "\"b\"",
            ),
        ] {
            let said = open(text).expect_err(text);
            assert!(said.contains(why), "{said}");
        }
    }
}
