//! The pump beside a scripted source: what real brokers don't do on demand, on paused time.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers")]

mod common;

use std::sync::atomic::Ordering;
use std::time::Duration;

use common::{
    BOTH, Bench, CAPABILITIES, CONCURRENT, GRACE, Native, always, bench, stop, until, watched,
};
use pumphouse_contract::ports::{Action, Capabilities, Condition, Failure, ReceiveError};
use pumphouse_contract::{Budget, Fault, FaultKind, Outcome, Reason, Rejection};
use pumphouse_pump::{Dispatch, Pump};
use tokio::time::{Instant, sleep};

fn rejecting() -> Native {
    always(Outcome::Reject(Rejection { reason: Reason::DeliveryError, description: "no".into() }))
}

#[tokio::test(start_paused = true)]
async fn every_message_is_handled_once_and_removed() {
    for dispatch in BOTH {
        let bench = bench(CAPABILITIES, dispatch, always(Outcome::Ack));
        for n in 0..50 {
            bench.source.publish(&format!("m{n:02}"), None);
        }
        let pump = Pump::start(bench.subscription.clone());
        until("all handled", || bench.source.left() == 0).await;
        assert_eq!(bench.handler.calls().len(), 50);
        stop(&pump).await;
    }
}

/// FR-11, C-18: one receive brings A1 A2 A3 B1 B2, and A1 is deferred. Those behind it go back in order without a
/// call, and have lost a delivery by it.
#[tokio::test(start_paused = true)]
async fn fr_11_those_behind_a_deferred_head_wait_and_others_go_on() {
    let handler = Native::new(|id, count| async move {
        Ok(if id == "A1" && count == 0 {
            Outcome::Defer(Some(Duration::from_secs(3)))
        } else {
            Outcome::Ack
        })
    });
    let bench = bench(CAPABILITIES, CONCURRENT, handler);
    for (id, key) in [("A1", "A"), ("A2", "A"), ("A3", "A"), ("B1", "B"), ("B2", "B")] {
        bench.source.publish(id, Some(key));
    }
    let pump = Pump::start(bench.subscription.clone());
    until("all handled", || bench.source.left() == 0).await;
    let calls = bench.handler.calls();
    let of = |key: &str| -> Vec<(String, u32)> {
        calls.iter().filter(|(id, _)| id.starts_with(key)).cloned().collect()
    };
    let expected = |calls: &[(&str, u32)]| -> Vec<(String, u32)> {
        calls.iter().map(|(id, count)| ((*id).to_owned(), *count)).collect()
    };
    assert_eq!(of("A"), expected(&[("A1", 0), ("A1", 1), ("A2", 1), ("A3", 1)]));
    assert_eq!(of("B"), expected(&[("B1", 0), ("B2", 0)]));
    assert_eq!(bench.notes.count("GivenBack"), 2);
    stop(&pump).await;
}

/// FR-11: where a batch may hold followers, one message is asked for at a time, and none loses a delivery.
#[tokio::test(start_paused = true)]
async fn fr_11_an_ordered_source_is_asked_for_one_message_at_a_time() {
    let handler = Native::new(|id, count| async move {
        Ok(if id == "A1" && count == 0 { Outcome::Defer(None) } else { Outcome::Ack })
    });
    let ordered = Capabilities { batch_may_hold_followers: true, ..CAPABILITIES };
    let bench = bench(ordered, CONCURRENT, handler);
    for (id, key) in [("A1", "A"), ("A2", "A"), ("A3", "A"), ("B1", "B")] {
        bench.source.publish(id, Some(key));
    }
    let pump = Pump::start(bench.subscription.clone());
    until("all handled", || bench.source.left() == 0).await;
    let calls = bench.handler.calls();
    assert!(calls.iter().all(|(id, count)| *count == 0 || id == "A1"), "{calls:?}");
    assert!(bench.source.receives.lock().unwrap().iter().all(|(_, ask)| ask.max == 1));
    assert_eq!(bench.notes.count("GivenBack"), 0);
    stop(&pump).await;
}

