//! The documentation is held to the table of keys.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::path::Path;

use pumphouse_config::KEYS;

fn documented() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let text = std::fs::read_to_string(path).expect("docs/configuration.md");
    text.lines().filter(|line| line.starts_with("| `")).map(str::to_owned).collect()
}

/// Every key stands in the documentation once, with what it takes, its default and its meaning, and no other.
#[test]
fn every_key_is_documented_as_it_is() {
    let documented = documented();
    let mut expected: Vec<String> = KEYS
        .iter()
        .map(|key| format!("| `{}` | {} | {} | {} |", key.path, key.kind, key.given, key.meaning))
        .collect();
    for line in &expected {
        assert!(documented.contains(line), "missing, or not so:\n{line}");
    }
    let mut documented = documented;
    documented.sort();
    expected.sort();
    assert_eq!(documented, expected, "there are keys that don't exist, or twice");
}
