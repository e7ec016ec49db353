//! Streams against a server that follows a script: what is held, what goes back with what, and how a stream that
//! ends goes on.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod scripted;
mod streaming;

use std::time::Duration;

use pumphouse_contract::ports::{Action, Failure, ReceiveError};
use scripted::{End, Script, Scripted};
use streaming::{Reader, S, text, texts};
use tonic::Code;

const NOW: Duration = Duration::ZERO;

/// The first question: 20 messages on 3 permits. C-6: with a handler for each in time, no call but its ack.
#[tokio::test]
async fn twenty_messages_on_three_permits_are_held_and_cost_no_call() {
    let server = Scripted::start().await;
    let reader = Reader::new(&server.endpoint(), |spec| spec.concurrency = 3).await;
    let all: Vec<String> = (0..20).map(|n| format!("{n}")).collect();
    server.publish("", &all.iter().map(String::as_str).collect::<Vec<_>>());
    let mut handled = Vec::new();
    while handled.len() < 20 {
        let got = reader.receive(3).await.unwrap();
        assert!(got.len() <= 3, "C-18: never more than there are permits");
        if handled.is_empty() {
            server.until("all pushed", |server| server.sent().len() == 20).await;
            assert_eq!(reader.source.held(), 20 - got.len());
        }
        handled.extend(texts(&got));
        reader.ack(got).await;
    }
    assert_eq!(handled, all, "without a key they come as they were pushed");
    assert_eq!(server.left(), Vec::<String>::new());
    assert!(server.sent().iter().all(|(_, count)| *count == 1));
    assert_eq!(server.modified(), vec![], "C-6: no call per delivery beyond the acknowledgement");
    assert_eq!(reader.source.held(), 0);
}

#[tokio::test]
async fn what_is_past_the_bound_goes_back_in_order_and_not_at_once() {
    let server = Scripted::start().await;
    let reader = Reader::new(&server.endpoint(), |spec| {
        spec.held = 5;
        spec.ordered = true;
    })
    .await;
    server.publish("k", &["0", "1", "2", "3", "4", "5", "6", "7"]);
    let head = reader.one().await;
    server.until("the surplus is back", |server| !server.modified().is_empty()).await;
    assert_eq!(server.modified(), vec![(vec!["5".into(), "6".into(), "7".into()], 10)]);
    assert_eq!(reader.source.held(), 4);
    // What is published now may not go before those that went back.
    server.shared.model().eager = true;
    server.publish("k", &["8"]);
    server.until("it goes behind them", |server| server.modified().len() == 2).await;
    let (data, seconds) = server.modified()[1].clone();
    assert_eq!(data, ["8"]);
    assert!((9..=10).contains(&seconds), "{seconds}");
    reader.ack(vec![head]).await;
}

/// ADR 8, and the second question: a key whose head defers. The followers' counts advance with the head's,
/// although no handler saw them: the listed exception of ordered streams (C-17).
#[tokio::test]
async fn a_head_that_defers_takes_its_followers_along_and_their_counts_advance() {
    let server = Scripted::start().await;
    let reader = Reader::new(&server.endpoint(), |spec| spec.ordered = true).await;
    server.publish("k", &["a", "b", "c"]);
    server.publish("l", &["x"]);
    let got = reader.receive(10).await.unwrap();
    assert_eq!(texts(&got), ["a", "x"], "one of each key");
    let (head, other) = (got[0].clone(), got[1].clone());
    reader.ack(vec![other]).await;
    reader.release(vec![head], S(1)).await;
    assert_eq!(server.modified(), vec![(vec!["a".into(), "b".into(), "c".into()], 1)]);
    for _ in 0..2 {
        let head = reader.one().await;
        assert_eq!(text(&head), "a");
        reader.release(vec![head], NOW).await;
    }
    for name in ["a", "b", "c"] {
        let next = reader.one().await;
        assert_eq!(text(&next), name, "S-6: nothing overtakes");
        assert_eq!(next.counted.count().0, 3, "the followers were delivered as often");
        reader.ack(vec![next]).await;
    }
    assert_eq!(server.modified().len(), 3, "one request for each time that the group went back");
    assert_eq!(server.left(), Vec::<String>::new());
}