/// C-4, C-18: a head that is released at once may be here again before its release is answered. It is handled then;
/// given back, it would lose a delivery each time.
#[tokio::test(start_paused = true)]
async fn c_18_a_head_that_is_back_before_its_release_is_answered_is_handled() {
    for dispatch in BOTH {
        let mut bench = bench(CAPABILITIES, dispatch, always(Outcome::Defer(Some(Duration::ZERO))));
        bench.subscription.settings.policy.budget = Budget::Deliveries(5);
        *bench.source.answers_late.lock().unwrap() = Duration::from_millis(50);
        bench.source.publish("m", Some("key"));
        let pump = Pump::start(bench.subscription.clone());
        until("it is routed and removed", || bench.source.left() == 0).await;
        let counts: Vec<u32> = bench.handler.calls().iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [0, 1, 2, 3, 4]);
        assert_eq!(bench.notes.count("GivenBack"), 0);
        stop(&pump).await;
    }
}

/// FR-34: of a batch of ten, eight are settled at once, one after a repetition, one never.
#[tokio::test(start_paused = true)]
async fn fr_34_every_entry_of_a_batch_answer_is_looked_at() {
    let bench = bench(CAPABILITIES, CONCURRENT, always(Outcome::Ack));
    for n in 0..10 {
        bench.source.publish(&format!("m{n}"), None);
    }
    bench.source.fail("m3", &[Failure::Retry]);
    bench.source.fail("m7", &[Failure::Refused]);
    let pump = Pump::start(bench.subscription.clone());
    until("nine are settled", || bench.source.left() == 1).await;
    sleep(Duration::from_secs(20)).await;
    let settled = bench.source.settled.lock().unwrap().clone();
    let tries = |id: &str| settled.iter().filter(|(settled, ..)| settled == id).count();
    assert_eq!((tries("m3"), tries("m7"), tries("m0")), (2, 1, 1));
    assert_eq!(bench.notes.count("Settled { action: \"ack\", failure: None"), 9);
    assert_eq!(bench.notes.count("Settled { action: \"ack\", failure: Some(Refused)"), 1);
    assert_eq!(bench.handler.calls().len(), 10);
    stop(&pump).await;
}

/// C-19: a repetition ends with the tries, and the message stays at its source.
#[tokio::test(start_paused = true)]
async fn c_19_a_settlement_that_keeps_failing_ends_with_its_tries() {
    let bench = bench(CAPABILITIES, Dispatch::Sequential, always(Outcome::Ack));
    bench.source.fail("m", &[Failure::Retry; 9]);
    bench.source.publish("m", None);
    let pump = Pump::start(bench.subscription.clone());
    until("it is given up", || {
        bench.notes.count("Settled { action: \"ack\", failure: Some(Retry)") == 1
    })
    .await;
    assert_eq!(bench.source.settled.lock().unwrap().len(), 3);
    assert_eq!(bench.source.left(), 1);
    stop(&pump).await;
}

