//! What is shown of a running host, read as a scraper reads it.

use std::sync::Arc;
use std::time::Duration;

use crate::scrape::{ORDERS, Scrape, everything};
use pumphouse_contract::decide::Why;
use pumphouse_contract::ports::{
    Condition, Depth, Event, Failure, HandlerStatus, Observer, SubscriptionStatus,
};
use pumphouse_contract::{Count, Decision, Destination, FaultKind, Reason, Usage};
use pumphouse_telemetry::{Metrics, Subscription, names};

const SECOND: Duration = Duration::from_secs(1);

fn handled(decision: &Decision, count: u32, fault: Option<FaultKind>) -> Event<'_> {
    Event::Handled { decision, fault, count: Count(count), took: SECOND, usage: Usage::default() }
}

fn recorder(metrics: &Metrics) -> Arc<dyn Observer> {
    metrics.subscription(ORDERS)
}

fn status(name: &str, condition: Condition) -> SubscriptionStatus {
    SubscriptionStatus {
        name: name.into(),
        condition,
        problem: None,
        in_flight: 3,
        oldest_in_progress: Some(Duration::from_millis(2500)),
        handler: "acme/orders".into(),
    }
}

fn handler(problem: Option<&str>) -> HandlerStatus {
    HandlerStatus {
        name: "acme/orders".into(),
        digest: "0123abcd".into(),
        component: "handlers/orders.wasm".into(),
        problem: problem.map(Into::into),
    }
}

#[test]
fn every_name_is_shown_and_nothing_else_is() {
    let text = everything().encode();
    let shown: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert_eq!(shown.len(), names::ALL.len(), "{shown:#?}");
    for name in names::ALL {
        let family = ["_total", "_info"]
            .iter()
            .fold(name.full, |name, suffix| name.strip_suffix(suffix).unwrap_or(name));
        assert!(shown.contains(&family), "{family} is not shown");
        assert!(Scrape::of(&text).has(name.full), "{} has no sample", name.full);
    }
    assert!(text.ends_with("# EOF\n"), "{text}");
}

