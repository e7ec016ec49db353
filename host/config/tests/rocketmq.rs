//! Apache RocketMQ in the configuration: what is read, what is refused, what is found.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod common;

use std::path::Path;

use common::{errors, every, found, refused, sound, warnings, with_handler, with_rocketmq};
use pumphouse_config::{
    Access, Build, Code, Config, Place, Provision, RocketmqPlace, Secret, Setting, Tls, TopicKind,
    load, parse,
};
use pumphouse_contract::ports::Ordering;
use pumphouse_contract::{Rule, review};

const DEAD: &str = "dead_letter = { rocketmq.topic = \"orders-dead\" }\n";
const F5: Code = Code::Rule(Rule::F5);

fn orders(key: &str, code: Code) -> Vec<(String, Code)> {
    let key = if key.is_empty() { String::new() } else { format!(".{key}") };
    vec![(format!("subscriptions.orders{key}"), code)]
}

fn source(config: &Config) -> &RocketmqPlace {
    config.subscriptions[0].source.rocketmq().expect("on RocketMQ")
}

/// A subscription with a destination, and more keys of the source.
fn sound_source(more: &str) -> String {
    with_rocketmq(&format!("topic = \"orders\", group = \"orders-work\"{more}"), DEAD)
}

/// The section alone.
fn section(keys: &str) -> String {
    format!("[rocketmq]\nname_servers = [\"mq:9876\"]\n{keys}\n")
}

#[test]
fn every_key_of_the_section_is_read() {
    let config = sound(
        r#"
        [rocketmq]
        name_servers = ["127.0.0.1:9876", "mq-2.example.com:9876", "[::1]:9876"]
        namespace = "acme"
        access = { key = "pumphouse", secret = { file = "secret.txt" } }
        tls = { trust = "ca.pem", certificate = "me.pem", key = "/keys/me.pem" }
        provision = "assume"
        "#,
    );
    let rocketmq = config.rocketmq.expect("a section");
    let servers = ["127.0.0.1:9876", "mq-2.example.com:9876", "[::1]:9876"];
    assert_eq!(rocketmq.name_servers, servers);
    assert_eq!(rocketmq.namespace.as_deref(), Some("acme"));
    let access = Access {
        key: Setting::Text("pumphouse".into()),
        secret: Secret::File("conf/secret.txt".into()),
    };
    assert_eq!(rocketmq.access, Some(access));
    let tls = Tls {
        trust: Some("conf/ca.pem".into()),
        certificate: Some("conf/me.pem".into()),
        key: Some("/keys/me.pem".into()),
    };
    assert_eq!(rocketmq.tls, Some(tls));
    assert_eq!(rocketmq.provision, Provision::Assume);
}

#[test]
fn the_defaults_of_the_section() {
    let rocketmq = sound(&sound_source("")).rocketmq.expect("there");
    assert_eq!((rocketmq.namespace, rocketmq.access, rocketmq.tls), (None, None, None));
    assert_eq!(rocketmq.provision, Provision::Validate);
    let encrypted = sound(&section("tls = {}")).rocketmq.expect("there");
    assert_eq!(encrypted.tls, Some(Tls::default()));
    assert_eq!(sound("").rocketmq, None, "where it is not used nothing is missing");
}

