//! The configuration: any text is a configuration or a list of findings, each in the text, and both can be shown.

use std::path::Path;
use std::time::Duration;

use pumphouse_config::{Build, TransportFacts, parse};
use pumphouse_contract::ports::Counter;

/// Reads a configuration of any text.
///
/// # Panics
/// Where a refusal has no error in it, or one that lies outside the text.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let build = build();
    match parse(&text, Path::new("fuzzed.toml"), &build) {
        Ok(loaded) => {
            assert_eq!(loaded.warnings.errors(), 0);
            let rows: Vec<_> =
                loaded.config.effective(&build).iter().map(|one| one.rows()).collect();
            std::hint::black_box((rows, loaded.config.facts()));
            assert!(pumphouse_config::Config::changes(&loaded.config, &loaded.config).is_empty());
        }
        Err(found) => {
            assert!(found.errors() > 0, "refused without an error");
            let lines = text.split('\n').count();
            assert!(found.iter().all(|one| one.line <= lines + 1), "{found}");
            assert!(!found.render(false).is_empty());
        }
    }
}

fn build() -> Build {
    let facts = |key, counter| TransportFacts {
        key,
        longest_lease: Duration::from_secs(43_200),
        longest_delay: Duration::from_secs(43_200),
        delay_counts_from_receive: key == "sqs",
        settle_linger: Duration::from_millis(5),
        counter,
        native_policy: key != "embedded",
    };
    Build::new(vec![
        TransportFacts::new("embedded", &pumphouse_broker::CAPABILITIES, false),
        facts("sqs", Counter::Approximate),
        facts("pubsub", Counter::Approximate),
        facts("rocketmq", Counter::Approximate),
    ])
}
