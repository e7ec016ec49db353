//! Google Pub/Sub in the configuration: what is read, what is refused, what is found.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod common;

use std::path::Path;
use std::time::Duration;

use common::{errors, every, found, refused, sound, warnings, with_handler, with_pubsub};
use pumphouse_config::{
    Build, Code, Config, Place, Provision, PubsubMode, PubsubPlace, PubsubSource, Redelivery,
    Secret, UNCOUNTED, parse,
};
use pumphouse_contract::ports::Ordering;
use pumphouse_contract::{Rule, Severity, review};

const S: fn(u64) -> Duration = Duration::from_secs;
const DEAD: &str = "dead_letter = { pubsub.topic = \"orders-dead\" }\n";
const NATIVE: &str =
    "native = { max_delivery_attempts = 5, dead_letter.topic = \"orders-native\" }\n";
const F3: Code = Code::Rule(Rule::F3);
const F5: Code = Code::Rule(Rule::F5);

fn orders(key: &str, code: Code) -> Vec<(String, Code)> {
    let key = if key.is_empty() { String::new() } else { format!(".{key}") };
    vec![(format!("subscriptions.orders{key}"), code)]
}

fn source(config: &Config) -> &PubsubSource {
    config.subscriptions[0].source.pubsub_source().expect("on Pub/Sub")
}

/// A subscription with a policy and a destination, and more keys of the source.
fn sound_source(more: &str) -> String {
    with_pubsub(&format!("subscription = \"orders-work\"{more}"), &format!("{DEAD}{NATIVE}"))
}

#[test]
fn every_key_of_the_section_is_read() {
    let config = sound(
        r#"
        [pubsub]
        project = "example.com:my-project"
        endpoint = "http://127.0.0.1:8085/"
        credentials = { file = "key.json" }
        provision = "assume"
        "#,
    );
    let pubsub = config.pubsub.expect("a section");
    assert_eq!(pubsub.project.as_deref(), Some("example.com:my-project"));
    assert_eq!(pubsub.endpoint.as_deref(), Some("http://127.0.0.1:8085"));
    assert_eq!(pubsub.credentials, Some(Secret::File("conf/key.json".into())));
    assert_eq!(pubsub.provision, Provision::Assume);
    let absent = sound(&sound_source("")).pubsub.expect("used, so there");
    assert_eq!((absent.project, absent.endpoint, absent.credentials), (None, None, None));
    assert_eq!(absent.provision, Provision::Validate);
}

/// C-16: the members.
#[test]
fn every_key_of_a_source_its_destinations_and_its_policy_is_read() {
    let config = sound(&with_pubsub(
        r#"subscription = "projects/p/subscriptions/orders-work", topic = "orders", mode = "pull", ordered = true, retry = { min = "0s", max = "60s" }"#,
        r#"
        dead_letter = { pubsub = { topic = "projects/q/topics/dead", subscription = "dead-kept" } }
        invalid_message = { pubsub.topic = "orders-invalid" }
        provision = "create"
        native = { max_delivery_attempts = 7, dead_letter.topic = "orders-native", publisher_member = "serviceAccount:a", subscriber_member = "serviceAccount:b" }
        "#,
    ));
    let read = source(&config);
    assert_eq!(read.subscription.id, "orders-work");
    assert_eq!(read.subscription.project.as_deref(), Some("p"));
    let topic = read.topic.as_ref().expect("a topic");
    assert_eq!((topic.id.as_str(), &topic.project), ("orders", &None));
    assert_eq!((read.mode, read.ordered), (PubsubMode::Pull, true));
    assert_eq!(read.retry, Some(Redelivery { min: S(0), max: S(60) }));
    let one = &config.subscriptions[0];
    let Some(Place::Pubsub(PubsubPlace::Target(dead))) = &one.dead_letter else {
        panic!("{one:?}")
    };
    assert_eq!(dead.topic.spelled, "projects/q/topics/dead");
    assert_eq!(dead.subscription.as_ref().map(|one| one.id.as_str()), Some("dead-kept"));
    let invalid = one.invalid_message.as_ref().map(Place::spelled);
    assert_eq!(invalid, Some("orders-invalid"));
    assert_eq!(one.provision, Provision::Create);
    let native = one.native.as_ref().expect("a policy");
    assert_eq!(native.limit, 7);
    assert_eq!(native.dead_letter.as_ref().map(Place::spelled), Some("orders-native"));
    assert_eq!(native.publisher_member.as_deref(), Some("serviceAccount:a"));
    assert_eq!(native.subscriber_member.as_deref(), Some("serviceAccount:b"));
}