#[test]
fn what_the_section_can_t_be_is_refused() {
    let table = [
        ("[rocketmq]\n".to_owned(), "name_servers", Code::Missing),
        ("[rocketmq]\nname_servers = []\n".to_owned(), "name_servers", Code::WrongValue),
        ("[rocketmq]\nname_servers = \"mq:9876\"\n".to_owned(), "name_servers", Code::WrongType),
        ("[rocketmq]\nname_servers = [\"mq\"]\n".to_owned(), "name_servers", Code::WrongValue),
        ("[rocketmq]\nname_servers = [\"mq:0\"]\n".to_owned(), "name_servers", Code::WrongValue),
        ("[rocketmq]\nname_servers = [\"a;b:1\"]\n".to_owned(), "name_servers", Code::WrongValue),
        ("[rocketmq]\nname_servers = [\"::1:9\"]\n".to_owned(), "name_servers", Code::WrongValue),
        ("[rocketmq]\nname_servers = [7]\n".to_owned(), "name_servers", Code::WrongType),
        (section("namespace = \"a%b\""), "namespace", Code::WrongValue),
        (section("namespace = \"a b\""), "namespace", Code::WrongValue),
        (section("access = { key = \"a\" }"), "access.secret", Code::Missing),
        (section("access = { secret = { env = \"S\" } }"), "access.key", Code::Missing),
        (
            section("access.key = \"a\"\naccess.secret = \"b\""),
            "access.secret",
            Code::LiteralSecret,
        ),
        (section("tls = { certificate = \"a.pem\" }"), "tls.key", Code::Missing),
        (section("tls = { key = \"a.pem\" }"), "tls.certificate", Code::Missing),
        (section("tls = true"), "tls", Code::WrongType),
        (section("name_server = \"mq:9876\""), "name_server", Code::UnknownKey),
        (section("endpoint = \"http://mq\""), "endpoint", Code::UnknownKey),
    ];
    for (text, key, code) in table {
        assert_eq!(errors(&text), [(format!("rocketmq.{key}"), code)], "{text}");
    }
    let without = sound_source("").replace("[rocketmq]\nname_servers = [\"127.0.0.1:9876\"]\n", "");
    assert_eq!(errors(&without), [("rocketmq.name_servers".to_owned(), Code::Missing)]);
    let shown = refused(&section("access.key = \"a\"\naccess.secret = \"hush\"")).render(false);
    assert!(!shown.contains("hush"), "{shown}");
}

#[test]
fn every_key_of_a_source_and_its_destinations_is_read() {
    let config = sound(&with_rocketmq(
        "topic = \"orders\", group = \"work\", kind = \"fifo\", tags = \"paid||shipped\", queues = 3",
        r#"
        dead_letter = { rocketmq = { topic = "dead", kind = "normal", queues = 1 } }
        invalid_message = { rocketmq.topic = "invalid" }
        provision = "create"
        "#,
    ));
    let read = source(&config);
    let reader = read.reader.as_ref().expect("a source");
    assert_eq!((read.topic.as_str(), reader.group.as_str()), ("orders", "work"));
    assert_eq!(reader.tags.as_deref(), Some("paid || shipped"));
    assert_eq!((read.kind, read.queues), (TopicKind::Fifo, 3));
    let one = &config.subscriptions[0];
    let dead = one.dead_letter.as_ref().and_then(Place::rocketmq).expect("a destination");
    assert_eq!((dead.kind, dead.queues, &dead.reader), (TopicKind::Normal, 1, &None));
    let invalid = one.invalid_message.as_ref().expect("a destination");
    assert_eq!(invalid.rocketmq().expect("on RocketMQ").kind, TopicKind::Fifo);
    assert_eq!(invalid.spelled(), "invalid");
    assert_eq!((one.provision, one.source.ordering()), (Provision::Create, Ordering::Key));
}

#[test]
fn the_defaults_of_a_source_and_the_kind_of_its_destinations() {
    let config = sound(&sound_source(""));
    let read = source(&config);
    assert_eq!((read.kind, read.queues), (TopicKind::Normal, 8));
    assert_eq!(read.reader.as_ref().map(|reader| &reader.tags), Some(&None));
    assert_eq!(config.subscriptions[0].source.ordering(), Ordering::None);
    for (kind, expected) in [("", TopicKind::Normal), (", kind = \"fifo\"", TopicKind::Fifo)] {
        let config = sound(&sound_source(kind));
        let dead = config.subscriptions[0].dead_letter.as_ref().and_then(Place::rocketmq);
        assert_eq!(dead.map(|dead| dead.kind), Some(expected), "{kind}");
    }
    let from_elsewhere = section("")
        + &with_handler(
            "[subscriptions.orders]\nsource.sqs.queue = \"q.fifo\"\nhandler = \"acme/orders\"\nmax_deliveries = 3\ndead_letter.rocketmq.topic = \"dead\"\n",
        );
    let config = sound(&from_elsewhere);
    let dead = config.subscriptions[0].dead_letter.as_ref().and_then(Place::rocketmq);
    assert_eq!(dead.map(|dead| dead.kind), Some(TopicKind::Normal));
}

