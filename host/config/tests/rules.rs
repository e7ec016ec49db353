//! The rules over a whole configuration: S-1, S-2, FR-09, FR-10, F-1 to F-7, leases.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod common;

use common::{errors, found, refused, warnings, with_handler, with_sqs, with_subscription};
use pumphouse_config::Code;
use pumphouse_contract::Rule;

fn orders(key: &str, code: Code) -> Vec<(String, Code)> {
    let key = if key.is_empty() { String::new() } else { format!(".{key}") };
    vec![(format!("subscriptions.orders{key}"), code)]
}

/// S-1: what is declared and can't be given is refused; what can be is taken.
#[test]
fn s_1_semantics_that_can_t_be_given_are_refused() {
    let s1 = Code::S1;
    assert_eq!(
        errors(&with_subscription("semantics = \"deduplicated\"\n")),
        orders("semantics", s1)
    );
    let given = "semantics = \"deduplicated\"\ndeduplicate = {}\nordering = \"key\"\n";
    assert_eq!(errors(&with_subscription(given)), []);
    assert_eq!(
        errors(&with_subscription("semantics = \"at-least-once\"\nordering = \"none\"\n")),
        []
    );
    let dead = "dead_letter = { sqs.queue = \"d\" }\nordering = \"key\"\n";
    assert_eq!(errors(&with_sqs("queue = \"q\"", dead)), orders("ordering", s1));
    assert_eq!(errors(&with_sqs("queue = \"q.fifo\"", &dead.replace("\"d\"", "\"d.fifo\""))), []);
    for never in ["exactly-once", "at-most-once"] {
        let said = errors(&with_subscription(&format!("semantics = \"{never}\"\n")));
        assert_eq!(said, orders("semantics", Code::WrongValue));
    }
}

/// S-2: on SQS a delay counts from the receive, so the handler's time is taken from it.
#[test]
fn s_2_a_delay_that_the_broker_can_t_give_is_refused() {
    let retry = |max: &str| {
        format!("dead_letter = {{ sqs.queue = \"d\" }}\nretry.max_backoff = \"{max}\"\n")
    };
    let s2 = orders("retry.max_backoff", Code::S2);
    assert_eq!(errors(&with_sqs("queue = \"q\"", &retry("12h"))), s2);
    assert_eq!(errors(&with_sqs("queue = \"q\"", &retry("11h59m31s"))), s2);
    assert_eq!(errors(&with_sqs("queue = \"q\"", &retry("11h59m30s"))), []);
    assert_eq!(errors(&with_subscription("retry.max_backoff = \"24h\"\n")), []);
    assert_eq!(errors(&with_subscription("retry.max_backoff = \"25h\"\n")), s2);
}

/// A deadline whose lease the broker can't give is refused where the deadline is written.
#[test]
fn a_lease_longer_than_the_brokers_is_refused() {
    let with = |deadline: &str| {
        with_subscription(&format!(
            "[tenants.acme.handlers.orders.limits]\ndeadline = \"{deadline}\"\n"
        ))
    };
    let own = "tenants.acme.handlers.orders.limits.deadline".to_owned();
    assert_eq!(errors(&with("12h")), [(own, Code::Lease)]);
    assert_eq!(errors(&with("11h59m32s")), []);
    let tenants = with_subscription("[tenants.acme.limits]\ndeadline = \"12h\"\n");
    assert_eq!(errors(&tenants), [("tenants.acme.limits.deadline".to_owned(), Code::Lease)]);
    let text = refused(&tenants).to_string();
    assert!(text.contains("at most 12h: the deadline can be at most 11h59m32s"), "{text}");
}

/// FR-09.
#[test]
fn fr_09_fifo_and_standard_queues_don_t_mix() {
    for (source, to) in [("q.fifo", "d"), ("q", "d.fifo")] {
        for key in ["dead_letter", "invalid_message"] {
            let rest = format!("{key} = {{ sqs.queue = \"{to}\" }}\n");
            let said = errors(&with_sqs(&format!("queue = \"{source}\""), &rest));
            assert_eq!(said, orders(key, Code::Contradiction), "{source} {key}");
        }
    }
    let other = "dead_letter = { embedded.queue = \"d\" }\n";
    assert_eq!(errors(&with_sqs("queue = \"q.fifo\"", other)), []);
}

fn subscription(name: &str, source: &str, dead_letter: &str) -> String {
    format!(
        "[subscriptions.{name}]\nsource = {source}\nhandler = \"acme/orders\"\nmax_deliveries = 1\ndead_letter = {dead_letter}\n"
    )
}