#[test]
fn the_defaults_of_a_source() {
    let config = sound(&sound_source(""));
    let read = source(&config);
    assert_eq!((read.mode, read.ordered, read.held), (PubsubMode::Stream, false, 1000));
    assert_eq!((&read.topic, read.retry), (&None, None));
    assert_eq!(config.subscriptions[0].source.ordering(), Ordering::None);
    assert_eq!(config.subscriptions[0].provision, Provision::Validate);
    let some = sound(&sound_source(", retry.min = \"5s\", held = 7"));
    assert_eq!(source(&some).retry, Some(Redelivery { min: S(5), max: S(600) }));
    assert_eq!(source(&some).held, 7);
}

/// C-17 is for every source but an ordered stream.
#[test]
fn c_17_the_guard_is_off_on_an_ordered_stream_alone() {
    for (more, guard) in [
        ("", true),
        (", ordered = true", false),
        (", mode = \"pull\"", true),
        (", mode = \"pull\", ordered = true", true),
    ] {
        assert_eq!(sound(&sound_source(more)).subscriptions[0].policy.guard, guard, "{more}");
    }
}

#[test]
fn a_resource_is_spelled_by_googles_rules() {
    let long = "a".repeat(255);
    for good in ["abc", "a-1._~+%", "Orders", &long, "projects/p-1/subscriptions/abc", "a.goog"] {
        let text = with_pubsub(&format!("subscription = \"{good}\""), &format!("{DEAD}{NATIVE}"));
        assert_eq!(errors(&text), [], "{good}");
    }
    let longer = "a".repeat(256);
    for bad in [
        "ab",
        "1ab",
        "-ab",
        "a b c",
        "äbc",
        "goog-orders",
        &longer,
        "projects/p/topics/abc",
        "projects//subscriptions/abc",
        "projects/p/subscriptions/ab",
        "subscriptions/abc",
        "projects/p/subscriptions/abc/d",
    ] {
        let text = with_pubsub(&format!("subscription = \"{bad}\""), "");
        assert_eq!(errors(&text), orders("source.pubsub.subscription", Code::WrongValue), "{bad}");
    }
    let topic = with_pubsub(
        "subscription = \"abc\", topic = \"projects/p/subscriptions/abc\"",
        &format!("{DEAD}{NATIVE}"),
    );
    assert_eq!(errors(&topic), orders("source.pubsub.topic", Code::WrongValue));
    let project = errors("[pubsub]\nproject = \"a b\"\n");
    assert_eq!(project, [("pubsub.project".to_owned(), Code::WrongValue)]);
}

#[test]
fn what_a_source_can_t_be_is_refused() {
    let table = [
        (", mode = \"pull\", held = 5", "source.pubsub.held", Code::Contradiction),
        (
            ", retry = { min = \"2m\", max = \"1m\" }",
            "source.pubsub.retry.min",
            Code::Contradiction,
        ),
        (", retry.max = \"601s\"", "source.pubsub.retry.max", Code::WrongValue),
        (", held = 0", "source.pubsub.held", Code::WrongValue),
        (", mode = \"push\"", "source.pubsub.mode", Code::WrongValue),
        (", orderd = true", "source.pubsub.orderd", Code::UnknownKey),
        (", envelope = \"raw\"", "source.pubsub.envelope", Code::UnknownKey),
    ];
    for (more, key, code) in table {
        assert_eq!(errors(&sound_source(more)), orders(key, code), "{more}");
    }
    let create = sound_source("") + "provision = \"create\"\n";
    assert_eq!(errors(&create), orders("source.pubsub.topic", Code::Missing));
    let suggested = refused(&sound_source(", orderd = true"));
    assert_eq!(suggested.iter().next().expect("one").nearest.as_deref(), Some("ordered"));
    let destination = with_pubsub(
        "subscription = \"abc\"",
        &format!("dead_letter = {{ pubsub.subscription = \"abcd\" }}\n{NATIVE}"),
    );
    assert_eq!(errors(&destination), orders("dead_letter.pubsub.topic", Code::Missing));
    let order = sound_source("") + "ordering = \"key\"\n";
    assert_eq!(errors(&order), orders("ordering", Code::S1));
    assert!(refused(&order).to_string().contains("source.pubsub.ordered = true"));
    assert_eq!(errors(&(sound_source(", ordered = true") + "ordering = \"key\"\n")), []);
}

