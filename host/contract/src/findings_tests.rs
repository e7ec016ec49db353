use super::*;

fn queue(name: &str) -> Address {
    Address { transport: "embedded", name: name.into() }
}

fn sound(name: &str) -> SubscriptionFacts {
    SubscriptionFacts {
        name: name.into(),
        source: queue(name),
        rejected: false,
        budget: Budget::Deliveries(3),
        native_limit: None,
        advisory_limit: None,
        count_stands_still: None,
        backoff: Duration::from_secs(1),
        max_backoff: Duration::from_secs(60),
        window: None,
        dead_letter: Some(queue("dead")),
        invalid_message: None,
        deduplicate_ttl: None,
        retention: None,
    }
}

fn found(subscriptions: &[SubscriptionFacts]) -> Vec<(Rule, Severity)> {
    review(subscriptions).iter().map(|finding| (finding.rule, finding.severity)).collect()
}

fn text(one: SubscriptionFacts) -> String {
    review(&[one]).iter().map(|finding| finding.text.clone()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_sound_subscription_has_no_finding() {
    assert_eq!(found(&[sound("a")]), []);
}

#[test]
fn each_rule_speaks_for_itself() {
    use Rule::{F1, F2, F3, F4, F5, F6, F7};
    let s = Duration::from_secs;
    let table: Vec<(SubscriptionFacts, Rule, &str)> = vec![
        (
            SubscriptionFacts { budget: Budget::Suspicious(0), ..sound("a") },
            F1,
            "max_deliveries = 0",
        ),
        (
            SubscriptionFacts { budget: Budget::Suspicious(-4), ..sound("a") },
            F1,
            "write -1 for no budget, or 1",
        ),
        (SubscriptionFacts { native_limit: Some(3), ..sound("a") }, F2, "the effective limit is 3"),
        (
            SubscriptionFacts { count_stands_still: Some("no policy".into()), ..sound("a") },
            F3,
            "= 3, which can't be enforced: no policy",
        ),
        (SubscriptionFacts { rejected: true, ..sound("a") }, F3, "keeps the count"),
        (SubscriptionFacts { budget: Budget::Unlimited, ..sound("a") }, F4, "without a bound"),
        (
            SubscriptionFacts { dead_letter: None, ..sound("a") },
            F5,
            "unacceptable, delivery-error, none",
        ),
        (
            SubscriptionFacts {
                dead_letter: None,
                invalid_message: Some(queue("i")),
                ..sound("a")
            },
            F5,
            "as delivery-error, none are",
        ),
        (SubscriptionFacts { backoff: Duration::ZERO, ..sound("a") }, F6, "without backoff"),
        (
            SubscriptionFacts { window: Some(s(600)), deduplicate_ttl: Some(s(659)), ..sound("a") },
            F7,
            "659 s, and it can come back for 660 s",
        ),
        (
            SubscriptionFacts {
                retention: Some(s(600)),
                deduplicate_ttl: Some(s(599)),
                ..sound("a")
            },
            F7,
            "for 600 s",
        ),
    ];
    for (one, rule, says) in table {
        assert_eq!(found(std::slice::from_ref(&one)), [(rule, Severity::Warning)], "{one:?}");
        assert!(text(one).contains(says), "{says}");
    }
}

#[test]
fn a_bound_of_any_kind_silences_f_4() {
    let unlimited = || SubscriptionFacts { budget: Budget::Unlimited, ..sound("a") };
    let windowed = SubscriptionFacts { window: Some(Duration::from_secs(60)), ..unlimited() };
    let native = SubscriptionFacts { native_limit: Some(5), ..unlimited() };
    assert_eq!(found(&[windowed]), []);
    assert_eq!(found(&[native]), []);
}

#[test]
fn f_2_a_limit_that_the_broker_does_not_act_on_is_said_and_bounds_nothing() {
    let advised = |limit| SubscriptionFacts { advisory_limit: Some(limit), ..sound("a") };
    assert_eq!(found(&[advised(4)]), []);
    assert_eq!(found(&[advised(3)]), [(Rule::F2, Severity::Warning)]);
    assert!(text(advised(3)).contains("the effective limit is 3, but other clients"));
    let unlimited = SubscriptionFacts { budget: Budget::Unlimited, ..advised(5) };
    assert_eq!(found(&[unlimited]), [(Rule::F4, Severity::Warning)], "no bound");
}

#[test]
fn a_budget_below_the_native_limit_is_sound() {
    assert_eq!(found(&[SubscriptionFacts { native_limit: Some(4), ..sound("a") }]), []);
}

#[test]
fn a_budget_of_one_is_enforceable_everywhere() {
    let one = SubscriptionFacts {
        budget: Budget::Deliveries(1),
        count_stands_still: Some("no policy".into()),
        ..sound("a")
    };
    assert_eq!(found(&[one]), []);
}

#[test]
fn f_3_a_reader_of_a_rejection_destination_has_no_budget() {
    let reader = SubscriptionFacts { dead_letter: Some(queue("deader")), ..sound("dead") };
    assert_eq!(found(&[sound("a"), reader]), [(Rule::F3, Severity::Warning)]);
}

/// FR-10: to itself, over another, by either destination, named once each.
#[test]
fn fr_10_rejected_messages_cannot_circle() {
    let to = |name: &str, dead: &str| SubscriptionFacts {
        budget: Budget::Deliveries(1),
        dead_letter: Some(queue(dead)),
        ..sound(name)
    };
    let error = [(Rule::F5, Severity::Error)];
    assert_eq!(found(&[to("a", "a")]), error);
    assert_eq!(found(&[to("a", "b"), to("b", "a")]), error);
    assert_eq!(found(&[to("x", "a"), to("a", "b"), to("b", "c"), to("c", "a")]), error);
    let invalid = SubscriptionFacts { invalid_message: Some(queue("a")), ..to("a", "d") };
    assert_eq!(found(&[invalid]), error);
    let chain = review(&[to("a", "b"), to("b", "a")]).remove(0).text;
    assert!(chain.contains("`a`") && chain.contains("`b`"), "{chain}");
    assert_eq!(found(&[to("a", "b"), to("b", "c")]), []);
}