/// FR-33: a receive that never comes back is given up at its bound, and the next one works.
#[tokio::test(start_paused = true)]
async fn fr_33_a_receive_that_hangs_does_not_stop_the_pump() {
    for dispatch in BOTH {
        let bench = bench(CAPABILITIES, dispatch, always(Outcome::Ack));
        *bench.source.hang.lock().unwrap() = 2;
        bench.source.publish("m", None);
        let began = Instant::now();
        let pump = Pump::start(bench.subscription.clone());
        until("waiting is seen", || pump.status().condition == Condition::Waiting).await;
        assert!(pump.status().problem.unwrap().contains("not answered in time"));
        until("handled", || bench.source.left() == 0).await;
        assert!(began.elapsed() < Duration::from_secs(60));
        assert_eq!(bench.notes.count("ReceiveStalled"), 2);
        assert_eq!(pump.status().condition, Condition::Running);
        stop(&pump).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_is_away_is_waited_for_with_growing_pauses() {
    let bench = bench(CAPABILITIES, Dispatch::Sequential, always(Outcome::Ack));
    let away = ReceiveError::Unavailable("queue".into(), "connection refused".into());
    bench.source.receive_errors.lock().unwrap().extend(std::iter::repeat_n(away, 8));
    bench.source.publish("m", None);
    let pump = Pump::start(bench.subscription.clone());
    until("handled", || bench.source.left() == 0).await;
    let at: Vec<Instant> =
        bench.source.receives.lock().unwrap().iter().map(|(at, _)| *at).collect();
    let pauses: Vec<Duration> = at.windows(2).map(|w| w[1] - w[0]).take(8).collect();
    assert!(
        pauses[0] >= Duration::from_millis(100) && pauses[0] <= Duration::from_millis(250),
        "{pauses:?}"
    );
    assert!(
        pauses[7] >= Duration::from_secs(5) && pauses[7] <= Duration::from_secs(11),
        "{pauses:?}"
    );
    stop(&pump).await;
}

/// C-4, C-5: called exactly R times on an exact counter, counts ascending from 0.
#[tokio::test(start_paused = true)]
async fn c_4_a_handler_that_always_defers_is_called_exactly_as_often_as_the_budget_says() {
    for dispatch in BOTH {
        for (budget, calls) in [(1, 1), (2, 2), (3, 3), (0, 1), (-9, 1)] {
            let mut bench = bench(CAPABILITIES, dispatch, always(Outcome::Defer(None)));
            bench.subscription.settings.policy.budget = Budget::from_configured(budget);
            bench.source.publish("m", None);
            let pump = Pump::start(bench.subscription.clone());
            until("routed", || bench.source.left() == 0).await;
            stop(&pump).await;
            let counts: Vec<u32> = bench.handler.calls().iter().map(|(_, count)| *count).collect();
            assert_eq!(counts, (0..calls).collect::<Vec<_>>(), "budget {budget}");
            let copies = bench.dead_letter.copies.lock().unwrap();
            assert_eq!(copies[0].stamp.as_ref().unwrap().deliveries, calls);
            assert_eq!(
                copies[0].stamp.as_ref().unwrap().rejected_by,
                "sub/test/native@0123456789ab"
            );
            let requeues = bench.source.settled.lock().unwrap().len() - 1;
            assert_eq!(requeues, calls as usize - 1, "budget {budget}");
        }
    }
}

/// C-9, C-13, FR-07: while the destination refuses, the message stays and comes back; then it moves.
#[tokio::test(start_paused = true)]
async fn fr_07_the_original_is_removed_only_after_the_copy_is_confirmed() {
    for dispatch in BOTH {
        let bench = bench(CAPABILITIES, dispatch, rejecting());
        *bench.dead_letter.refuse.lock().unwrap() = 3;
        bench.source.publish("m", None);
        let pump = Pump::start(bench.subscription.clone());
        until("moved", || bench.source.left() == 0).await;
        stop(&pump).await;
        assert_eq!(bench.dead_letter.copies.lock().unwrap().len(), 1);
        assert_eq!(bench.notes.count("RouteFailed"), 3);
        let settled = bench.source.settled.lock().unwrap().clone();
        let actions: Vec<Action> = settled.into_iter().map(|(_, action, _)| action).collect();
        let release = |seconds| Action::Release(Duration::from_secs(seconds));
        assert_eq!(actions, [release(1), release(2), release(4), Action::Ack]);
    }
}

/// C-9: a publish that is not confirmed within its bound counts as failed, wherever the copy is.
#[tokio::test(start_paused = true)]
async fn c_9_an_unconfirmed_publish_keeps_the_original() {
    let bench = bench(CAPABILITIES, Dispatch::Sequential, rejecting());
    *bench.dead_letter.slow.lock().unwrap() = Duration::from_secs(60);
    bench.source.publish("m", None);
    let pump = Pump::start(bench.subscription.clone());
    until("a publish is given up", || bench.notes.count("RouteFailed") == 1).await;
    *bench.dead_letter.slow.lock().unwrap() = Duration::ZERO;
    until("moved", || bench.source.left() == 0).await;
    stop(&pump).await;
}

/// C-17, C-14: while the destination keeps refusing, calls end at the guard's count.
#[tokio::test(start_paused = true)]
async fn c_14_calls_end_at_the_guard_while_the_destination_refuses() {
    let mut bench = bench(CAPABILITIES, Dispatch::Sequential, always(Outcome::Defer(None)));
    bench.subscription.settings.policy.budget = Budget::Deliveries(3);
    *bench.dead_letter.refuse.lock().unwrap() = 12;
    bench.source.publish("m", None);
    let pump = Pump::start(bench.subscription.clone());
    until("moved", || bench.source.left() == 0).await;
    stop(&pump).await;
    assert_eq!(bench.handler.calls().len(), 6);
    assert_eq!(bench.notes.count("RouteFailed"), 12);
    let copies = bench.dead_letter.copies.lock().unwrap();
    assert!(copies[0].stamp.as_ref().unwrap().message.contains("not handed to the handler"));
}

/// C-12: no destination: removed, and counted as discarded.
#[tokio::test(start_paused = true)]
async fn c_12_without_a_destination_a_rejected_message_is_removed() {
    let mut bench = bench(CAPABILITIES, CONCURRENT, rejecting());
    bench.subscription.sinks.dead_letter = None;
    bench.source.publish("m", None);
    let pump = Pump::start(bench.subscription.clone());
    until("removed", || bench.source.left() == 0).await;
    stop(&pump).await;
    assert_eq!(bench.notes.count("Discarded"), 1);
}

/// A fault is a deferral; it never acknowledges.
#[tokio::test(start_paused = true)]
async fn a_fault_is_a_deferral() {
    for dispatch in BOTH {
        let handler = Native::new(|_, count| async move {
            if count < 2 { Err(Fault::new(FaultKind::Trap, "boom")) } else { Ok(Outcome::Ack) }
        });
        let bench = bench(CAPABILITIES, dispatch, handler);
        bench.source.publish("m", None);
        let pump = Pump::start(bench.subscription.clone());
        until("handled", || bench.source.left() == 0).await;
        stop(&pump).await;
        assert_eq!(bench.handler.calls().len(), 3);
    }
}

/// FR-14: only an ack makes a later copy a duplicate; FR-15: a duplicate is acked.
#[tokio::test(start_paused = true)]
async fn fr_14_an_id_is_seen_only_after_the_handler_succeeded() {
    for dispatch in BOTH {
        let handler = Native::new(|_, count| async move {
            if count == 0 { Err(Fault::new(FaultKind::Trap, "boom")) } else { Ok(Outcome::Ack) }
        });
        let bench = bench(CAPABILITIES, dispatch, handler).deduplicated();
        bench.source.publish("m", None);
        let pump = Pump::start(bench.subscription.clone());
        until("handled", || bench.source.left() == 0).await;
        bench.source.publish("m", None);
        until("the copy is gone", || bench.source.left() == 0).await;
        stop(&pump).await;
        assert_eq!(bench.handler.calls().len(), 2);
        assert_eq!(bench.notes.count("Duplicate"), 1);
    }
}

/// FR-15: the delete of a handled message failed; it comes back, and is acked without a call.
#[tokio::test(start_paused = true)]
async fn fr_15_a_duplicate_is_acked_not_ignored() {
    let bench = bench(CAPABILITIES, Dispatch::Sequential, always(Outcome::Ack)).deduplicated();
    bench.source.fail("m", &[Failure::Refused]);
    bench.source.publish("m", None);
    let pump = Pump::start(bench.subscription.clone());
    until("the delete failed", || {
        bench.notes.count("Settled { action: \"ack\", failure: Some") == 1
    })
    .await;
    bench.source.publish("m", None);
    until("the copy is gone", || bench.source.left() == 1).await;
    stop(&pump).await;
    assert_eq!((bench.handler.calls().len(), bench.notes.count("Duplicate")), (1, 1));
}

/// FR-14: two copies at the same time: one runs, the other is not acked while the first is undecided.
#[tokio::test(start_paused = true)]
async fn fr_14_of_two_copies_at_once_one_runs() {
    let (handler, most) = watched(Duration::from_secs(5));
    let bench = bench(CAPABILITIES, CONCURRENT, handler).deduplicated();
    bench.source.publish("m", None);
    bench.source.publish("m", None);
    let pump = Pump::start(bench.subscription.clone());
    until("both are gone", || bench.source.left() == 0).await;
    stop(&pump).await;
    assert_eq!((bench.handler.calls().len(), most.load(Ordering::SeqCst)), (1, 1));
    assert_eq!(bench.notes.count("Duplicate"), 1);
}

/// S-5: a store that fails never acknowledges.
#[tokio::test(start_paused = true)]
async fn s_5_a_store_that_fails_never_acknowledges() {
    let bench = bench(CAPABILITIES, CONCURRENT, always(Outcome::Ack)).deduplicated();
    *bench.marks.fail.lock().unwrap() = true;
    bench.source.publish("m", None);
    let pump = Pump::start(bench.subscription.clone());
    until("it was given back", || !bench.source.settled.lock().unwrap().is_empty()).await;
    assert!(bench.handler.calls().is_empty());
    *bench.marks.fail.lock().unwrap() = false;
    until("handled", || bench.source.left() == 0).await;
    stop(&pump).await;
    assert_eq!(bench.handler.calls().len(), 1);
}

fn slow(seconds: u64) -> Native {
    Native::new(move |_, _| async move {
        sleep(Duration::from_secs(seconds)).await;
        Ok(Outcome::Ack)
    })
}

/// FR-36: a drain finishes what it can within the grace.
#[tokio::test(start_paused = true)]
async fn fr_36_a_drain_finishes_what_is_in_progress() {
    for dispatch in BOTH {
        let bench = bench(CAPABILITIES, dispatch, slow(3));
        bench.source.publish("m", None);
        let pump = Pump::start(bench.subscription.clone());
        until("begun", || pump.status().in_flight == 1).await;
        let began = Instant::now();
        stop(&pump).await;
        assert!(began.elapsed() < GRACE);
        assert_eq!(bench.source.left(), 0);
    }
}

/// FR-36: a call that does not end is cut near the end of the grace, and its message is given back at once.
#[tokio::test(start_paused = true)]
async fn fr_36_a_call_that_does_not_end_is_cut_within_the_grace() {
    for dispatch in BOTH {
        let bench = bench(CAPABILITIES, dispatch, slow(10_000));
        bench.source.publish("m", None);
        let pump = Pump::start(bench.subscription.clone());
        until("begun", || pump.status().in_flight == 1).await;
        let began = Instant::now();
        stop(&pump).await;
        assert!(began.elapsed() < GRACE, "{:?}", began.elapsed());
        assert_eq!(bench.source.ready(), ["m"]);
    }
}

/// FR-36: what an open long poll brings after the signal is given back at once, without a call.
#[tokio::test(start_paused = true)]
async fn fr_36_what_a_long_poll_brings_after_the_signal_is_given_back() {
    for dispatch in BOTH {
        let Bench { source, handler, subscription, .. } = &bench(CAPABILITIES, dispatch, slow(1));
        let pump = Pump::start(subscription.clone());
        until("polling", || !source.receives.lock().unwrap().is_empty()).await;
        pump.drain();
        sleep(Duration::from_secs(1)).await;
        for n in 0..5 {
            source.publish(&format!("m{n}"), None);
        }
        stop(&pump).await;
        assert_eq!(source.left(), 5);
        assert!(handler.calls().is_empty());
    }
}

/// S-2: a delay beyond what the broker gives is shortened to what is left from the receive on (FR-32).
#[tokio::test(start_paused = true)]
async fn fr_32_a_delay_beyond_the_limit_is_shortened_to_what_is_left() {
    let handler = Native::new(|_, _| async move {
        sleep(Duration::from_secs(5)).await;
        Ok(Outcome::Defer(Some(Duration::from_secs(43_200))))
    });
    let bench = bench(CAPABILITIES, Dispatch::Sequential, handler);
    bench.source.publish("m", None);
    let pump = Pump::start(bench.subscription.clone());
    until("deferred", || !bench.source.settled.lock().unwrap().is_empty()).await;
    let (_, action, _) = bench.source.settled.lock().unwrap()[0].clone();
    assert_eq!(action, Action::Release(Duration::from_secs(43_193)));
    assert_eq!(bench.notes.count("DelayShortened"), 1);
    stop(&pump).await;
}