/// C-15, C-16: the policy is written in its broker's words.
#[test]
fn c_15_a_key_of_another_transports_policy_names_the_right_one() {
    let with = |native: &str| {
        with_pubsub("subscription = \"abc\"", &format!("{DEAD}native = {{ {native} }}\n"))
    };
    let topic = "dead_letter.topic = \"orders-native\"";
    let table: &[(String, &str, Code)] = &[
        (format!("max_delivery_attempts = 4, {topic}"), "max_delivery_attempts", Code::WrongValue),
        (
            format!("max_delivery_attempts = 101, {topic}"),
            "max_delivery_attempts",
            Code::WrongValue,
        ),
        (topic.to_owned(), "max_delivery_attempts", Code::Missing),
        ("max_delivery_attempts = 5".to_owned(), "", Code::Missing),
        (
            format!("max_delivery_attempts = 5, {topic}, publisher_member = \"\""),
            "publisher_member",
            Code::WrongValue,
        ),
        (
            format!("max_delivery_attempts = 5, {topic}, subscriber_member = \"\""),
            "subscriber_member",
            Code::WrongValue,
        ),
        (
            format!("max_delivery_attempts = 5, {topic}, subscriber_member = \" \""),
            "subscriber_member",
            Code::WrongValue,
        ),
    ];
    for (native, key, code) in table {
        let key = if key.is_empty() { "native".to_owned() } else { format!("native.{key}") };
        assert_eq!(errors(&with(native)), orders(&key, *code), "{native}");
    }
    let swapped = refused(&with(&format!("max_receive_count = 5, {topic}")));
    let nearest: Vec<_> = swapped
        .iter()
        .filter(|one| one.severity == Severity::Error)
        .map(|one| (one.key.as_str(), one.nearest.as_deref()))
        .collect();
    let limit = "subscriptions.orders.native.max_receive_count";
    assert!(nearest.contains(&(limit, Some("max_delivery_attempts"))), "{swapped}");
    let queue = refused(&with("max_delivery_attempts = 5, dead_letter.queue = \"q\""));
    let one = queue.iter().find(|one| one.key.ends_with("dead_letter.queue")).expect("one");
    assert_eq!((one.code, one.nearest.as_deref()), (Code::UnknownKey, Some("topic")));
    let sqs = |native: &str| {
        common::with_sqs("queue = \"q\"", &format!("{DEAD}native = {{ {native} }}\n"))
    };
    let attempts = refused(&sqs("max_delivery_attempts = 5"));
    let one = attempts.iter().next().expect("one");
    assert_eq!((one.code, one.nearest.as_deref()), (Code::UnknownKey, Some("max_receive_count")));
    let member = sqs("max_receive_count = 5, publisher_member = \"serviceAccount:a\"");
    assert_eq!(errors(&member), orders("native.publisher_member", Code::UnknownKey));
}

/// S-2, and the lease: Pub/Sub gives ten minutes of each.
#[test]
fn s_2_what_pubsub_can_t_hold_for_so_long_is_refused() {
    let with = |rest: &str| sound_source("") + rest;
    assert_eq!(errors(&with("retry.max_backoff = \"10m\"\n")), []);
    let long = "retry = { backoff = \"1s\", max_backoff = \"11m\" }\n";
    assert_eq!(errors(&with(long)), orders("retry.max_backoff", Code::S2));
    let longer = "retry = { backoff = \"601s\", max_backoff = \"11m\" }\n";
    assert_eq!(errors(&with(longer)), orders("retry.backoff", Code::S2));
    let deadline = |time: &str| with(&format!("[tenants.acme.limits]\ndeadline = \"{time}\"\n"));
    assert_eq!(errors(&deadline("9m31s")), []);
    let key = "tenants.acme.limits.deadline".to_owned();
    assert_eq!(errors(&deadline("9m32s")), [(key, Code::Lease)]);
    let text = refused(&deadline("10m")).to_string();
    assert!(text.contains("pubsub gives at most 10m: the deadline can be at most 9m31s"), "{text}");
}