/// FR-10: four configurations, all refused, each naming its pumps.
#[test]
fn fr_10_rejected_messages_cannot_circle() {
    let queue = |name: &str| format!("{{ sqs.queue = \"{name}\" }}");
    let f5 = Code::Rule(Rule::F5);
    let own = subscription("a", &queue("q"), &queue("q"));
    let pair =
        subscription("a", &queue("q"), &queue("r")) + &subscription("b", &queue("r"), &queue("q"));
    let reader = subscription("a", &queue("q"), &queue("dead"))
        + &subscription("b", &queue("dead"), &queue("dead"));
    for (text, named) in [(own, vec!["`a`"]), (pair, vec!["`a`", "`b`"]), (reader, vec!["`b`"])] {
        let said = refused(&with_handler(&text));
        let one: Vec<_> = said.iter().filter(|one| one.code == f5).collect();
        assert_eq!(one.len(), 1, "{said}");
        assert!(one[0].key.ends_with(".dead_letter"), "{said}");
        assert!(named.iter().all(|name| one[0].message.contains(name)), "{said}");
    }
    let spellings = [
        "q",
        "https://sqs.eu-west-1.amazonaws.com/123456789012/q",
        "http://127.0.0.1:9324/123456789012/q/",
        "arn:aws:sqs:eu-west-1:123456789012:q",
    ];
    for from in spellings {
        for to in spellings {
            let said = errors(&with_handler(&subscription("a", &queue(from), &queue(to))));
            assert_eq!(said, [("subscriptions.a.dead_letter".to_owned(), f5)], "{from} {to}");
        }
    }
    let elsewhere = "arn:aws:sqs:eu-west-1:210987654321:q";
    let other_account = subscription("a", &queue(spellings[3]), &queue(elsewhere));
    assert_eq!(errors(&with_handler(&other_account)), []);
}

/// FR-10, by the other destination.
#[test]
fn fr_10_the_invalid_message_destination_circles_too() {
    let said = errors(&with_subscription("invalid_message = { embedded.queue = \"orders\" }\n"));
    assert_eq!(said, orders("invalid_message", Code::Rule(Rule::F5)));
}

/// C-15.
#[test]
fn c_15_a_native_policy_is_the_sources_brokers() {
    let native = |rest: &str| {
        with_sqs("queue = \"q\"", &format!("dead_letter = {{ sqs.queue = \"d\" }}\n{rest}"))
    };
    assert_eq!(errors(&native("native = { max_receive_count = 9 }\n")), []);
    let create = "provision = \"create\"\nnative = { max_receive_count = 9 }\n";
    assert_eq!(errors(&native(create)), orders("native", Code::Missing));
    let own = "native = { max_receive_count = 9, dead_letter.queue = \"q\" }\n";
    assert_eq!(errors(&native(own)), orders("native.dead_letter.queue", Code::Rule(Rule::F5)));
    let mixed = "native = { max_receive_count = 9, dead_letter.queue = \"n.fifo\" }\n";
    assert_eq!(errors(&native(mixed)), orders("native.dead_letter", Code::Contradiction));
    assert_eq!(errors(&native("native = {}\n")), orders("native.max_receive_count", Code::Missing));
    let embedded = with_subscription("native = { max_receive_count = 9 }\n");
    assert_eq!(errors(&embedded), orders("native", Code::Unsupported));
}

/// The warnings of the contract, each at the key that it is about.
#[test]
fn a_finding_is_shown_at_its_key() {
    let rule = Code::Rule;
    let table = [
        (with_subscription("").replace("= 3", "= 0"), orders("max_deliveries", rule(Rule::F1))),
        (with_subscription("").replace("= 3", "= -7"), orders("max_deliveries", rule(Rule::F1))),
        (
            with_sqs(
                "queue = \"q\"",
                "dead_letter = { sqs.queue = \"d\" }\nnative = { max_receive_count = 3 }\n",
            ),
            orders("max_deliveries", rule(Rule::F2)),
        ),
        (with_subscription("rejected = true\n"), orders("max_deliveries", rule(Rule::F3))),
        (with_subscription("").replace("max_deliveries = 3\n", ""), orders("", rule(Rule::F4))),
        (
            with_subscription("").replace("dead_letter = { embedded.queue = \"dead\" }\n", ""),
            orders("", rule(Rule::F5)),
        ),
        (with_subscription("retry.backoff = \"0s\"\n"), orders("retry.backoff", rule(Rule::F6))),
        (
            with_subscription("retry.window = \"1h\"\ndeduplicate.ttl = \"30m\"\n"),
            orders("deduplicate.ttl", rule(Rule::F7)),
        ),
    ];
    for (text, expected) in table {
        assert_eq!((errors(&text), warnings(&text)), (vec![], expected), "{text}");
    }
    assert!(found(&with_subscription("")).is_empty());
}

/// A finding that only follows from a mistake is not said beside it.
#[test]
fn a_mistake_is_said_once() {
    let misspelt = with_subscription("").replace("dead_letter", "dead_leter");
    assert_eq!(
        (errors(&misspelt), warnings(&misspelt)),
        (orders("dead_leter", Code::UnknownKey), vec![])
    );
    let text = with_subscription("").replace("= 3", "= \"3\"");
    assert_eq!(
        (errors(&text), warnings(&text)),
        (orders("max_deliveries", Code::WrongType), vec![])
    );
}

#[test]
fn an_admin_listener_that_others_reach_is_warned_about() {
    let exposed = |listen: &str| warnings(&format!("[host]\nadmin.listen = \"{listen}\"\n"));
    assert_eq!(exposed("0.0.0.0:9180"), [("host.admin.listen".to_owned(), Code::Exposed)]);
    assert_eq!(exposed("[::]:9180").len(), 1);
    for own in ["127.0.0.1:9180", "[::1]:9180", "off"] {
        assert_eq!(exposed(own), [], "{own}");
    }
}
