use std::time::Duration;

use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{PubsubMessage, ReceivedMessage};
use proptest::prelude::*;
use pumphouse_contract::Mono;

use super::lane::Pushed;
use super::shelf::{LONGEST_HELD, Left, Lost, Returns, Shelf, Tried};

const S: fn(u64) -> Duration = Duration::from_secs;
const LEASE: u64 = 40;
const NEED: Duration = Duration::from_secs(15);

fn at(seconds: u64) -> Mono {
    Mono(S(seconds))
}

/// `id` with its delivery, `a1`; of one key where that is not empty.
fn pushed(key: &str, ack_id: &str, now: u64) -> Pushed {
    let message = PubsubMessage {
        message_id: ack_id.split_at(1).0.to_owned(),
        ordering_key: key.to_owned(),
        ..PubsubMessage::default()
    };
    let received =
        ReceivedMessage { ack_id: ack_id.to_owned(), message: Some(message), delivery_attempt: 0 };
    Pushed { received, at: at(now), from: at(now), until: at(now + LEASE) }
}

fn push(shelf: &mut Shelf, key: &str, ack_ids: &[&str], now: u64) -> Returns {
    let messages = ack_ids.iter().map(|ack_id| pushed(key, ack_id, now)).collect();
    shelf.push(messages, at(now)).back
}

fn take(shelf: &mut Shelf, now: u64) -> Vec<String> {
    shelf.take(100, at(now)).iter().map(|one| one.ack_id().to_owned()).collect()
}

fn back(delay: u64, ack_ids: &[&str]) -> Returns {
    Returns(vec![(S(delay), ack_ids.iter().map(|&id| id.to_owned()).collect())])
}

fn all(ack_ids: Vec<String>) -> Tried {
    ack_ids.into_iter().map(|id| (id, true)).collect()
}

fn ordered() -> Shelf {
    Shelf::new(10, true)
}

#[test]
fn without_order_all_go_at_once_in_the_order_of_their_arrival() {
    let mut shelf = Shelf::new(10, false);
    push(&mut shelf, "k", &["a1", "b1", "c1"], 0);
    assert_eq!(take(&mut shelf, 0), ["a1", "b1", "c1"]);
}

#[test]
fn of_a_key_the_next_goes_when_the_one_before_is_acknowledged() {
    let mut shelf = ordered();
    push(&mut shelf, "k", &["a1", "b1"], 0);
    push(&mut shelf, "l", &["x1"], 0);
    assert_eq!(take(&mut shelf, 0), ["a1", "x1"]);
    assert_eq!(take(&mut shelf, 0), Vec::<String>::new());
    shelf.acknowledged("a1", at(1));
    assert_eq!(take(&mut shelf, 1), ["b1"]);
    assert_eq!(shelf.held(), 0);
}

#[test]
fn a_newer_delivery_takes_the_place_of_one_that_is_held() {
    let mut shelf = ordered();
    push(&mut shelf, "k", &["a1", "b1", "c1"], 0);
    assert_eq!(take(&mut shelf, 0), ["a1"]);
    push(&mut shelf, "k", &["b2", "c2"], 5);
    assert_eq!(shelf.held(), 2);
    shelf.acknowledged("a1", at(6));
    assert_eq!(take(&mut shelf, 6), ["b2"]);
}

#[test]
fn what_arrives_while_the_group_is_on_its_way_is_judged_when_that_is_answered() {
    let cases: [(Left, &[&str], Returns, &[&str]); 4] = [
        // The head is here again before its release was answered.
        (Left::Gone, &["a2", "b2"], Returns::default(), &["a2"]),
        // One that was sent before the service had read the release goes behind the head.
        (Left::Gone, &["c1"], back(7, &["c1"]), &[]),
        (Left::Gone, &["c1", "a2", "b2", "c2"], back(7, &["c1"]), &["a2"]),
        // The release is to be tried again: all wait.
        (Left::Still, &["a2", "b2", "c1"], Returns::default(), &[]),
    ];
    for (left, meanwhile, goes, next) in cases {
        let mut shelf = ordered();
        push(&mut shelf, "k", &["a1", "b1"], 0);
        assert_eq!(take(&mut shelf, 0), ["a1"]);
        assert_eq!(shelf.releasing("a1", S(7)), ["b1"]);
        assert_eq!(push(&mut shelf, "k", meanwhile, 1), Returns::default());
        assert_eq!(take(&mut shelf, 1), Vec::<String>::new(), "{left:?} {meanwhile:?}");
        let arrived = shelf.released("a1", left, at(1));
        assert_eq!(arrived.back, goes, "{left:?} {meanwhile:?}");
        assert_eq!(take(&mut shelf, 1), next, "{left:?} {meanwhile:?}");
    }
}