/// C-8, F-3: without a policy nothing counts; with one F-2 knows M.
#[test]
fn f_2_and_f_3_go_by_the_dead_letter_policy() {
    let text = |native: &str, budget: &str| {
        with_pubsub("subscription = \"orders-work\"", &format!("{DEAD}{native}"))
            .replace("max_deliveries = 3", &format!("max_deliveries = {budget}"))
    };
    let f2 = Code::Rule(Rule::F2);
    assert_eq!(warnings(&text(NATIVE, "3")), []);
    assert_eq!(warnings(&text(NATIVE, "5")), orders("max_deliveries", f2));
    assert_eq!(warnings(&text("", "3")), orders("max_deliveries", F3));
    assert_eq!(warnings(&text("", "1")), [], "a budget of one needs no count");
    let said = found(&text("", "3")).to_string();
    assert!(said.contains(UNCOUNTED) && said.contains("max_deliveries = 3"), "{said}");
    assert_eq!(warnings(&text("", "-1")), orders("", Code::Rule(Rule::F4)));
    // Wrong keys of a policy are said, and not F-3 beside them.
    let wrong = text("native = { max_delivery_attempts = 4, dead_letter.topic = \"abc\" }\n", "3");
    assert_eq!((errors(&wrong).len(), warnings(&wrong)), (1, vec![]));
}

/// F-3: the budget of who reads rejected copies on Pub/Sub, whether the topic is said there or not.
#[test]
fn f_3_and_c_7_a_reader_of_a_rejection_destination() {
    for (dead, read) in [
        ("{ topic = \"dead\" }", "{ subscription = \"dead\" }"),
        ("{ topic = \"dead\", subscription = \"kept\" }", "{ subscription = \"kept\" }"),
        ("{ topic = \"dead\" }", "{ subscription = \"other\", topic = \"dead\" }"),
        (
            "{ topic = \"dead\" }",
            "{ subscription = \"other\", topic = \"projects/p/topics/dead\" }",
        ),
        ("{ topic = \"dead\" }", "{ subscription = \"projects/p/subscriptions/dead\" }"),
    ] {
        let text = with_pubsub(
            "subscription = \"orders-work\"",
            &format!(
                "dead_letter.pubsub = {dead}\n{NATIVE}[subscriptions.second]\nsource.pubsub = {read}\nhandler = \"acme/orders\"\nmax_deliveries = 3\ndead_letter.pubsub.topic = \"deader\"\nnative = {{ max_delivery_attempts = 9, dead_letter.topic = \"deadest\" }}\n"
            ),
        );
        let config = sound(&text);
        let copies: Vec<bool> = config.subscriptions.iter().map(|one| one.reads_copies).collect();
        assert_eq!(copies, [false, true], "{dead} {read}");
        let f3 = ("subscriptions.second.max_deliveries".to_owned(), F3);
        assert_eq!(warnings(&text), [f3], "{dead} {read}");
    }
}

fn rejecting(name: &str, source: &str, dead: &str) -> String {
    format!(
        "[subscriptions.{name}]\nsource.pubsub = {source}\nhandler = \"acme/orders\"\nmax_deliveries = 1\ndead_letter.pubsub = {dead}\n"
    )
}

/// FR-10: a subscription whose topic is its own destination, over two, and by other spellings.
#[test]
fn fr_10_rejected_messages_cannot_circle_on_pubsub() {
    let topics = ["\"orders\"", "\"projects/p/topics/orders\""];
    for from in topics {
        for to in topics {
            for section in ["", "[pubsub]\nproject = \"p\"\n"] {
                let text = with_handler(&rejecting(
                    "a",
                    &format!("{{ subscription = \"work\", topic = {from} }}"),
                    &format!("{{ topic = {to} }}"),
                )) + section;
                let said = errors(&text);
                let expected = [("subscriptions.a.dead_letter".to_owned(), F5)];
                assert_eq!(said, expected, "{from} {to} {section}");
            }
        }
    }
    let pair =
        rejecting("a", "{ subscription = \"work\", topic = \"one\" }", "{ topic = \"two\" }")
            + &rejecting("b", "{ subscription = \"two\" }", "{ topic = \"one\" }");
    let said = refused(&with_handler(&pair));
    let one: Vec<_> = said.iter().filter(|one| one.code == F5).collect();
    assert_eq!(one.len(), 1, "{said}");
    assert!(one[0].message.contains("`a`") && one[0].message.contains("`b`"), "{said}");
    let named = rejecting(
        "a",
        "{ subscription = \"work\" }",
        "{ topic = \"dead\", subscription = \"projects/p/subscriptions/work\" }",
    );
    assert_eq!(errors(&with_handler(&named)).len(), 1);
}

