//! A consumer group: as it is to be made, and how one that is there differs.

use serde_json::{Value, json};

use crate::Kind;

const ENABLED: &str = "consumeEnable";
const ORDERLY: &str = "consumeMessageOrderly";
const RETRIES: &str = "retryMaxTimes";

/// A group as it is to be made; what it does not say is the broker's default.
pub(super) fn wanted(name: &str, kind: Kind) -> Value {
    json!({ "groupName": name, ENABLED: true, ORDERLY: kind == Kind::Fifo })
}

/// Whether a group is among all that a broker has.
pub(super) fn is_among(all: &Value, name: &str) -> bool {
    all.get("subscriptionGroupTable").is_some_and(|table| table.get(name).is_some())
}

/// The most deliveries that clients which keep the group's retry maximum make of a message.
pub(super) fn retry_limit(found: &Value) -> Option<u32> {
    let retries = found.get(RETRIES)?.as_u64()?;
    u32::try_from(retries.checked_add(1)?).ok()
}

/// How a broker's group differs from what is wanted, each difference with what to do.
pub(super) fn differences(found: &Value, name: &str, kind: Kind, broker: &str) -> Vec<String> {
    let at = |text: String| format!("broker {broker}: group {name}: {text}");
    [disabled(found), other_order(found, kind)].into_iter().flatten().map(at).collect()
}

fn disabled(found: &Value) -> Option<String> {
    (!flag(found, ENABLED)).then(|| {
        format!("its {ENABLED} is false where it has to be true, and the broker gives it nothing: set it to true")
    })
}

/// The broker goes by what a pop asks for; other clients of the group go by this.
fn other_order(found: &Value, kind: Kind) -> Option<String> {
    let (is, wanted) = (flag(found, ORDERLY), kind == Kind::Fifo);
    (is != wanted).then(|| {
        format!(
            "its {ORDERLY} is {is} where the configuration says {wanted}: set it to {wanted}, or use another group"
        )
    })
}

fn flag(found: &Value, field: &str) -> bool {
    found.get(field).and_then(Value::as_bool).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FR-22.
    #[test]
    fn every_difference_of_a_group_is_named() {
        let group = |enabled: bool, orderly: bool| json!({ ENABLED: enabled, ORDERLY: orderly });
        let cases = [
            (group(true, false), Kind::Normal, vec![]),
            (group(true, true), Kind::Fifo, vec![]),
            (
                group(true, false),
                Kind::Fifo,
                vec!["consumeMessageOrderly is false where the configuration says true"],
            ),
            (group(true, true), Kind::Normal, vec!["consumeMessageOrderly is true"]),
            (group(false, false), Kind::Normal, vec!["consumeEnable is false"]),
            (group(false, false), Kind::Fifo, vec!["consumeEnable", "consumeMessageOrderly"]),
        ];
        for (found, kind, expected) in cases {
            let differences = differences(&found, "g", kind, "b");
            let fits = differences.len() == expected.len()
                && differences.iter().zip(&expected).all(|(difference, text)| {
                    difference.starts_with("broker b: group g: ") && difference.contains(text)
                });
            assert!(fits, "{differences:#?} where {expected:#?} was expected");
        }
    }

    #[test]
    fn the_retry_maximum_is_told_in_deliveries() {
        let limit = |retries: Value| retry_limit(&json!({ RETRIES: retries }));
        assert_eq!((limit(json!(16)), limit(json!(0))), (Some(17), Some(1)));
        assert_eq!(
            (limit(json!(-1)), limit(json!("x")), retry_limit(&json!({}))),
            (None, None, None)
        );
    }
}