#[test]
fn names_are_spelled_by_rocketmqs_rules() {
    let (topic, group) = ("a".repeat(127), "a".repeat(120));
    assert_eq!(
        errors(&with_rocketmq(&format!("topic = \"{topic}\", group = \"{group}\""), DEAD)),
        []
    );
    let (longer, wider) = (topic + "a", group + "a");
    for bad in ["a b", "a.b", "ä", "acme%orders", "%RETRY%g", "rmq_sys_x", "TBW102", "a|b", &longer]
    {
        let text = with_rocketmq(&format!("topic = \"{bad}\", group = \"g\""), DEAD);
        assert_eq!(errors(&text), orders("source.rocketmq.topic", Code::WrongValue), "{bad}");
    }
    for bad in ["a b", "a.b", "acme%work", &wider] {
        let text = with_rocketmq(&format!("topic = \"t\", group = \"{bad}\""), DEAD);
        assert_eq!(errors(&text), orders("source.rocketmq.group", Code::WrongValue), "{bad}");
    }
    let percent = refused(&sound_source("").replace("\"orders\"", "\"acme%orders\""));
    assert!(percent.to_string().contains("`rocketmq.namespace`"), "{percent}");
}

/// The namespace counts.
#[test]
fn a_name_and_its_namespace_are_not_too_long_together() {
    let with = |topic: usize, group: usize| {
        let source =
            format!("topic = \"{}\", group = \"{}\"", "t".repeat(topic), "g".repeat(group));
        with_rocketmq(&source, DEAD).replace("[rocketmq]", "[rocketmq]\nnamespace = \"acme\"")
    };
    assert_eq!(errors(&with(122, 115)), []);
    assert_eq!(errors(&with(123, 115)), orders("source.rocketmq.topic", Code::WrongValue));
    assert_eq!(errors(&with(122, 116)), orders("source.rocketmq.group", Code::WrongValue));
}

#[test]
fn what_a_source_or_a_destination_can_t_be_is_refused() {
    let table = [
        (", kind = \"delay\"", "source.rocketmq.kind", Code::WrongValue),
        (", tags = \"*\"", "source.rocketmq.tags", Code::WrongValue),
        (", tags = \"a ||\"", "source.rocketmq.tags", Code::WrongValue),
        (", tags = \"a b\"", "source.rocketmq.tags", Code::WrongValue),
        (", tags = \"a | b\"", "source.rocketmq.tags", Code::WrongValue),
        (", queues = 0", "source.rocketmq.queues", Code::WrongValue),
        (", qeues = 4", "source.rocketmq.qeues", Code::UnknownKey),
        (", envelope = \"raw\"", "source.rocketmq.envelope", Code::UnknownKey),
        (", sqs.queue = \"q\"", "source.rocketmq.sqs", Code::UnknownKey),
    ];
    for (more, key, code) in table {
        assert_eq!(errors(&sound_source(more)), orders(key, code), "{more}");
    }
    let word = refused(&sound_source(", kind = \"fif\""));
    let one = word.iter().next().expect("one");
    assert_eq!(one.nearest.as_deref(), Some("fifo"));
    assert_eq!(one.allowed.as_deref(), Some("`\"normal\"`, `\"fifo\"`"));
    let no_group = with_rocketmq("topic = \"orders\"", DEAD);
    assert_eq!(errors(&no_group), orders("source.rocketmq.group", Code::Missing));
    let no_topic = with_rocketmq("group = \"orders\"", DEAD);
    assert_eq!(errors(&no_topic), orders("source.rocketmq.topic", Code::Missing));
    let group = with_rocketmq(
        "topic = \"orders\", group = \"work\"",
        "dead_letter.rocketmq = { topic = \"dead\", group = \"g\" }\n",
    );
    assert_eq!(errors(&group), orders("dead_letter.rocketmq.group", Code::UnknownKey));
}

/// S-1.
#[test]
fn s_1_only_a_fifo_topic_keeps_an_order() {
    let order = sound_source("") + "ordering = \"key\"\n";
    assert_eq!(errors(&order), orders("ordering", Code::S1));
    assert!(refused(&order).to_string().contains("source.rocketmq.kind = \"fifo\""));
    assert_eq!(errors(&(sound_source(", kind = \"fifo\"") + "ordering = \"key\"\n")), []);
}