#[test]
fn fr_10_another_project_is_another_topic() {
    let elsewhere = rejecting(
        "a",
        "{ subscription = \"work\", topic = \"orders\" }",
        "{ topic = \"projects/q/topics/orders\" }",
    );
    let known = with_handler(&elsewhere) + "[pubsub]\nproject = \"p\"\n";
    assert_eq!(errors(&known), []);
    let unknown = with_handler(&elsewhere);
    assert_eq!(errors(&unknown).len(), 1, "it may be the same, as far as the file says");
    let said = "{ subscription = \"dead\", topic = \"orders\" }";
    assert_eq!(errors(&with_handler(&rejecting("a", said, "{ topic = \"dead\" }"))), []);
    let native = with_pubsub(
        "subscription = \"work\", topic = \"orders\"",
        &format!(
            "{DEAD}native = {{ max_delivery_attempts = 5, dead_letter.topic = \"orders\" }}\n"
        ),
    );
    assert_eq!(errors(&native), orders("native.dead_letter.topic", F5));
}

/// F-3 at start-up: what the broker says comes over what the file says.
#[test]
fn f_3_the_brokers_word_is_the_last() {
    let without = sound(&with_pubsub("subscription = \"orders-work\"", DEAD));
    let mut facts = without.facts();
    assert_eq!(review(&facts)[0].rule, Rule::F3);
    facts[0].count_stands_still = None;
    facts[0].native_limit = Some(5);
    assert_eq!(review(&facts), []);
    let with = sound(&sound_source(""));
    let mut facts = with.facts();
    assert_eq!(review(&facts), []);
    facts[0].count_stands_still = Some(UNCOUNTED.to_owned());
    assert_eq!(review(&facts)[0].rule, Rule::F3);
}

/// FR-31.
#[test]
fn fr_31_a_changed_section_restarts_what_is_on_pubsub() {
    let one = sound_source("");
    let section = format!("{one}[pubsub]\nproject = \"p\"\n");
    let changes = Config::changes(&sound(&one), &sound(&section));
    assert_eq!(changes.subscriptions.restarted, ["orders"]);
    let mode = Config::changes(&sound(&one), &sound(&sound_source(", mode = \"pull\"")));
    assert_eq!(mode.subscriptions.restarted, ["orders"]);
}

/// S-1: what `check` prints.
#[test]
fn s_1_what_is_in_force_on_pubsub_is_said() {
    let rest = format!("retry.window = \"30m\"\n{DEAD}");
    let said: Vec<String> = [
        with_pubsub("subscription = \"orders-work\", topic = \"orders\"", &(rest.clone() + NATIVE)),
        with_pubsub("subscription = \"orders-work\", mode = \"pull\", ordered = true", &rest),
    ]
    .iter()
    .flat_map(|text| sound(text).effective(&every()))
    .map(|one| one.to_string())
    .collect();
    insta::assert_snapshot!(said.join("\n"));
}

/// A build without the transport says which ones it has, also at its section.
#[test]
fn a_build_without_pubsub_names_what_it_has() {
    let build = Build::new(vec![common::embedded(), common::sqs()]);
    let text = sound_source("") + "[pubsub]\nproject = \"p\"\n";
    let all = parse(&text, Path::new("p.toml"), &build).expect_err("no pubsub");
    let said: Vec<_> = all.iter().filter(|one| one.code == Code::Unsupported).collect();
    let keys: Vec<&str> = said.iter().map(|one| one.key.as_str()).collect();
    assert!(keys.contains(&"pubsub"), "{all}");
    assert!(keys.contains(&"subscriptions.orders.source.pubsub"), "{all}");
    assert_eq!(said[0].message, "this build has no transport `pubsub`");
    assert_eq!(said[0].allowed.as_deref(), Some("`embedded`, `sqs`"));
}

/// What a reader sees of each mistake, without colours.
#[test]
fn mistakes_on_pubsub_are_shown() {
    let text = with_pubsub(
        "subscription = \"ab\", topic = \"goog-orders\", mode = \"strem\", queue = \"q\"",
        "dead_letter = { pubsub.topic = \"projects/p/subscriptions/dead\" }\nnative = { max_receive_count = 3, dead_letter.queue = \"q\", publisher_member = \"\" }\n",
    );
    let policy = sound_source("").replace("max_delivery_attempts", "max_receive_count")
        + "provision = \"create\"\n";
    let uncounted = with_pubsub("subscription = \"orders-work\"", DEAD);
    let shown: Vec<String> =
        [text, policy, uncounted].iter().map(|text| found(text).render(false)).collect();
    insta::assert_snapshot!(shown.join("\n---\n"));
}
