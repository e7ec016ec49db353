//! A topic: as it is to be made, and how one that is there differs.

use serde_json::Value;

use crate::Kind;

const READABLE: u64 = 4;
const WRITABLE: u64 = 2;

/// What a topic that is made may be used for.
pub(super) const READ_WRITE: i32 = 6;

/// The attribute that says what a topic promises.
const MESSAGE_TYPE: &str = "message.type";

/// A topic without the attribute, or with this, is one for normal messages.
const NORMAL: &str = "NORMAL";
const UNSPECIFIED: &str = "UNSPECIFIED";
const FIFO: &str = "FIFO";

/// What a topic is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Write,
}

/// What a topic that is made is given.
pub(super) fn attributes(kind: Kind) -> String {
    format!("+{MESSAGE_TYPE}={}", name(kind))
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Normal => NORMAL,
        Kind::Fifo => FIFO,
    }
}

/// What a topic says that it promises.
pub(super) fn kind(found: &Value) -> Option<Kind> {
    match message_type(found)? {
        NORMAL => Some(Kind::Normal),
        FIFO => Some(Kind::Fifo),
        _ => None,
    }
}

/// How a broker's topic differs from what is wanted, each difference with what to do.
pub(super) fn differences(found: &Value, kind: Kind, usage: Use, broker: &str) -> Vec<String> {
    let differences = [
        other_type(found, kind),
        unusable(found, usage),
        (usage == Use::Read).then(|| unread(found)).flatten(),
    ];
    let at = |text: String| format!("broker {broker}: {text}");
    differences.into_iter().flatten().map(at).collect()
}

fn other_type(found: &Value, kind: Kind) -> Option<String> {
    let (is, wanted) = (message_type(found).unwrap_or(NORMAL), name(kind));
    let is = if is == UNSPECIFIED { NORMAL } else { is };
    let other = match is {
        FIFO => Kind::Fifo,
        _ => Kind::Normal,
    };
    let advice = match is {
        NORMAL | FIFO => format!("set kind = \"{}\"", spelled(other)),
        _ => format!("set its {MESSAGE_TYPE}"),
    };
    (is != wanted).then(|| {
        format!(
            "its {MESSAGE_TYPE} is {is} where the configuration says {wanted}: {advice}, or use another topic"
        )
    })
}

fn spelled(kind: Kind) -> &'static str {
    match kind {
        Kind::Normal => "normal",
        Kind::Fifo => "fifo",
    }
}

fn unusable(found: &Value, usage: Use) -> Option<String> {
    let (bit, field, what) = match usage {
        Use::Read => (READABLE, "readQueueNums", "read"),
        Use::Write => (WRITABLE, "writeQueueNums", "written to"),
    };
    let perm = number(found, "perm").unwrap_or_default();
    if perm & bit == 0 {
        let wanted = perm | bit;
        return Some(format!(
            "its perm is {perm}, with which it can't be {what}: set it to {wanted}"
        ));
    }
    (number(found, field) == Some(0))
        .then(|| format!("its {field} is 0, and it can't be {what}: give it queues"))
}

/// What is written to queues that are not read stays there.
fn unread(found: &Value) -> Option<String> {
    let (read, written) = (number(found, "readQueueNums")?, number(found, "writeQueueNums")?);
    (read > 0 && written > read).then(|| {
        format!(
            "its readQueueNums is {read} where its writeQueueNums is {written}, and nobody would read the queues \
             beyond: raise readQueueNums to {written}"
        )
    })
}

fn message_type(found: &Value) -> Option<&str> {
    found.get("attributes")?.get(MESSAGE_TYPE)?.as_str()
}

fn number(found: &Value, field: &str) -> Option<u64> {
    found.get(field)?.as_u64()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn topic(kind: Option<&str>, perm: u32, read: u32, write: u32) -> Value {
        let attributes = kind.map(|kind| json!({ MESSAGE_TYPE: kind })).unwrap_or(json!({}));
        json!({
            "topicName": "t", "perm": perm, "readQueueNums": read, "writeQueueNums": write,
            "attributes": attributes,
        })
    }

    /// FR-22: each difference with both values, and a topic that does not say is one for normal messages.
    #[test]
    fn every_difference_of_a_topic_is_named() {
        let cases = [
            (topic(Some(NORMAL), 6, 8, 8), Kind::Normal, Use::Read, vec![]),
            (topic(None, 6, 8, 8), Kind::Normal, Use::Write, vec![]),
            (topic(Some(UNSPECIFIED), 6, 8, 8), Kind::Normal, Use::Read, vec![]),
            (topic(Some(FIFO), 6, 4, 4), Kind::Fifo, Use::Read, vec![]),
            (
                topic(None, 6, 8, 8),
                Kind::Fifo,
                Use::Read,
                vec!["NORMAL where the configuration says FIFO"],
            ),
            (
                topic(Some(FIFO), 6, 8, 8),
                Kind::Normal,
                Use::Read,
                vec!["FIFO where the configuration says NORMAL"],
            ),
            (topic(Some("DELAY"), 6, 8, 8), Kind::Normal, Use::Write, vec!["DELAY where"]),
            (
                topic(None, 2, 8, 8),
                Kind::Normal,
                Use::Read,
                vec!["perm is 2, with which it can't be read: set it to 6"],
            ),
            (topic(None, 2, 8, 8), Kind::Normal, Use::Write, vec![]),
            (
                topic(None, 4, 8, 8),
                Kind::Normal,
                Use::Write,
                vec!["perm is 4, with which it can't be written to"],
            ),
            (topic(None, 6, 0, 8), Kind::Normal, Use::Read, vec!["readQueueNums is 0"]),
            (topic(None, 6, 8, 0), Kind::Normal, Use::Write, vec!["writeQueueNums is 0"]),
            (topic(None, 6, 8, 16), Kind::Normal, Use::Read, vec!["raise readQueueNums to 16"]),
            (topic(None, 6, 8, 16), Kind::Normal, Use::Write, vec![]),
            (topic(None, 2, 8, 8), Kind::Fifo, Use::Read, vec!["NORMAL where", "perm is 2"]),
        ];
        for (found, kind, usage, expected) in cases {
            let differences = differences(&found, kind, usage, "broker-a");
            let fits = differences.len() == expected.len()
                && differences.iter().zip(&expected).all(|(difference, text)| {
                    difference.starts_with("broker broker-a: ") && difference.contains(text)
                });
            assert!(fits, "{differences:#?} where {expected:#?} was expected");
        }
    }

    #[test]
    fn a_topic_says_what_it_promises() {
        let said = |kind| super::kind(&topic(kind, 6, 8, 8));
        assert_eq!((said(Some(FIFO)), said(Some(NORMAL))), (Some(Kind::Fifo), Some(Kind::Normal)));
        assert_eq!((said(None), said(Some("DELAY"))), (None, None));
    }
}