#[tokio::test]
async fn a_stream_that_closes_in_mid_lane_goes_on_where_it_was() {
    let server = Scripted::start().await;
    let reader = Reader::new(&server.endpoint(), |spec| spec.ordered = true).await;
    server.publish("k", &["a", "b", "c"]);
    let head = reader.one().await;
    for end in [End::Clean, End::With(Code::Unavailable), End::With(Code::Internal)] {
        let streams = server.streams();
        server.end_streams(end);
        server.until("another stream", |server| server.streams() > streams).await;
    }
    reader.ack(vec![head]).await;
    for name in ["b", "c"] {
        let next = reader.one().await;
        assert_eq!(text(&next), name);
        reader.ack(vec![next]).await;
    }
    assert_eq!(server.left(), Vec::<String>::new());
    assert!(server.sent().iter().all(|(_, count)| *count == 1));
}

/// A reset in mid-batch, after which the service sends everything again: what is held is replaced, and what is
/// handled is counted and waits.
#[tokio::test]
async fn what_is_sent_again_while_it_is_handled_is_counted_and_waits() {
    let server = Scripted::start().await;
    let reader = Reader::new(&server.endpoint(), |spec| spec.ordered = true).await;
    server.publish("k", &["a", "b", "c"]);
    let first = reader.one().await;
    server.end_streams(End::With(Code::Internal));
    for name in ["a", "b", "c"] {
        server.send_again(name);
    }
    server.until("all sent again", |server| server.count("c") >= 2).await;
    server.until("it is counted", |_| reader.source.duplicates() == 1).await;
    assert_eq!(reader.receive_for(10, S(0)).await.unwrap().len(), 0, "the first is still handled");
    assert_eq!(reader.source.held(), 3);
    // The service has a newer delivery, so that this acknowledgement does nothing there.
    reader.ack(vec![first]).await;
    for name in ["a", "b", "c"] {
        let next = reader.one().await;
        assert_eq!(text(&next), name);
        reader.ack(vec![next]).await;
    }
    assert_eq!(server.left(), Vec::<String>::new());
}

#[tokio::test]
async fn a_duplicate_without_a_key_waits_for_the_first_too() {
    let server = Scripted::start().await;
    let reader = Reader::new(&server.endpoint(), |_| {}).await;
    server.publish("", &["a"]);
    let first = reader.one().await;
    server.send_again("a");
    server.until("it is counted", |_| reader.source.duplicates() == 1).await;
    assert_eq!(reader.receive_for(10, S(0)).await.unwrap().len(), 0);
    reader.release(vec![first], NOW).await;
    let again = reader.one().await;
    reader.ack(vec![again]).await;
    assert_eq!(server.left(), Vec::<String>::new());
}

/// FR-34: an answer that was lost is no success, and the next of the key waits for one.
#[tokio::test]
async fn the_next_of_a_key_waits_for_the_confirmed_acknowledgement() {
    let server = Scripted::start().await;
    let reader = Reader::new(&server.endpoint(), |spec| spec.ordered = true).await;
    server.publish("k", &["a", "b"]);
    let head = reader.one().await;
    server.acknowledge_goes(Script::DoneBut(Code::Unavailable));
    let answer = reader.settle(vec![(&head, Action::Ack)]).await;
    assert_eq!(answer[0].as_ref().unwrap_err().failure, Failure::Retry);
    assert_eq!(reader.receive_for(10, S(0)).await.unwrap().len(), 0);
    reader.ack(vec![head]).await;
    assert_eq!(text(&reader.one().await), "b");
}

#[tokio::test]
async fn followers_go_back_when_the_acknowledgement_of_their_head_fails_for_good() {
    let server = Scripted::start().await;
    let reader = Reader::new(&server.endpoint(), |spec| spec.ordered = true).await;
    server.publish("k", &["a", "b", "c"]);
    let head = reader.one().await;
    server.acknowledge_goes(Script::Fails(Code::PermissionDenied));
    let answer = reader.settle(vec![(&head, Action::Ack)]).await;
    assert_eq!(answer[0].as_ref().unwrap_err().failure, Failure::Refused);
    let (data, seconds) = server.modified()[0].clone();
    assert_eq!(data, ["b", "c"]);
    assert!(
        (38..=40).contains(&seconds),
        "not before the head, which is leased for so long: {seconds}"
    );
}

