//! What was pushed and is not settled: what may be handed over, what goes back with what, what must be extended.
//!
//! Nothing here waits or calls. Where messages go back, the answer says which and with what delay; whoever calls
//! sends that, in the order given.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use pumphouse_contract::Mono;

use super::lane::{Gap, Lane, Leaving, Out, Place, Pushed};

/// The delay of what there is no room for. At once, it would be pushed again at once.
pub(crate) const SURPLUS_AFTER: Duration = Duration::from_secs(10);

/// The longest that a message is held.
pub(crate) const LONGEST_HELD: Duration = Duration::from_secs(3600);

/// The most keys of which no more is known than that something of them went back.
const REMEMBERED: usize = 10_000;

/// What goes back: ids of acknowledgement in the order of publication, by delay.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Returns(pub(crate) Vec<(Duration, Vec<String>)>);

impl Returns {
    fn add(&mut self, delay: Duration, ack_id: String) {
        match self.0.iter_mut().find(|(of, _)| *of == delay) {
            Some((_, ids)) => ids.push(ack_id),
            None => self.0.push((delay, vec![ack_id])),
        }
    }
}

/// What came of a push.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// What can't stay.
    pub(crate) back: Returns,
    /// How many of them for want of room.
    pub(crate) surplus: usize,
    /// How many are being handled already.
    pub(crate) duplicates: usize,
}

/// What time has brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// Held messages whose lease ends soon.
    pub(crate) extend: Vec<String>,
    /// Held messages that were held for too long, or whose order is lost.
    pub(crate) back: Returns,
    /// How many messages' leases ended, held or handed over.
    pub(crate) lapsed: usize,
}

/// Ids of acknowledgement, and whether their leases were extended.
pub(crate) type Tried = HashMap<String, bool>;

/// One ordering key, or one message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Name {
    Key(String),
    Alone(String),
}

/// How a settlement ended that took followers along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// It went back, or is no longer ours.
    Gone,
    /// It may be tried again.
    Still,
}

/// Why a message will not be settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Its lease is over: the service may send it again.
    Free,
    /// It could not be settled. The service keeps it until its lease ends.
    Leased,
}

#[derive(Debug)]
pub(crate) struct Shelf {
    bound: usize,
    ordered: bool,
    closed: bool,
    held: usize,
    lanes: HashMap<Name, Lane>,
    /// The lanes that have something to hand over, in the order in which they came to.
    row: VecDeque<Name>,
    /// What is handed over, by id of acknowledgement.
    out: HashMap<String, Name>,
}

impl Shelf {
    pub(crate) fn new(bound: usize, ordered: bool) -> Self {
        Self {
            bound,
            ordered,
            closed: false,
            held: 0,
            lanes: HashMap::new(),
            row: VecDeque::new(),
            out: HashMap::new(),
        }
    }