#[test]
fn a_release_that_is_tried_again_takes_what_is_held_by_then() {
    let mut shelf = ordered();
    push(&mut shelf, "k", &["a1", "b1"], 0);
    take(&mut shelf, 0);
    shelf.releasing("a1", S(0));
    push(&mut shelf, "k", &["a2", "b2", "c1"], 0);
    assert_eq!(shelf.released("a1", Left::Still, at(0)).duplicates, 1);
    assert_eq!(shelf.held(), 3);
    assert_eq!(shelf.releasing("a1", S(0)), ["a2", "b2", "c1"]);
    shelf.released("a1", Left::Gone, at(0));
    assert_eq!(shelf.held(), 0);
}

/// Where the head was forwarded by the policy, its followers come without it.
#[test]
fn a_head_that_never_comes_again_holds_nobody_up() {
    let mut shelf = ordered();
    push(&mut shelf, "k", &["a1", "b1"], 0);
    take(&mut shelf, 0);
    shelf.releasing("a1", S(0));
    shelf.released("a1", Left::Gone, at(0));
    assert_eq!(push(&mut shelf, "k", &["b2"], 0), Returns::default());
    assert_eq!(take(&mut shelf, 0), ["b2"]);
}

/// S-6: a later message is not handed over between the returns of two that went back together.
#[test]
fn all_that_went_back_are_waited_for() {
    let mut shelf = ordered();
    push(&mut shelf, "k", &["a1", "b1"], 0);
    take(&mut shelf, 0);
    shelf.releasing("a1", S(0));
    shelf.released("a1", Left::Gone, at(0));
    assert_eq!(push(&mut shelf, "k", &["a2"], 0), Returns::default());
    assert_eq!(push(&mut shelf, "k", &["d1"], 0), back(1, &["d1"]));
    for next in [["a2"], ["b2"], ["d2"]] {
        push(&mut shelf, "k", &next, 1);
        assert_eq!(take(&mut shelf, 1), next);
        shelf.acknowledged(next[0], at(1));
    }
}

#[test]
fn a_message_behind_a_lost_head_goes_back_and_the_head_is_next() {
    let mut shelf = ordered();
    push(&mut shelf, "k", &["a1", "b1", "c1"], 0);
    take(&mut shelf, 0);
    assert_eq!(shelf.lost("a1", Lost::Free, at(1)), back(0, &["b1", "c1"]));
    assert_eq!(push(&mut shelf, "k", &["d1"], 1), back(1, &["d1"]));
    push(&mut shelf, "k", &["a2", "b2"], 2);
    assert_eq!(take(&mut shelf, 2), ["a2"]);
}

/// A head that could not be settled is the service's until its lease ends; nothing may come before it.
#[test]
fn behind_a_head_that_is_still_leased_nothing_comes_before_it() {
    let mut shelf = ordered();
    push(&mut shelf, "k", &["a1", "b1"], 0);
    take(&mut shelf, 0);
    assert_eq!(shelf.lost("a1", Lost::Leased, at(10)), back(30, &["b1"]));
    assert_eq!(push(&mut shelf, "k", &["c1"], 11), back(29, &["c1"]));
    assert_eq!(
        push(&mut shelf, "k", &["b2"], 39),
        back(1, &["b2"]),
        "not before the head may come"
    );
    push(&mut shelf, "k", &["a2", "b3", "c2"], 40);
    assert_eq!(take(&mut shelf, 40), ["a2"]);
}

#[test]
fn a_lease_that_ends_without_a_settlement_frees_its_key() {
    let mut shelf = ordered();
    push(&mut shelf, "k", &["a1", "b1"], 0);
    take(&mut shelf, 0);
    let due = shelf.due(at(26), NEED);
    assert_eq!(due.extend, ["b1"], "what is handed over is never extended");
    shelf.extended(&all(due.extend), at(26), at(66));
    assert_eq!(shelf.due(at(26), NEED).extend, Vec::<String>::new());
    let due = shelf.due(at(40), NEED);
    assert_eq!((due.back, due.lapsed), (back(0, &["b1"]), 1));
    push(&mut shelf, "k", &["a2", "b2"], 41);
    assert_eq!(take(&mut shelf, 41), ["a2"]);
}