#[tokio::test]
async fn a_release_that_may_be_tried_again_keeps_the_followers_behind_it() {
    let server = Scripted::start().await;
    let reader = Reader::new(&server.endpoint(), |spec| spec.ordered = true).await;
    server.publish("k", &["a", "b"]);
    let head = reader.one().await;
    server.modify_goes(Script::Fails(Code::Unavailable));
    let answer = reader.settle(vec![(&head, Action::Release(NOW))]).await;
    assert_eq!(answer[0].as_ref().unwrap_err().failure, Failure::Retry);
    assert_eq!(reader.receive_for(10, S(0)).await.unwrap().len(), 0);
    assert_eq!(reader.source.held(), 1);
    reader.release(vec![head], NOW).await;
    // At once, the emulator would put them behind what else the key has.
    assert_eq!(server.modified(), vec![(vec!["a".into(), "b".into()], 1)]);
    for name in ["a", "b"] {
        let next = reader.one().await;
        assert_eq!(text(&next), name);
        reader.ack(vec![next]).await;
    }
}

/// The emulator sends what is published while the head of its key is away.
#[tokio::test]
async fn what_is_pushed_before_its_head_is_back_goes_behind_it() {
    let server = Scripted::start().await;
    server.shared.model().eager = true;
    let reader = Reader::new(&server.endpoint(), |spec| spec.ordered = true).await;
    server.publish("k", &["a", "b"]);
    let head = reader.one().await;
    reader.release(vec![head], S(2)).await;
    server.publish("k", &["c"]);
    server.until("it went away again", |server| server.modified().len() == 2).await;
    assert_eq!(server.modified()[1], (vec!["c".into()], 2));
    for name in ["a", "b", "c"] {
        let next = reader.one().await;
        assert_eq!(text(&next), name);
        reader.ack(vec![next]).await;
    }
}

/// Held messages are extended openly, in one request, and what is handed over is not.
#[tokio::test]
async fn what_is_held_is_extended_before_its_lease_ends() {
    let server = Scripted::start().await;
    let reader = Reader::new(&server.endpoint(), |spec| spec.ordered = true).await;
    server.publish("k", &["a", "b", "c"]);
    let head = reader.one().await;
    assert!(
        head.lease.left(reader.clock.now()) > S(38),
        "the 10 s that were asked for, and 30 s more"
    );
    reader.clock.advance(S(27));
    server.until("extended", |server| server.modified().len() == 1).await;
    assert_eq!(server.modified(), vec![(vec!["b".into(), "c".into()], 40)]);
    tokio::time::sleep(S(2)).await;
    assert_eq!(server.modified().len(), 1, "once");
    // Now the lease of the one that is handled ends, without a settlement.
    reader.clock.advance(S(12));
    server.until("its followers go back", |server| server.modified().len() == 2).await;
    assert_eq!(server.modified()[1], (vec!["b".into(), "c".into()], 0));
}

#[tokio::test]
async fn nothing_is_handed_over_with_less_than_the_lease_that_is_asked_for() {
    let server = Scripted::start().await;
    let reader = Reader::new(&server.endpoint(), |_| {}).await;
    server.publish("", &["a", "b"]);
    let first = reader.one().await;
    server.until("both pushed", |_| reader.source.held() == 1).await;
    reader.clock.advance(S(10));
    let got = reader.receive_with(1, S(5), S(35)).await.unwrap();
    assert_eq!(texts(&got), ["b"]);
    assert!(got[0].lease.left(reader.clock.now()) >= S(35));
    assert_eq!(server.modified(), vec![(vec!["b".into()], 40)]);
    // Where that fails, it is not handed over: it comes again when the service says so.
    reader.release(vec![first], NOW).await;
    server.until("sent again", |_| reader.source.held() == 1).await;
    reader.clock.advance(S(10));
    server.modify_goes(Script::Fails(Code::Unavailable));
    assert_eq!(reader.receive_with(1, S(0), S(35)).await.unwrap().len(), 0);
    assert_eq!(reader.source.held(), 0);
}