/// An alert on an increase can only see a first event where the counter was 0 before it.
#[test]
fn counters_are_there_before_anything_happened() {
    let metrics = Metrics::new();
    let _recorder = recorder(&metrics);
    let scrape = Scrape::of(&metrics.encode());
    for (name, labels) in [
        (names::DELIVERIES, r#"outcome="reject",reason="delivery-error",redelivered="true""#),
        (names::FAULTS, r#"kind="deadline""#),
        (names::LEASE_LOST, ""),
        (names::RECEIVE_ERRORS, r#"kind="counter-missing""#),
        (names::SETTLE_FAILURES, r#"action="ack",kind="gone""#),
        (names::DEAD_LETTER_MESSAGES, r#"destination="dead_letter",reason="none""#),
        (
            names::DEAD_LETTER_PUBLISH_FAILURES,
            r#"destination="invalid_message",reason="unacceptable""#,
        ),
        (names::DISCARDED, r#"reason="delivery-error""#),
    ] {
        assert_eq!(scrape.value(name.full, labels), Some(0.0), "{} {labels}", name.full);
    }
}

#[test]
fn each_event_counts_where_it_belongs() {
    let route = Decision::Route(Reason::DeliveryError, Why::Handler("secret text".into()));
    let release = Decision::Release { after: SECOND, shortened: false };
    let gone = Event::Settled { action: "ack", failure: Some(Failure::Gone), took: SECOND };
    let well = Event::Settled { action: "release", failure: None, took: SECOND };
    let (to, reason) = (Destination::DeadLetter, Reason::DeliveryError);
    let table: Vec<(Event<'_>, &[(&str, &str)])> = vec![
        (
            Event::Received { messages: 1, took: SECOND },
            &[
                ("messaging_client_consumed_messages_total", ""),
                (
                    "messaging_client_operation_duration_seconds_count",
                    r#"messaging_operation_name="receive""#,
                ),
            ],
        ),
        (
            Event::ReceiveFailed { kind: "denied", took: SECOND },
            &[
                ("pumphouse_receive_errors_total", r#"kind="denied""#),
                (
                    "messaging_client_operation_duration_seconds_count",
                    r#"messaging_operation_name="receive",error_type="denied""#,
                ),
            ],
        ),
        (
            Event::ReceiveFailed { kind: "never heard of", took: SECOND },
            &[("pumphouse_receive_errors_total", r#"kind="other""#)],
        ),
        (Event::ReceiveStalled, &[("pumphouse_receive_stalls_total", "")]),
        (
            handled(&Decision::Ack, 0, None),
            &[
                ("pumphouse_deliveries_total", r#"outcome="ack",redelivered="false""#),
                (
                    "messaging_process_duration_seconds_count",
                    r#"messaging_operation_name="process""#,
                ),
                ("messaging_process_duration_seconds_sum", r#"messaging_operation_name="process""#),
                ("pumphouse_delivery_count_bucket", r#"le="0.0""#),
            ],
        ),
        (
            handled(&release, 2, Some(FaultKind::Deadline)),
            &[
                ("pumphouse_deliveries_total", r#"outcome="defer",redelivered="true""#),
                ("pumphouse_faults_total", r#"kind="deadline""#),
                ("messaging_process_duration_seconds_count", r#"error_type="deadline""#),
                ("pumphouse_delivery_count_count", ""),
            ],
        ),
        (
            handled(&route, 9, None),
            &[(
                "pumphouse_deliveries_total",
                r#"outcome="reject",reason="delivery-error",redelivered="true""#,
            )],
        ),
        (
            Event::Turned { reason: Reason::Unacceptable },
            &[("pumphouse_deliveries_total", r#"outcome="reject",reason="unacceptable""#)],
        ),
        (
            Event::Duplicate,
            &[
                ("pumphouse_deliveries_total", r#"outcome="duplicate""#),
                ("pumphouse_dedup_hits_total", ""),
            ],
        ),
        (
            Event::GivenBack,
            &[
                ("pumphouse_deliveries_total", r#"outcome="given_back""#),
                ("pumphouse_given_back_total", ""),
            ],
        ),
        (Event::DelayShortened, &[("pumphouse_delays_shortened_total", "")]),
        (
            Event::Routed { to, reason, took: SECOND },
            &[
                (
                    "pumphouse_dead_letter_messages_total",
                    r#"destination="dead_letter",reason="delivery-error""#,
                ),
                ("messaging_client_sent_messages_total", ""),
                (
                    "messaging_client_operation_duration_seconds_count",
                    r#"messaging_operation_name="send""#,
                ),
            ],
        ),
        (
            Event::RouteFailed { to, reason },
            &[(
                "pumphouse_dead_letter_publish_failures_total",
                r#"destination="dead_letter",reason="delivery-error""#,
            )],
        ),
        (
            Event::Discarded { reason },
            &[("pumphouse_discarded_messages_total", r#"reason="delivery-error""#)],
        ),
        (
            gone,
            &[
                ("pumphouse_settle_failures_total", r#"action="ack",kind="gone""#),
                ("pumphouse_lease_lost_total", ""),
                (
                    "messaging_client_operation_duration_seconds_count",
                    r#"messaging_operation_name="settle",error_type="gone""#,
                ),
            ],
        ),
        (
            well,
            &[(
                "messaging_client_operation_duration_seconds_count",
                r#"messaging_operation_name="settle""#,
            )],
        ),
    ];
    for (event, expected) in table {
        let metrics = Metrics::new();
        recorder(&metrics).record(event.clone());
        let text = metrics.encode();
        assert!(!text.contains("secret") && !text.contains("never heard"), "{text}");
        let scrape = Scrape::of(&text);
        for (name, labels) in expected {
            assert_eq!(scrape.value(name, labels), Some(1.0), "{event:?}: {name} {labels}");
        }
        // Nothing else was counted: no delivery twice, no error for a success.
        let counted = |(name, _): &(&str, &str)| name.ends_with("_total");
        let counters = expected.iter().filter(|e| counted(e)).count();
        assert_eq!(scrape.counted(), counters, "{event:?}\n{text}");
    }
}

#[test]
fn a_batch_counts_each_of_its_messages() {
    let metrics = Metrics::new();
    let recorder = recorder(&metrics);
    for messages in [10, 0, 7] {
        recorder.record(Event::Received { messages, took: SECOND });
    }
    let scrape = Scrape::of(&metrics.encode());
    assert_eq!(scrape.value(names::CONSUMED_MESSAGES.full, ""), Some(17.0));
}

/// A native handler is not measured; that says nothing about how little it needs.
#[test]
fn only_what_was_measured_is_shown() {
    let metrics = Metrics::new();
    let recorder = recorder(&metrics);
    recorder.record(handled(&Decision::Ack, 0, None));
    let usage = Usage {
        cpu: Duration::from_micros(30),
        memory_peak: 1 << 20,
        instantiation: Duration::from_micros(5),
        ..Usage::default()
    };
    let decision = &Decision::Ack;
    recorder.record(Event::Handled { decision, fault: None, count: Count(0), took: SECOND, usage });
    let scrape = Scrape::of(&metrics.encode());
    for (name, labels) in [
        ("pumphouse_guest_cpu_time_seconds_count", ""),
        ("pumphouse_guest_memory_peak_bytes_count", ""),
        ("pumphouse_guest_memory_peak_bytes_bucket", r#"le="1048576.0""#),
        ("pumphouse_guest_instantiation_duration_seconds_bucket", r#"le="0.00001""#),
    ] {
        assert_eq!(scrape.value(name, labels), Some(1.0), "{name} {labels}");
    }
}

#[test]
fn recorders_on_many_threads_lose_nothing() {
    let metrics = Metrics::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let recorder = recorder(&metrics);
                for count in 0..10_000 {
                    recorder.record(handled(&Decision::Ack, count % 3, None));
                }
            });
        }
        for _ in 0..20 {
            assert!(metrics.encode().ends_with("# EOF\n"));
        }
    });
    let scrape = Scrape::of(&metrics.encode());
    assert_eq!(scrape.value("messaging_process_duration_seconds_count", ""), Some(40_000.0));
    assert_eq!(scrape.value("messaging_process_duration_seconds_sum", ""), Some(40_000.0));
    let first = scrape.value("pumphouse_deliveries_total", r#"outcome="ack",redelivered="false""#);
    assert_eq!(first, Some(13_336.0));
}

#[test]
fn what_is_sampled_is_replaced_as_a_whole() {
    let metrics = Metrics::new();
    let both = [status("orders", Condition::Running), status("returns", Condition::Waiting)];
    metrics.refresh(&both, &[handler(Some("not a component"))], true);
    let depth = Depth { messages: Some(12), oldest_age: None };
    metrics.depth("orders", Destination::DeadLetter, depth);
    metrics.depth("returns", Destination::InvalidMessage, depth);
    metrics.held("orders", 7);
    metrics.held("returns", 8);
    metrics.delivered_again("orders", 2);
    metrics.delivered_again("returns", 3);
    let scrape = Scrape::of(&metrics.encode());
    for (name, labels, value) in [
        ("pumphouse_inflight", r#"subscription="orders""#, Some(3.0)),
        ("pumphouse_oldest_in_progress_age_seconds", r#"subscription="orders""#, Some(2.5)),
        ("pumphouse_held", r#"subscription="orders""#, Some(7.0)),
        ("pumphouse_delivered_again_total", r#"subscription="orders""#, Some(2.0)),
        ("pumphouse_subscription_ready", r#"subscription="orders""#, Some(1.0)),
        ("pumphouse_subscription_ready", r#"subscription="returns""#, Some(0.0)),
        (
            "pumphouse_dead_letter_depth",
            r#"subscription="orders",destination="dead_letter""#,
            Some(12.0),
        ),
        ("pumphouse_dead_letter_oldest_age_seconds", "", None),
        (
            "pumphouse_handler_version_info",
            r#"handler="acme/orders",version="0123abcd""#,
            Some(1.0),
        ),
        ("pumphouse_handler_update_rejected", r#"handler="acme/orders""#, Some(1.0)),
        ("pumphouse_config_rejected", "", Some(1.0)),
    ] {
        assert_eq!(scrape.value(name, labels), value, "{name} {labels}");
    }
    metrics.refresh(&[status("orders", Condition::Draining)], &[], false);
    let scrape = Scrape::of(&metrics.encode());
    for (name, labels, value) in [
        ("pumphouse_subscription_ready", r#"subscription="orders""#, Some(0.0)),
        ("pumphouse_subscription_ready", r#"subscription="returns""#, None),
        ("pumphouse_held", r#"subscription="orders""#, Some(7.0)),
        ("pumphouse_delivered_again_total", r#"subscription="orders""#, Some(2.0)),
        ("pumphouse_held", r#"subscription="returns""#, None),
        ("pumphouse_delivered_again_total", r#"subscription="returns""#, None),
        ("pumphouse_dead_letter_depth", r#"subscription="orders""#, Some(12.0)),
        ("pumphouse_dead_letter_depth", r#"subscription="returns""#, None),
        ("pumphouse_handler_version_info", "", None),
        ("pumphouse_config_rejected", "", Some(0.0)),
    ] {
        assert_eq!(scrape.value(name, labels), value, "{name} {labels} after the second look");
    }
}

/// FR-31: a good reload goes on counting where the old configuration stopped.
#[test]
fn fr_31_a_reload_goes_on_counting() {
    let metrics = Metrics::new();
    for _ in 0..2 {
        recorder(&metrics).record(Event::Duplicate);
    }
    let scrape = Scrape::of(&metrics.encode());
    assert_eq!(scrape.value(names::DEDUP_HITS.full, ""), Some(2.0));
}

#[test]
fn an_odd_name_can_not_break_a_line() {
    let metrics = Metrics::new();
    let name = "or\"ders\\\nforged 1";
    let _recorder = metrics.subscription(Subscription { name, ..ORDERS });
    metrics.refresh(&[status(name, Condition::Running)], &[], false);
    let text = metrics.encode();
    assert!(text.lines().all(|line| !line.starts_with("forged")), "{text}");
    assert!(text.contains(r#"subscription="or\"ders\\\nforged 1""#), "{text}");
}

/// What a tenant and its handlers used, under their names; limits by their keys.
#[test]
fn an_account_is_shown_by_tenant_and_handler() {
    let metrics = everything();
    let scrape = Scrape::of(&metrics.encode());
    let ours = r#"tenant="acme",handler="acme/orders""#;
    for (name, more, value) in [
        ("pumphouse_guest_calls_total", r#"outcome="ack""#, Some(1.0)),
        ("pumphouse_guest_calls_total", r#"outcome="fault""#, Some(1.0)),
        ("pumphouse_guest_calls_total", r#"outcome="defer""#, Some(0.0)),
        ("pumphouse_guest_faults_total", r#"kind="memory""#, Some(1.0)),
        ("pumphouse_guest_faults_total", r#"kind="trap""#, None),
        ("pumphouse_guest_limit_trips_total", r#"limit="memory""#, Some(1.0)),
        ("pumphouse_guest_cpu_seconds_total", "", Some(0.0)),
    ] {
        assert_eq!(scrape.value(name, &format!("{ours},{more}")), value, "{name} {more}");
    }
    assert_eq!(scrape.value("pumphouse_tenant_slowed", r#"tenant="acme""#), Some(1.0));
}

/// Ten thousand handlers: a bounded number of series, and the rest in one sum.
#[test]
fn ten_thousand_handlers_make_no_more_series_than_was_said() {
    let metrics = Metrics::with_handlers(10);
    let handlers: Vec<HandlerStatus> = (0..10_000)
        .map(|n| HandlerStatus { name: format!("acme/h{n}"), ..handler(Some("not a component")) })
        .collect();
    metrics.refresh(&[], &handlers, false);
    let text = metrics.encode();
    let lines = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!(lines("pumphouse_handler_version_info{"), 10);
    assert_eq!(lines("pumphouse_handler_update_rejected{"), 11);
    let others =
        Scrape::of(&text).value("pumphouse_handler_update_rejected", r#"handler="_other""#);
    assert_eq!(others, Some(9_990.0));
}
