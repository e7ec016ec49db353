//! No sequence of outcomes, faults, failed publishes and failed settlements removes a message without an `ack` or
//! a confirmed copy.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{CAPABILITIES, Native, bench};
use proptest::prelude::*;
use pumphouse_contract::ports::{Action, Failure};
use pumphouse_contract::{Budget, Fault, FaultKind, OnFault, Outcome, Reason, Rejection};
use pumphouse_pump::{Dispatch, Pump};

#[derive(Debug, Clone, Copy)]
enum Step {
    Ack,
    Defer,
    Reject,
    Trap,
}

impl Step {
    fn ended(self) -> Result<Outcome, Fault> {
        match self {
            Self::Ack => Ok(Outcome::Ack),
            Self::Defer => Ok(Outcome::Defer(Some(Duration::from_millis(50)))),
            Self::Reject => {
                let description = "no".to_owned();
                Ok(Outcome::Reject(Rejection { reason: Reason::DeliveryError, description }))
            }
            Self::Trap => Err(Fault::new(FaultKind::Trap, "boom")),
        }
    }
}

/// A message: its key, what its handler says on each delivery, and how its settlements fail.
type Script = (Option<u8>, Vec<Step>, Vec<Failure>);

fn script() -> impl Strategy<Value = Script> {
    let step =
        prop_oneof![Just(Step::Ack), Just(Step::Defer), Just(Step::Reject), Just(Step::Trap)];
    let failure = prop_oneof![Just(Failure::Retry), Just(Failure::Refused), Just(Failure::Gone)];
    (
        proptest::option::of(0u8..3),
        prop::collection::vec(step, 1..5),
        prop::collection::vec(failure, 0..3),
    )
}

#[derive(Debug, Clone)]
struct Case {
    messages: Vec<Script>,
    sequential: bool,
    budget: i64,
    reject_on_fault: bool,
    refusals: u32,
}

fn case() -> impl Strategy<Value = Case> {
    (prop::collection::vec(script(), 1..12), any::<bool>(), -1i64..5, any::<bool>(), 0u32..6)
        .prop_map(|(messages, sequential, budget, reject_on_fault, refusals)| Case {
            messages,
            sequential,
            budget,
            reject_on_fault,
            refusals,
        })
}

/// Runs the case for a while; gives what was acked by a handler, copied, and what was removed.
async fn run(case: Case) -> (BTreeSet<String>, BTreeSet<String>, BTreeSet<String>) {
    let steps: BTreeMap<String, Vec<Step>> = case
        .messages
        .iter()
        .enumerate()
        .map(|(n, script)| (format!("m{n:02}"), script.1.clone()))
        .collect();
    let acked = Arc::new(Mutex::new(BTreeSet::new()));
    let noted = acked.clone();
    let handler = Native::new(move |id, count| {
        let steps = &steps[&id];
        let step = steps[(count as usize).min(steps.len() - 1)];
        if matches!(step, Step::Ack) {
            noted.lock().unwrap().insert(id);
        }
        async move { step.ended() }
    });
    let dispatch = if case.sequential { Dispatch::Sequential } else { Dispatch::Concurrent(8) };
    let mut bench = bench(CAPABILITIES, dispatch, handler);
    bench.subscription.settings.policy.budget = Budget::from_configured(case.budget);
    if case.reject_on_fault {
        bench.subscription.settings.policy.on_fault = OnFault::Reject;
    }
    *bench.dead_letter.refuse.lock().unwrap() = case.refusals;
    for (n, (key, _, failures)) in case.messages.iter().enumerate() {
        let id = format!("m{n:02}");
        bench.source.fail(&id, failures);
        bench.source.publish(&id, key.map(|key| key.to_string()).as_deref());
    }
    let pump = Pump::start(bench.subscription.clone());
    // Of the test's own time: some messages are deferred for ever.
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert!(pump.stop(Duration::from_secs(30)).await.clean);
    let copied = bench.dead_letter.copies.lock().unwrap();
    let copied =
        copied.iter().map(|copy| copy.stamp.clone().unwrap().original_message_id).collect();
    let settled = bench.source.settled.lock().unwrap();
    let removed = settled.iter().filter(|(_, action, done)| *action == Action::Ack && *done);
    let removed = removed.map(|(id, ..)| id.clone()).collect();
    let acked = acked.lock().unwrap().clone();
    (acked, copied, removed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn nothing_is_removed_without_an_ack_or_a_confirmed_copy(case in case()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let (acked, copied, removed) = runtime.block_on(run(case));
        let lost: Vec<&String> = removed.iter().filter(|id| !acked.contains(*id) && !copied.contains(*id)).collect();
        prop_assert!(lost.is_empty(), "removed without an ack or a copy: {lost:?}");
    }
}
