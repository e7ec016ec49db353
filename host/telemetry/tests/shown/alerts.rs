//! The alert rules that ship (S-7), held to what a host shows.

use std::path::Path;

use crate::scrape::{Scrape, everything};
use pumphouse_telemetry::names;

/// Words of the query language that the rules use.
const WORDS: [&str; 15] = [
    "absent",
    "by",
    "for",
    "group_left",
    "histogram_quantile",
    "ignoring",
    "increase",
    "max",
    "min",
    "on",
    "or",
    "rate",
    "sum",
    "unless",
    "and",
];

struct Alert {
    name: String,
    lines: Vec<String>,
}

impl Alert {
    /// The value of a key, its quotation marks included.
    fn value(&self, key: &str) -> &str {
        let prefix = format!("{key}: ");
        let found = self.lines.iter().find_map(|line| line.strip_prefix(&*prefix));
        found.unwrap_or_else(|| panic!("{} has no {key}", self.name))
    }

    /// The identifiers of the query, without numbers and durations.
    fn identifiers(&self) -> Vec<&str> {
        self.value("expr")
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()))
            .filter(|word| !WORDS.contains(word))
            .collect()
    }

    fn metrics(&self) -> Vec<&str> {
        let ours = |word: &&str| word.starts_with("pumphouse_") || word.starts_with("messaging_");
        self.identifiers().into_iter().filter(ours).collect()
    }

    /// The labels by which the outermost aggregation groups.
    fn groups(&self) -> Vec<&str> {
        let expr = self.value("expr");
        let by = expr.split_once(" by (").map(|(_, rest)| rest.split_once(')').unwrap().0);
        by.map(|labels| labels.split(", ").collect()).unwrap_or_default()
    }

    /// The labels that its texts show.
    fn shown(&self) -> Vec<String> {
        let text = format!("{} {}", self.value("summary"), self.value("description"));
        let labels = text.split("$labels.").skip(1);
        labels
            .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
            .collect()
    }
}

fn alerts() -> Vec<Alert> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/alerts/pumphouse.rules.yml");
    let text = std::fs::read_to_string(path).unwrap();
    let mut alerts: Vec<Alert> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("- alert: ") {
            alerts.push(Alert { name: name.into(), lines: Vec::new() });
        } else if let Some(alert) = alerts.last_mut() {
            alert.lines.push(line.into());
        }
    }
    alerts
}

#[test]
fn each_alert_asks_for_metrics_that_a_host_shows() {
    let scrape = Scrape::of(&everything().encode());
    for alert in alerts() {
        assert!(!alert.metrics().is_empty(), "{} asks for nothing of ours", alert.name);
        for metric in alert.metrics() {
            assert!(scrape.labels(metric).is_some(), "{} asks for {metric}", alert.name);
        }
    }
}

#[test]
fn each_alert_groups_by_labels_that_its_metrics_have_and_shows_no_others() {
    let scrape = Scrape::of(&everything().encode());
    for alert in alerts() {
        let words = alert.identifiers();
        let metrics = alert.metrics();
        for label in words.iter().filter(|word| !metrics.contains(word)) {
            let has =
                |metric: &&str| scrape.labels(metric).is_some_and(|l| l.iter().any(|l| l == label));
            assert!(metrics.iter().any(has), "{}: no metric has {label}", alert.name);
        }
        for label in alert.shown() {
            assert!(alert.groups().contains(&&*label), "{} shows {label}", alert.name);
        }
    }
}

#[test]
fn each_alert_says_how_bad_it_is_and_what_to_do() {
    let alerts = alerts();
    let mut seen: Vec<&str> = Vec::new();
    for alert in &alerts {
        assert!(["warning", "critical"].contains(&alert.value("severity")), "{}", alert.name);
        assert!(!seen.contains(&&*alert.name), "{} is there twice", alert.name);
        seen.push(&alert.name);
    }
    assert!(seen.len() >= 10, "{seen:?}");
}

/// S-7: depth, age and rate of every rejection destination; and the faults of the host that lose or double messages.
#[test]
fn s_7_what_must_not_go_unnoticed_has_an_alert() {
    let alerts = alerts();
    for name in [
        names::DEAD_LETTER_DEPTH,
        names::DEAD_LETTER_OLDEST_AGE,
        names::DEAD_LETTER_MESSAGES,
        names::DEAD_LETTER_PUBLISH_FAILURES,
        names::DISCARDED,
        names::READY,
        names::LEASE_LOST,
        names::FAULTS,
        names::CONFIG_REJECTED,
    ] {
        let asked = alerts.iter().any(|alert| alert.metrics().contains(&name.full));
        assert!(asked, "no alert asks for {}", name.full);
    }
}