    /// How many are held: pushed, and not handed over.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    fn name(&self, pushed: &Pushed) -> Name {
        match pushed.key() {
            key if self.ordered && !key.is_empty() => Name::Key(key.to_owned()),
            _ => Name::Alone(pushed.id().to_owned()),
        }
    }

    /// Takes what was pushed, in its order.
    pub(crate) fn push(&mut self, messages: Vec<Pushed>, now: Mono) -> Arrived {
        let mut arrived = Arrived::default();
        for pushed in messages {
            let name = self.name(&pushed);
            let mut lane = self.lanes.remove(&name).unwrap_or_default();
            self.admit(&mut lane, pushed, now, &mut arrived);
            self.keep(name, lane, now);
        }
        arrived
    }

    fn admit(&mut self, lane: &mut Lane, pushed: Pushed, now: Mono, arrived: &mut Arrived) {
        if self.closed {
            return arrived.back.add(Duration::ZERO, pushed.received.ack_id);
        }
        if lane.leaving.is_some() {
            return self.admit_meanwhile(lane, pushed, arrived);
        }
        self.settle_in(lane, pushed, now, arrived);
    }

    /// While the group of a message is on its way back nothing can be said of it.
    fn admit_meanwhile(&mut self, lane: &mut Lane, pushed: Pushed, arrived: &mut Arrived) {
        let full = self.held >= self.bound;
        let Some(leaving) = &mut lane.leaving else { return };
        // Nothing may overtake one that was refused.
        if full || !leaving.refused.is_empty() {
            leaving.refused.push(pushed.id().to_owned());
            arrived.surplus += 1;
            arrived.back.add(SURPLUS_AFTER, pushed.received.ack_id);
        } else {
            leaving.meanwhile.push_back(pushed);
            self.held += 1;
        }
    }

    fn settle_in(&mut self, lane: &mut Lane, pushed: Pushed, now: Mono, arrived: &mut Arrived) {
        let handled = lane.out.as_ref().is_some_and(|out| out.id == pushed.id());
        arrived.duplicates += usize::from(handled);
        match lane.place(pushed.id(), now) {
            Place::Instead(at) => {
                if let Some(held) = lane.queue.get_mut(at) {
                    *held = pushed;
                }
            }
            Place::Away(delay) => arrived.back.add(delay, pushed.received.ack_id),
            Place::Front | Place::Back if self.held >= self.bound => {
                if self.ordered && !handled {
                    let back = now.plus(SURPLUS_AFTER);
                    lane.leave(pushed.id().to_owned(), [], back);
                }
                arrived.surplus += 1;
                arrived.back.add(SURPLUS_AFTER, pushed.received.ack_id);
            }
            Place::Front => {
                lane.queue.push_front(pushed);
                self.held += 1;
            }
            Place::Back => {
                lane.queue.push_back(pushed);
                self.held += 1;
            }
        }
    }

    /// Puts a lane back where it was, into the row where it has something to hand over.
    fn keep(&mut self, name: Name, mut lane: Lane, now: Mono) {
        // The service keeps their order too; a key more or less that is only remembered does no harm.
        let many = self.lanes.len() >= self.bound.saturating_add(REMEMBERED);
        if lane.is_over(now) || (many && lane.is_idle()) {
            return;
        }
        if lane.is_free() && !lane.listed {
            lane.listed = true;
            self.row.push_back(name.clone());
        }
        self.lanes.insert(name, lane);
    }

    /// Hands over up to so many, one of each key.
    pub(crate) fn take(&mut self, max: usize, now: Mono) -> Vec<Pushed> {
        let mut taken = Vec::new();
        for _ in 0..self.row.len() {
            if taken.len() >= max {
                break;
            }
            let Some(name) = self.row.pop_front() else { break };
            let Some(lane) = self.lanes.get_mut(&name) else { continue };
            lane.listed = false;
            if !lane.is_free() {
                continue;
            }
            // One whose lease is over stays for `due` to find.
            let Some(pushed) = lane.queue.pop_front_if(|first| first.until > now) else { continue };
            self.held -= 1;
            let ack_id = pushed.ack_id().to_owned();
            lane.out = Some(Out {
                id: pushed.id().to_owned(),
                ack_id: ack_id.clone(),
                until: pushed.until,
            });
            self.out.insert(ack_id, name);
            taken.push(pushed);
        }
        taken
    }

    /// What was asked to be extended at `from`: those that were now last until `until`, and the others are not asked
    /// for again at once.
    pub(crate) fn extended(&mut self, tried: &Tried, from: Mono, until: Mono) {
        for lane in self.lanes.values_mut() {
            for held in lane.queue.iter_mut() {
                match tried.get(held.ack_id()) {
                    Some(true) => (held.from, held.until) = (from, until),
                    Some(false) => held.from = from,
                    None => {}
                }
            }
            if let Some(out) = lane.out.as_mut()
                && tried.get(&out.ack_id) == Some(&true)
            {
                out.until = until;
            }
        }
    }

    /// A message was acknowledged: the next of its key may go.
    pub(crate) fn acknowledged(&mut self, ack_id: &str, now: Mono) {
        let Some((name, mut lane)) = self.handed_over(ack_id) else { return };
        lane.out = None;
        self.keep(name, lane, now);
    }

    /// A message will not be settled: what is held of its key goes back, for as long as the message itself may take.
    pub(crate) fn lost(&mut self, ack_id: &str, lost: Lost, now: Mono) -> Returns {
        let mut back = Returns::default();
        let Some((name, mut lane)) = self.handed_over(ack_id) else { return back };
        self.lose(&mut lane, lost, now, &mut back);
        self.keep(name, lane, now);
        back
    }

    fn lose(&mut self, lane: &mut Lane, lost: Lost, now: Mono, back: &mut Returns) {
        let Some(out) = lane.out.take() else { return };
        self.out.remove(&out.ack_id);
        // Pushed again already: it is the next.
        if lane.queue.front().is_some_and(|first| first.id() == out.id) {
            return;
        }
        let from = match lost {
            Lost::Free => now,
            Lost::Leased => out.until.max(now),
        };
        let cut = self.cut(lane, 0, from);
        if self.ordered {
            let gone = cut.iter().map(|held| held.id().to_owned());
            lane.leave(out.id, gone, from);
        }
        for held in cut {
            back.add(from.since(now), held.received.ack_id);
        }
    }

    /// A message is to go back: what is held of its key goes with it, in this order, in the same request.
    /// [`Shelf::released`] is told the end.
    pub(crate) fn releasing(&mut self, ack_id: &str, delay: Duration) -> Vec<String> {
        let lane = self.out.get(ack_id).and_then(|name| self.lanes.get_mut(name));
        let Some(lane) = lane.filter(|lane| lane.leaving.is_none()) else { return Vec::new() };
        let followers = std::mem::take(&mut lane.queue);
        let ids = followers.iter().map(|held| held.ack_id().to_owned()).collect();
        let (meanwhile, refused) = (VecDeque::new(), Vec::new());
        lane.leaving = Some(Leaving { delay, followers, meanwhile, refused });
        ids
    }

    /// The end of what [`Shelf::releasing`] began. What arrived meanwhile is judged now.
    pub(crate) fn released(&mut self, ack_id: &str, left: Left, now: Mono) -> Arrived {
        let mut arrived = Arrived::default();
        let Some(name) = self.out.get(ack_id).cloned() else { return arrived };
        let Some(mut lane) = self.lanes.remove(&name) else { return arrived };
        if let Some(leaving) = lane.leaving.take() {
            self.held -= leaving.meanwhile.len();
            match left {
                Left::Gone => self.leave(&mut lane, leaving.delay, &leaving.followers, now),
                Left::Still => lane.queue = leaving.followers,
            }
            for pushed in leaving.meanwhile {
                self.admit(&mut lane, pushed, now, &mut arrived);
            }
            if self.ordered && !leaving.refused.is_empty() {
                let back = now.plus(SURPLUS_AFTER);
                let first = leaving.refused.first().cloned().unwrap_or_default();
                let gap = lane.gap.get_or_insert_with(|| Gap::new(first, [], back));
                gap.also(leaving.refused);
            }
        }
        if self.closed {
            for held in self.cut(&mut lane, 0, now) {
                arrived.back.add(Duration::ZERO, held.received.ack_id);
            }
        }
        self.keep(name, lane, now);
        arrived
    }

    fn leave(&mut self, lane: &mut Lane, delay: Duration, gone: &VecDeque<Pushed>, now: Mono) {
        self.held -= gone.len();
        let Some(out) = lane.out.take() else { return };
        self.out.remove(&out.ack_id);
        if self.ordered {
            let gone = gone.iter().map(|held| held.id().to_owned());
            lane.leave(out.id, gone, now.plus(delay));
        }
    }

    /// What time has brought. A held message is extended when less than `need` is left of its lease.
    pub(crate) fn due(&mut self, now: Mono, need: Duration) -> Due {
        let mut due = Due::default();
        for (name, mut lane) in std::mem::take(&mut self.lanes) {
            if lane.leaving.is_none() {
                self.look_after(&mut lane, now, need, &mut due);
            }
            self.keep(name, lane, now);
        }
        due
    }

    fn look_after(&mut self, lane: &mut Lane, now: Mono, need: Duration, due: &mut Due) {
        if lane.out.as_ref().is_some_and(|out| out.until <= now) {
            due.lapsed += 1;
            self.lose(lane, Lost::Free, now, &mut due.back);
        }
        let ended = |held: &Pushed| held.until <= now || held.at.plus(LONGEST_HELD) <= now;
        if let Some(at) = lane.queue.iter().position(ended) {
            for held in self.cut(lane, at, now) {
                match held.until > now {
                    true => due.back.add(Duration::ZERO, held.received.ack_id),
                    false => due.lapsed += 1,
                }
            }
        }
        let ends_soon = lane.queue.iter().filter(|held| held.is_due(now, need));
        due.extend.extend(ends_soon.map(|held| held.ack_id().to_owned()));
    }

    /// Gives back all that is held, in order, and takes nothing any more.
    pub(crate) fn close(&mut self, now: Mono) -> Returns {
        self.closed = true;
        self.row.clear();
        let mut back = Returns::default();
        for (name, mut lane) in std::mem::take(&mut self.lanes) {
            lane.listed = false;
            for held in self.cut(&mut lane, 0, now) {
                back.add(Duration::ZERO, held.received.ack_id);
            }
            self.keep(name, lane, now);
        }
        back
    }

    fn cut(&mut self, lane: &mut Lane, from: usize, back: Mono) -> Vec<Pushed> {
        let cut = lane.cut(from, back);
        self.held -= cut.len();
        if !self.ordered {
            lane.gap = None;
        }
        cut
    }

    fn handed_over(&mut self, ack_id: &str) -> Option<(Name, Lane)> {
        let name = self.out.remove(ack_id)?;
        let lane = self.lanes.remove(&name)?;
        Some((name, lane))
    }
}