#[test]
fn nothing_is_held_for_more_than_an_hour() {
    let mut shelf = ordered();
    push(&mut shelf, "k", &["a1", "b1", "c1"], 0);
    for now in (0..LONGEST_HELD.as_secs()).step_by(20) {
        let due = shelf.due(at(now), S(21));
        assert_eq!(due.back, Returns::default(), "after {now} s");
        shelf.extended(&all(due.extend), at(now), at(now + LEASE));
    }
    assert_eq!(shelf.due(at(3600), NEED).back, back(0, &["a1", "b1", "c1"]));
    assert_eq!(shelf.held(), 0);
}

#[test]
fn a_need_that_no_lease_meets_makes_no_stream_of_extensions() {
    let mut shelf = ordered();
    push(&mut shelf, "k", &["a1"], 0);
    assert_eq!(shelf.due(at(9), S(99)).extend, Vec::<String>::new());
    assert_eq!(shelf.due(at(10), S(99)).extend, ["a1"]);
    // One that fails is not asked for again at once.
    shelf.extended(&Tried::from([("a1".to_owned(), false)]), at(10), at(50));
    assert_eq!(shelf.due(at(17), S(99)).extend, Vec::<String>::new());
    assert_eq!(shelf.due(at(18), S(99)).extend, ["a1"]);
    assert_eq!(shelf.due(at(40), S(99)).lapsed, 1);
}

#[test]
fn past_the_bound_the_rest_of_a_key_goes_back_behind_what_is_held() {
    let mut shelf = Shelf::new(2, true);
    assert_eq!(push(&mut shelf, "k", &["a1", "b1", "c1", "d1"], 0), back(10, &["c1", "d1"]));
    assert_eq!(take(&mut shelf, 0), ["a1"]);
    shelf.acknowledged("a1", at(0));
    assert_eq!(take(&mut shelf, 0), ["b1"]);
    // There is room again, but c comes first.
    assert_eq!(push(&mut shelf, "k", &["e1"], 4), back(6, &["e1"]));
    shelf.acknowledged("b1", at(4));
    push(&mut shelf, "k", &["c2", "d2", "e2"], 10);
    assert_eq!(take(&mut shelf, 10), ["c2"]);
}

#[test]
fn a_closed_shelf_gives_back_and_keeps_nothing() {
    let mut shelf = ordered();
    push(&mut shelf, "k", &["a1", "b1", "c1"], 0);
    take(&mut shelf, 0);
    assert_eq!(shelf.close(at(1)), back(0, &["b1", "c1"]));
    assert_eq!(push(&mut shelf, "k", &["d1"], 1), back(0, &["d1"]));
    assert_eq!((take(&mut shelf, 1), shelf.held()), (Vec::new(), 0));
    assert_eq!(shelf.releasing("a1", S(0)), Vec::<String>::new());
}

/// One key of a service that sends again, behind a message that goes back, all that it sent after it.
struct Service {
    /// Of each message: how often it was sent, and whether it waits, until when, or is done.
    messages: Vec<(u64, At)>,
}

#[derive(Clone, Copy, PartialEq)]
enum At {
    Waits(u64),
    Sent { until: u64 },
    Done,
}

impl Service {
    fn id(number: usize) -> char {
        char::from(b'a' + u8::try_from(number).unwrap())
    }

    fn number(&self, ack_id: &str) -> Option<usize> {
        let number = usize::from(ack_id.as_bytes()[0] - b'a');
        let current = format!("{}{}", Self::id(number), self.messages[number].0) == ack_id;
        (current && matches!(self.messages[number].1, At::Sent { .. })).then_some(number)
    }

    fn push(&mut self, most: usize, now: u64) -> Vec<Pushed> {
        let mut pushed = Vec::new();
        for number in 0..self.messages.len() {
            let (sent, state) = self.messages[number];
            let free = match state {
                At::Waits(until) => until <= now,
                At::Sent { until } => until <= now,
                At::Done => continue,
            };
            if pushed.len() >= most || (sent > 0 && !free && matches!(state, At::Waits(_))) {
                break;
            }
            if !free {
                continue;
            }
            self.messages[number] = (sent + 1, At::Sent { until: now + LEASE });
            let ack_id = format!("{}{}", Self::id(number), sent + 1);
            pushed.push(self::pushed("k", &ack_id, now));
            if sent > 0 {
                for later in self.messages[number + 1..].iter_mut().filter(|it| it.1 != At::Done) {
                    later.1 = At::Waits(now);
                }
            }
        }
        pushed
    }

    fn back(&mut self, delay: Duration, ack_ids: &[String], now: u64) {
        for number in ack_ids.iter().filter_map(|id| self.number(id)).collect::<Vec<_>>() {
            self.messages[number].1 = At::Waits(now + delay.as_secs());
        }
    }

    fn all_back(&mut self, back: Returns, now: u64) {
        for (delay, ids) in back.0 {
            self.back(delay, &ids, now);
        }
    }