/// C-15: the reason is said, and not only that it is so.
#[test]
fn c_15_there_is_no_native_policy_on_rocketmq() {
    for native in ["{ max_receive_count = 5 }", "{ max_delivery_attempts = 5 }"] {
        let text = sound_source("") + &format!("native = {native}\n");
        assert_eq!(errors(&text), orders("native", Code::Unsupported), "{native}");
        let said = refused(&text).to_string();
        assert!(said.contains("retry maximum") && said.contains("`max_deliveries`"), "{said}");
    }
}

#[test]
fn a_topic_has_one_kind_wherever_it_is_named() {
    let reader = |more: &str| {
        sound_source(", kind = \"fifo\"")
            + &format!(
                "[subscriptions.second]\nsource.rocketmq = {{ topic = \"orders-dead\", group = \"g\"{more} }}\nhandler = \"acme/orders\"\nmax_deliveries = 1\ndead_letter.rocketmq = {{ topic = \"deader\", kind = \"normal\" }}\n"
            )
    };
    assert_eq!(errors(&reader(", kind = \"fifo\"")), []);
    let key = "subscriptions.second.source.rocketmq.kind".to_owned();
    assert_eq!(errors(&reader("")), [(key, Code::Contradiction)]);
    let said = refused(&reader("")).to_string();
    assert!(said.contains("`subscriptions.orders.dead_letter.rocketmq`"), "{said}");
}

/// S-2, and the lease: RocketMQ gives three days of each.
#[test]
fn s_2_what_rocketmq_can_t_hold_for_so_long_is_refused() {
    let with = |rest: &str| sound_source("") + rest;
    assert_eq!(errors(&with("retry.max_backoff = \"3d\"\n")), []);
    let long = "retry = { backoff = \"1s\", max_backoff = \"73h\" }\n";
    assert_eq!(errors(&with(long)), orders("retry.max_backoff", Code::S2));
    let said = refused(&with(long)).to_string();
    assert!(said.contains("at most 3d"), "{said}");
    assert_eq!(errors(&with("[tenants.acme.limits]\ndeadline = \"12h\"\n")), []);
}

fn rejecting(name: &str, source: &str, dead: &str) -> String {
    format!(
        "[subscriptions.{name}]\nsource.rocketmq = {source}\nhandler = \"acme/orders\"\nmax_deliveries = 1\ndead_letter.rocketmq = {{ topic = \"{dead}\" }}\n"
    )
}

/// FR-10: a topic is one place for all of its groups, in whatever namespace all of them are.
#[test]
fn fr_10_rejected_messages_cannot_circle_on_rocketmq() {
    for keys in ["", "namespace = \"acme\""] {
        let own = rejecting("a", "{ topic = \"one\", group = \"g\" }", "one");
        let said = errors(&(section(keys) + &with_handler(&own)));
        assert_eq!(said, [("subscriptions.a.dead_letter".to_owned(), F5)], "{keys}");
        let pair = rejecting("a", "{ topic = \"one\", group = \"g\" }", "two")
            + &rejecting("b", "{ topic = \"two\", group = \"h\" }", "one");
        let said = refused(&(section(keys) + &with_handler(&pair)));
        let one: Vec<_> = said.iter().filter(|one| one.code == F5).collect();
        assert_eq!(one.len(), 1, "{said}");
        assert!(one[0].message.contains("`a`") && one[0].message.contains("`b`"), "{said}");
    }
    let other = rejecting("a", "{ topic = \"one\", group = \"g\" }", "One");
    assert_eq!(errors(&(section("") + &with_handler(&other))), [], "names have their case");
}

/// The identity of a topic holds its namespace.
#[test]
fn fr_10_a_topic_is_known_by_its_namespace() {
    let text = sound_source("").replace("[rocketmq]", "[rocketmq]\nnamespace = \"acme\"");
    let facts = sound(&text).facts();
    assert_eq!(facts[0].source.to_string(), "rocketmq acme%orders");
    assert_eq!(sound(&sound_source("")).facts()[0].source.to_string(), "rocketmq orders");
}

