//! No text makes the reader panic, and whatever it finds can be shown.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod common;

use common::{found, line_of, read, with_pubsub, with_rocketmq, with_sqs};
use proptest::prelude::*;
use pumphouse_config::KEYS;

/// Reads, and shows what is found: neither may panic.
fn survives(text: &str) {
    match read(text) {
        Ok(loaded) => drop((loaded.warnings.render(false), loaded.config.facts())),
        Err(found) => drop((found.render(false), found.to_string())),
    }
}

/// Words, signs and values of configurations, so that many of their sequences are TOML.
fn piece() -> impl Strategy<Value = String> {
    let names: Vec<String> = KEYS
        .iter()
        .flat_map(|key| [key.path.replace(['<', '>', '[', ']'], ""), last(key.path)])
        .collect();
    let signs = ["=", ".", ",", "{", "}", "[", "]", "[[", "]]", "\n", " ", "#", "\"", "'''", "\\"];
    let values = [
        "\"1s\"",
        "\"64MiB\"",
        "-1",
        "3",
        "true",
        "\"a\"",
        "\"acme/orders\"",
        "1e9",
        "ä",
        "\u{feff}",
        "\r\n",
    ];
    let fixed = signs.iter().chain(&values).map(|text| (*text).to_owned());
    prop::sample::select(names.into_iter().chain(fixed).collect::<Vec<_>>())
}

fn last(path: &str) -> String {
    path.rsplit('.').next().unwrap_or(path).replace(['<', '>'], "")
}

/// One line that is TOML, of a real key and some value.
fn line() -> impl Strategy<Value = String> {
    let paths: Vec<String> = KEYS.iter().map(|key| key.path.replace(['<', '>'], "")).collect();
    let value = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<bool>().prop_map(|b| b.to_string()),
        "[a-zA-Z0-9:/. -]{0,12}".prop_map(|text| format!("{text:?}")),
        any::<String>().prop_map(|text| format!("{text:?}")),
        Just("{ env = \"A\" }".to_owned()),
        Just("[1, [2], {}]".to_owned()),
    ];
    (prop::sample::select(paths), value).prop_map(|(path, value)| line_of(&path, value).0)
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        survives(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_sequence_of_pieces_is_survived(pieces in prop::collection::vec(piece(), 0..60)) {
        survives(&pieces.concat());
        survives(&pieces.join(" "));
    }

    #[test]
    fn any_keys_with_any_values_are_survived(lines in prop::collection::btree_set(line(), 0..20)) {
        survives(&lines.into_iter().collect::<String>());
    }

    #[test]
    fn a_cut_or_changed_configuration_is_survived(at in 0usize..400, piece in piece(), cut in any::<bool>()) {
        let whole = with_sqs("queue = \"q\", topic = \"t\"", "deduplicate = { ttl = \"1h\" }\nretry.window = \"1m\"\n");
        let at = whole.floor_char_boundary(at);
        let (before, after) = whole.split_at(at);
        survives(&format!("{before}{piece}{}", if cut { "" } else { after }));
    }

    #[test]
    fn a_cut_or_changed_one_on_pubsub_is_survived(at in 0usize..400, piece in piece(), cut in any::<bool>()) {
        let rest = "dead_letter.pubsub = { topic = \"dead\", subscription = \"kept\" }\nnative = { max_delivery_attempts = 5, dead_letter.topic = \"native\" }\n";
        let whole = with_pubsub("subscription = \"projects/p/subscriptions/abc\", topic = \"abc\", ordered = true", rest);
        let at = whole.floor_char_boundary(at);
        let (before, after) = whole.split_at(at);
        survives(&format!("{before}{piece}{}", if cut { "" } else { after }));
    }

    #[test]
    fn a_cut_or_changed_one_on_rocketmq_is_survived(at in 0usize..400, piece in piece(), cut in any::<bool>()) {
        let rest = "dead_letter.rocketmq = { topic = \"dead\", kind = \"normal\" }\nnative = { max_receive_count = 5 }\n";
        let whole = with_rocketmq("topic = \"a\", group = \"b\", kind = \"fifo\", tags = \"a || b\"", rest);
        let at = whole.floor_char_boundary(at);
        let (before, after) = whole.split_at(at);
        survives(&format!("{before}{piece}{}", if cut { "" } else { after }));
    }

    /// Every finding lies within the file.
    #[test]
    fn every_finding_has_a_place_in_the_file(lines in prop::collection::btree_set(line(), 1..10)) {
        let text: String = lines.into_iter().collect();
        for one in &found(&text) {
            prop_assert!(one.line >= 1 && one.line <= text.lines().count() + 1, "{one}");
            prop_assert!(text.get(one.span.clone()).is_some(), "{one}");
        }
    }
}
