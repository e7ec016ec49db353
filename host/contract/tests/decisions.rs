//! What holds of every decision, whatever the handler says and whatever is known of the delivery.
#![allow(missing_docs, clippy::indexing_slicing, reason = "a test")]

use std::time::Duration;

use proptest::prelude::*;
use pumphouse_contract::{
    Admission, Backoff, Budget, Count, Decision, Facts, Fault, FaultKind, Jitter, OnFault, Outcome,
    Policy, Reason, Rejection, Roll, admit, after_failed_route, decide,
};

fn reason() -> impl Strategy<Value = Reason> {
    prop_oneof![Just(Reason::Unacceptable), Just(Reason::DeliveryError), Just(Reason::None)]
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        (0u64..100_000_000).prop_map(Duration::from_millis),
        Just(Duration::MAX)
    ]
}

fn ended() -> impl Strategy<Value = Result<Outcome, Fault>> {
    prop_oneof![
        Just(Ok(Outcome::Ack)),
        proptest::option::of(duration()).prop_map(|delay| Ok(Outcome::Defer(delay))),
        (reason(), ".{0,20}").prop_map(|(reason, description)| Ok(Outcome::Reject(Rejection {
            reason,
            description
        }))),
        (0..FaultKind::ALL.len(), ".{0,20}").prop_map(|(kind, text)| Err(Fault::new(
            FaultKind::ALL[kind % FaultKind::ALL.len()],
            text
        ))),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let backoff = (duration(), duration(), any::<bool>()).prop_map(|(base, max, full)| Backoff {
        base,
        max,
        jitter: if full { Jitter::Full } else { Jitter::None },
    });
    (
        any::<i64>(),
        -3i64..12,
        any::<bool>(),
        backoff,
        proptest::option::of(duration()),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(wild, tame, is_tame, backoff, window, reject, guard)| Policy {
            budget: Budget::from_configured(if is_tame { tame } else { wild }),
            backoff,
            window,
            on_fault: if reject { OnFault::Reject } else { OnFault::Defer },
            guard,
        })
}

fn facts() -> impl Strategy<Value = Facts<'static>> {
    let count = prop_oneof![0u32..20, any::<u32>()];
    (
        count,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        proptest::option::of(duration()),
        duration(),
    )
        .prop_map(|(count, advances, routed_copy, undecodable, age, longest_release)| Facts {
            count: Count(count),
            advances,
            routed_copy,
            undecodable: undecodable.then_some("garbled"),
            age,
            longest_release,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// No outcome, fault or count acknowledges without an `ack`; and an `ack` always does.
    #[test]
    fn only_an_ack_acknowledges(ended in ended(), facts in facts(), policy in policy(), roll in 0.0f64..1.0) {
        let decision = decide(&ended, &facts, &policy, Roll::new(roll));
        prop_assert_eq!(decision == Decision::Ack, ended == Ok(Outcome::Ack));
    }

    /// A handler's rejection is routed by its own reason, whatever the budget says.
    #[test]
    fn a_rejection_keeps_its_reason(reason in reason(), facts in facts(), policy in policy()) {
        let ended = Ok(Outcome::Reject(Rejection { reason, description: "no".into() }));
        let decision = decide(&ended, &facts, &policy, Roll::new(0.5));
        prop_assert!(matches!(decision, Decision::Route(routed, _) if routed == reason));
    }

    /// A release is never longer than the broker gives (S-2), also after a failed publish, which waits ten seconds
    /// at most (C-13).
    #[test]
    fn a_release_is_within_what_the_broker_gives(
        ended in ended(), facts in facts(), policy in policy(), roll in 0.0f64..1.0,
    ) {
        let roll = Roll::new(roll);
        if let Decision::Release { after, .. } = decide(&ended, &facts, &policy, roll) {
            prop_assert!(after <= facts.longest_release);
        }
        let failed = after_failed_route(&facts, &policy, roll);
        prop_assert!(failed <= facts.longest_release && failed <= Duration::from_secs(10));
    }

    /// With a budget of 1 or more no deferral is released at or past it (C-4); without one the count never rejects.
    #[test]
    fn the_budget_is_the_edge(facts in facts(), policy in policy()) {
        let decision = decide(&Ok(Outcome::Defer(None)), &facts, &policy, Roll::new(0.5));
        let released = matches!(decision, Decision::Release { .. });
        match policy.budget {
            Budget::Deliveries(most) if facts.count.deliveries() >= most => prop_assert!(!released),
            Budget::Suspicious(_) => prop_assert!(!released),
            Budget::Unlimited if policy.window.is_none() => prop_assert!(released),
            Budget::Unlimited | Budget::Deliveries(_) => {}
        }
    }

    /// What can't be decoded never reaches a handler, and what can is turned away only by the guard (C-17).
    #[test]
    fn admission_is_refused_for_two_reasons_alone(facts in facts(), policy in policy()) {
        match admit(&facts, &policy) {
            Admission::Route(Reason::Unacceptable, _) => prop_assert!(facts.undecodable.is_some()),
            Admission::Route(Reason::DeliveryError, _) => {
                let guard = policy.budget.guard();
                prop_assert!(guard.is_some_and(|guard| facts.count >= guard) && !facts.routed_copy);
            }
            Admission::Route(Reason::None, _) => prop_assert!(false, "no such reason"),
            Admission::Call => prop_assert!(facts.undecodable.is_none()),
        }
    }
}