/// FR-33: a server that takes connections and says nothing is not there.
#[tokio::test]
async fn a_silent_server_is_reported_and_found_again() {
    let server = Scripted::start().await;
    server.silent(true);
    let reader = Reader::new(&server.endpoint(), |_| {}).await;
    let error = reader.receive_for(1, S(0)).await.unwrap_err();
    assert!(matches!(error, ReceiveError::Unavailable(..)), "{error}");
    server.silent(false);
    server.publish("", &["a"]);
    assert_eq!(text(&reader.one().await), "a");
}

/// An idle subscription is answered with nothing, and the first receive does not wait for a message.
#[tokio::test]
async fn a_stream_without_messages_is_known_to_be_there() {
    let server = Scripted::start().await;
    let reader = Reader::new(&server.endpoint(), |_| {}).await;
    assert_eq!(reader.receive_for(1, S(0)).await.unwrap().len(), 0);
    let before = std::time::Instant::now();
    assert_eq!(reader.receive_for(1, Duration::from_millis(300)).await.unwrap().len(), 0);
    assert!(before.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn a_stream_that_ends_as_they_do_is_opened_again_without_a_word() {
    let server = Scripted::start().await;
    let reader = Reader::new(&server.endpoint(), |_| {}).await;
    server.publish("", &["first"]);
    reader.ack(vec![reader.one().await]).await;
    server.end_streams(End::With(Code::Unavailable));
    server.publish("", &["second"]);
    let got = reader.receive_for(1, S(5)).await.expect("an end alone is no failure");
    assert_eq!(texts(&got), ["second"]);
}

#[tokio::test]
async fn every_status_is_told_and_tried_again() {
    let codes = [
        (Code::Unavailable, "unavailable"),
        (Code::Internal, "unavailable"),
        (Code::Unknown, "unavailable"),
        (Code::Aborted, "unavailable"),
        (Code::DeadlineExceeded, "unavailable"),
        (Code::Cancelled, "unavailable"),
        (Code::ResourceExhausted, "unavailable"),
        (Code::NotFound, "missing"),
        (Code::PermissionDenied, "denied"),
        (Code::Unauthenticated, "denied"),
        (Code::InvalidArgument, "other"),
        (Code::FailedPrecondition, "other"),
    ];
    for (code, label) in codes {
        let server = Scripted::start().await;
        server.stream_goes(Script::Fails(code));
        server.publish("", &["a"]);
        let reader = Reader::new(&server.endpoint(), |_| {}).await;
        let error = reader.receive_for(1, S(0)).await.expect_err("it is told");
        assert_eq!(error.label(), label, "{code:?}: {error}");
        assert_eq!(text(&reader.one().await), "a", "{code:?}: it is opened again");
    }
}

/// FR-36: a drain gives back what is held, in order, and hands over nothing.
#[tokio::test]
async fn a_drain_gives_back_what_is_held_at_once() {
    let server = Scripted::start().await;
    let reader = Reader::new(&server.endpoint(), |spec| spec.ordered = true).await;
    server.publish("k", &["a", "b", "c"]);
    let head = reader.one().await;
    server.until("all held", |_| reader.source.held() == 2).await;
    let waiting = reader.source.clone();
    let wait = tokio::spawn(async move { waiting.receive(streaming::ask(1, S(10), S(10))).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    reader.source.interrupt();
    let answer = tokio::time::timeout(S(1), wait).await.expect("at once").unwrap();
    assert_eq!(answer.unwrap().len(), 0);
    tokio::time::timeout(S(1), reader.source.close()).await.expect("within a second");
    assert_eq!(server.modified(), vec![(vec!["b".into(), "c".into()], 0)]);
    assert_eq!(reader.source.held(), 0);
    assert_eq!(reader.receive(10).await.unwrap().len(), 0);
    reader.ack(vec![head]).await;
    let sent = server.sent().len();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(server.sent().len(), sent, "the stream is closed");
}

#[tokio::test]
async fn a_source_that_is_dropped_closes_its_stream() {
    let server = Scripted::start().await;
    let reader = Reader::new(&server.endpoint(), |_| {}).await;
    server.publish("", &["a", "b"]);
    let _first = reader.one().await;
    server.until("held", |_| reader.source.held() == 1).await;
    drop(reader);
    server.until("it is back", |server| server.modified() == vec![(vec!["b".into()], 0)]).await;
}
