//! Dependencies point inwards: every arrow between the crates of the host is on the map, or this fails.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Which crates of the workspace a crate of the host may lean on.
const MAP: [(&str, &[&str]); 12] = [
    ("pumphouse-contract", &[]),
    ("pumphouse-pump", &["pumphouse-contract"]),
    ("pumphouse-broker", &["pumphouse-contract"]),
    ("pumphouse-sandbox", &["pumphouse-contract"]),
    ("pumphouse-state", &["pumphouse-contract"]),
    ("pumphouse-config", &["pumphouse-contract"]),
    ("pumphouse-telemetry", &["pumphouse-contract"]),
    ("pumphouse-admin", &["pumphouse-contract"]),
    ("pumphouse-sqs", &["pumphouse-contract"]),
    ("pumphouse-pubsub", &["pumphouse-contract"]),
    ("pumphouse-rocketmq", &["pumphouse-contract"]),
    (
        "pumphouse",
        &[
            "pumphouse-admin",
            "pumphouse-broker",
            "pumphouse-config",
            "pumphouse-contract",
            "pumphouse-pubsub",
            "pumphouse-pump",
            "pumphouse-rocketmq",
            "pumphouse-sandbox",
            "pumphouse-sqs",
            "pumphouse-state",
            "pumphouse-telemetry",
        ],
    ),
];

/// What only some crates may lean on, wherever it comes from.
const CONFINED: [(&str, &[&str]); 9] = [
    ("wasmtime", &["pumphouse-sandbox"]),
    ("aws-sdk-sqs", &["pumphouse-sqs"]),
    ("google-cloud-pubsub", &["pumphouse-pubsub"]),
    ("tonic", &["pumphouse-pubsub"]),
    ("rocketmq-client-rust", &["pumphouse-rocketmq"]),
    ("rocketmq-runtime", &["pumphouse-rocketmq"]),
    ("axum", &["pumphouse-admin"]),
    ("anyhow", &["pumphouse"]),
    (
        "tokio",
        &[
            "pumphouse-pump",
            "pumphouse-broker",
            "pumphouse-sandbox",
            "pumphouse-state",
            "pumphouse-admin",
            "pumphouse-sqs",
            "pumphouse-pubsub",
            "pumphouse-rocketmq",
            "pumphouse",
        ],
    ),
];

/// Every crate of the host with what it leans on, its tests aside.
fn leanings() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let of_the_host =
        packages.filter(|one| one["manifest_path"].as_str().unwrap().contains("/host/"));
    of_the_host
        .map(|one| {
            let leans = one["dependencies"].as_array().unwrap().iter();
            let leans = leans.filter(|on| on["kind"].is_null());
            let leans = leans.map(|on| on["name"].as_str().unwrap().to_owned()).collect();
            (one["name"].as_str().unwrap().to_owned(), leans)
        })
        .collect()
}

#[test]
fn every_arrow_is_on_the_map() {
    let leanings = leanings();
    let known: BTreeSet<&str> = MAP.iter().map(|(name, _)| *name).collect();
    assert_eq!(leanings.keys().map(String::as_str).collect::<BTreeSet<_>>(), known);
    for (name, allowed) in MAP {
        let off = leanings[name]
            .iter()
            .filter(|on| on.starts_with("pumphouse") && !allowed.contains(&on.as_str()));
        assert_eq!(
            off.collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "{name} leans on what is not on the map"
        );
    }
}

#[test]
fn what_is_confined_stays_where_it_belongs() {
    for (what, allowed) in CONFINED {
        for (name, leans) in leanings() {
            assert!(
                !leans.contains(what) || allowed.contains(&name.as_str()),
                "{name} leans on {what}, which belongs to {allowed:?}"
            );
        }
    }
}