    fn extend(&mut self, tried: &Tried, now: u64) {
        for number in tried.keys().filter_map(|id| self.number(id)).collect::<Vec<_>>() {
            self.messages[number].1 = At::Sent { until: now + LEASE };
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Push(usize),
    Take,
    Acknowledge,
    LoseAcknowledgement,
    Release { delay: u64, meanwhile: usize, fails: bool },
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let release = (0_u64..3, 0_usize..4, any::<bool>())
        .prop_map(|(delay, meanwhile, fails)| Step::Release { delay, meanwhile, fails });
    let step = prop_oneof![
        (1_usize..6).prop_map(Step::Push),
        Just(Step::Take),
        Just(Step::Acknowledge),
        Just(Step::LoseAcknowledgement),
        release,
        (1_u64..45).prop_map(Step::Pass),
    ];
    proptest::collection::vec(step, 0..60)
}

/// A pump with one handler for the key, a shelf and a service.
struct World {
    shelf: Shelf,
    service: Service,
    bound: usize,
    now: u64,
    handled: Option<String>,
}

impl World {
    fn new(bound: usize) -> Self {
        let service = Service { messages: vec![(0, At::Waits(0)); 8] };
        Self { shelf: Shelf::new(bound, true), service, bound, now: 0, handled: None }
    }

    fn push(&mut self, most: usize) {
        let arrived = self.shelf.push(self.service.push(most, self.now), at(self.now));
        self.service.all_back(arrived.back, self.now);
        assert!(self.shelf.held() <= self.bound, "the bound is kept");
    }

    fn take(&mut self) {
        let taken = self.shelf.take(10, at(self.now));
        assert!(taken.len() <= 1, "one of a key at a time");
        let Some(one) = taken.first() else { return };
        let number = usize::from(one.id().as_bytes()[0] - b'a');
        for before in &self.service.messages[..number] {
            assert!(before.1 == At::Done, "{} overtook another", one.ack_id());
        }
        self.handled = Some(one.ack_id().to_owned());
    }

    fn acknowledge(&mut self) {
        let Some(ack_id) = self.handled.take() else { return };
        let Some(number) = self.service.number(&ack_id) else {
            // The service says that the lease is lost.
            let back = self.shelf.lost(&ack_id, Lost::Free, at(self.now));
            return self.service.all_back(back, self.now);
        };
        self.service.messages[number].1 = At::Done;
        self.shelf.acknowledged(&ack_id, at(self.now));
    }

    fn release(&mut self, delay: u64, meanwhile: usize, fails: bool) {
        let Some(ack_id) = self.handled.clone() else { return };
        let mut ids = vec![ack_id.clone()];
        ids.extend(self.shelf.releasing(&ack_id, S(delay)));
        if !fails {
            self.service.back(S(delay), &ids, self.now);
        }
        if meanwhile > 0 {
            self.push(meanwhile);
        }
        let left = if fails { Left::Still } else { Left::Gone };
        let arrived = self.shelf.released(&ack_id, left, at(self.now));
        self.service.all_back(arrived.back, self.now);
        if !fails {
            self.handled = None;
        }
    }

    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += 1;
            let due = self.shelf.due(at(self.now), NEED);
            self.service.all_back(due.back, self.now);
            let extend = all(due.extend);
            self.service.extend(&extend, self.now);
            self.shelf.extended(&extend, at(self.now), at(self.now + LEASE));
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Push(most) => self.push(most),
            Step::Take => self.take(),
            Step::Acknowledge => self.acknowledge(),
            Step::LoseAcknowledgement => {
                let Some(ack_id) = self.handled.take() else { return };
                let back = self.shelf.lost(&ack_id, Lost::Leased, at(self.now));
                self.service.all_back(back, self.now);
            }
            Step::Release { delay, meanwhile, fails } => self.release(delay, meanwhile, fails),
            Step::Pass(seconds) => self.pass(seconds),
        }
    }
}

proptest! {
    /// S-6, and the bound: whatever happens, no message of a key overtakes another, and none is lost.
    #[test]
    fn no_message_of_a_key_overtakes_another_and_none_is_lost(
        steps in steps(),
        bound in 1_usize..9,
    ) {
        let mut world = World::new(bound);
        for step in steps {
            world.step(step);
        }
        for _ in 0..2_000 {
            world.push(10);
            world.take();
            world.acknowledge();
            world.pass(1);
        }
        let left = world.service.messages.iter().filter(|it| it.1 != At::Done).count();
        prop_assert_eq!(left, 0, "lost");
        prop_assert_eq!(world.shelf.held(), 0);
    }
}