/// C-7, F-3: whoever reads a destination, in whatever group.
#[test]
fn f_3_and_c_7_a_reader_of_a_rejection_destination() {
    let text = sound_source("")
        + "[subscriptions.second]\nsource.rocketmq = { topic = \"orders-dead\", group = \"any\" }\nhandler = \"acme/orders\"\nmax_deliveries = 3\ndead_letter.rocketmq.topic = \"deader\"\n";
    let copies: Vec<bool> = sound(&text).subscriptions.iter().map(|one| one.reads_copies).collect();
    assert_eq!(copies, [false, true]);
    let f3 = ("subscriptions.second.max_deliveries".to_owned(), Code::Rule(Rule::F3));
    assert_eq!(warnings(&text), [f3]);
}

/// F-2: what only the broker knows.
#[test]
fn f_2_the_groups_retry_maximum_is_no_limit_here_and_is_told() {
    let mut facts = sound(&sound_source("")).facts();
    assert_eq!(review(&facts), []);
    facts[0].advisory_limit = Some(17);
    assert_eq!(review(&facts), []);
    facts[0].advisory_limit = Some(3);
    assert_eq!(review(&facts)[0].rule, Rule::F2);
}

/// FR-31.
#[test]
fn fr_31_a_changed_section_restarts_what_is_on_rocketmq() {
    let (one, two) = (sound(&sound_source("")), sound(&sound_source(", queues = 4")));
    assert_eq!(Config::changes(&one, &two).subscriptions.restarted, ["orders"]);
    let text = sound_source("").replace("[rocketmq]", "[rocketmq]\nnamespace = \"acme\"");
    assert_eq!(Config::changes(&one, &sound(&text)).subscriptions.restarted, ["orders"]);
    assert!(Config::changes(&one, &one).is_empty());
}

/// S-1: what `check` prints.
#[test]
fn s_1_what_is_in_force_on_rocketmq_is_said() {
    let said: Vec<String> = [sound_source(""), sound_source(", kind = \"fifo\", tags = \"a||b\"")]
        .iter()
        .flat_map(|text| sound(text).effective(&every()))
        .map(|one| one.to_string())
        .collect();
    insta::assert_snapshot!(said.join("\n"));
}

/// The files of TLS are looked for when a file is loaded, like components.
#[test]
fn files_that_are_not_there_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("p.toml");
    std::fs::write(folder.path().join("me.pem"), "x").expect("written");
    let text = section("tls = { trust = \"ca.pem\", certificate = \"me.pem\", key = \"me.pem\" }");
    std::fs::write(&path, text).expect("written");
    let all = load(&path, &every()).expect_err("no such file");
    let said: Vec<_> = all.iter().map(|one| (one.key.as_str(), one.code)).collect();
    assert_eq!(said, [("rocketmq.tls.trust", Code::MissingFile)]);
}

/// A build without the transport says which ones it has, also at its section.
#[test]
fn a_build_without_rocketmq_names_what_it_has() {
    let build = Build::new(vec![common::embedded(), common::sqs()]);
    let all = parse(&sound_source(""), Path::new("p.toml"), &build).expect_err("no rocketmq");
    let said: Vec<_> = all.iter().filter(|one| one.code == Code::Unsupported).collect();
    let keys: Vec<&str> = said.iter().map(|one| one.key.as_str()).collect();
    assert!(keys.contains(&"rocketmq"), "{all}");
    assert!(keys.contains(&"subscriptions.orders.source.rocketmq"), "{all}");
    assert_eq!(said[0].message, "this build has no transport `rocketmq`");
    assert_eq!(said[0].allowed.as_deref(), Some("`embedded`, `sqs`"));
}

/// What a reader sees of each mistake, without colours.
#[test]
fn mistakes_on_rocketmq_are_shown() {
    let many = with_rocketmq(
        "topic = \"acme%orders\", group = \"a b\", kind = \"ordered\", tags = \"*\", queue = \"q\"",
        "dead_letter = { rocketmq = { topic = \"rmq_sys_x\", group = \"g\" } }\nordering = \"key\"\n",
    )
    .replace("[\"127.0.0.1:9876\"]", "[\"127.0.0.1\"]");
    let policy = sound_source("") + "native = { max_receive_count = 3 }\n";
    let shown: Vec<String> = [many, policy].iter().map(|text| found(text).render(false)).collect();
    insta::assert_snapshot!(shown.join("\n---\n"));
}
