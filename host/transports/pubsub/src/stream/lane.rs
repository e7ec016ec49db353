//! What belongs together: the messages of one ordering key, or one message where there is no order.

use std::collections::VecDeque;
use std::time::Duration;

use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::ReceivedMessage;
use pumphouse_contract::Mono;

/// How long a key is remembered whose head went back, beyond the delay that it went back with.
const PATIENCE: Duration = Duration::from_secs(60);

/// The most messages of a key that went back and are waited for.
const REMEMBERED: usize = 10_000;

/// How long a message stays away at least that came before others that it goes after.
const AFTER_OTHERS: Duration = Duration::from_secs(1);

/// A message that was pushed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pushed {
    pub(crate) received: ReceivedMessage,
    /// When it came.
    pub(crate) at: Mono,
    /// When its lease began, or was extended.
    pub(crate) from: Mono,
    /// Until when it is ours.
    pub(crate) until: Mono,
}

impl Pushed {
    pub(crate) fn id(&self) -> &str {
        self.received.message.as_ref().map_or("", |message| &message.message_id)
    }

    pub(crate) fn key(&self) -> &str {
        self.received.message.as_ref().map_or("", |message| &message.ordering_key)
    }

    pub(crate) fn ack_id(&self) -> &str {
        &self.received.ack_id
    }

    /// Whether less than `need` is left of its lease. Never twice within a quarter of it, so that a need that no
    /// lease can meet makes no stream of calls.
    pub(crate) fn is_due(&self, now: Mono, need: Duration) -> bool {
        let quarter = self.until.since(self.from) / 4;
        self.until.since(now) < need && now.since(self.from) >= quarter
    }
}

/// What a pump has.
#[derive(Debug)]
pub(crate) struct Out {
    pub(crate) id: String,
    pub(crate) ack_id: String,
    pub(crate) until: Mono,
}

/// A hole behind what is held: messages that went back, which come again before any other.
#[derive(Debug)]
pub(crate) struct Gap {
    /// In their order.
    gone: VecDeque<String>,
    /// When the first may be here again.
    back: Mono,
}

impl Gap {
    pub(crate) fn new(first: String, others: impl IntoIterator<Item = String>, back: Mono) -> Self {
        let mut gap = Self { gone: VecDeque::from([first]), back };
        gap.also(others);
        gap
    }

    /// Whether this one is what comes next. As a rule that is the first that is still away. Where a later one is here
    /// although the first may be, those before it will not come, since the service keeps their order: the policy
    /// forwarded them, or another host has them.
    fn arrives(&mut self, id: &str, now: Mono) -> bool {
        if self.is_over(now) {
            self.gone.clear();
            return true;
        }
        match self.gone.iter().position(|gone| gone == id) {
            None => false,
            Some(at) if at > 0 && now < self.back => false,
            Some(at) => {
                self.gone.drain(..=at);
                true
            }
        }
    }

    pub(crate) fn is_over(&self, now: Mono) -> bool {
        now >= self.back.plus(PATIENCE)
    }

    /// Takes note of others that went back, behind those that did before. Beyond the bound it is left to the service's
    /// own order.
    pub(crate) fn also(&mut self, ids: impl IntoIterator<Item = String>) {
        for id in ids {
            if self.gone.len() < REMEMBERED && !self.gone.contains(&id) {
                self.gone.push_back(id);
            }
        }
    }
}

/// What is to become of a message that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The newer delivery of one that is held, at this index.
    Instead(usize),
    /// The newer delivery of the one that a pump has: before all others.
    Front,
    /// Behind the others.
    Back,
    /// Not before others that went back: it goes after them, after this delay.
    Away(Duration),
}

/// A settlement on its way that takes what is held along.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub(crate) delay: Duration,
    /// What goes along.
    pub(crate) followers: VecDeque<Pushed>,
    /// What arrives meanwhile; judged when it is answered.
    pub(crate) meanwhile: VecDeque<Pushed>,
    /// What there was no room for meanwhile.
    pub(crate) refused: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Lane {
    pub(crate) queue: VecDeque<Pushed>,
    pub(crate) out: Option<Out>,
    pub(crate) leaving: Option<Leaving>,
    pub(crate) gap: Option<Gap>,
    /// Whether it stands in the row of those that have something to hand over.
    pub(crate) listed: bool,
}

impl Lane {
    /// Whether its first may be handed over.
    pub(crate) fn is_free(&self) -> bool {
        self.out.is_none() && self.leaving.is_none() && !self.queue.is_empty()
    }

    /// Whether there is nothing of it here.
    pub(crate) fn is_idle(&self) -> bool {
        self.out.is_none() && self.leaving.is_none() && self.queue.is_empty()
    }

    /// Whether nothing needs to be known of it any more.
    pub(crate) fn is_over(&self, now: Mono) -> bool {
        self.is_idle() && self.gap.as_ref().is_none_or(|gap| gap.is_over(now))
    }

    /// Where a message belongs. Takes note of it where it can't stay.
    pub(crate) fn place(&mut self, id: &str, now: Mono) -> Place {
        if self.out.as_ref().is_some_and(|out| out.id == id) {
            let first = self.queue.front().is_some_and(|first| first.id() == id);
            return if first { Place::Instead(0) } else { Place::Front };
        }
        if let Some(at) = self.queue.iter().position(|held| held.id() == id) {
            return Place::Instead(at);
        }
        let Some(gap) = &mut self.gap else { return Place::Back };
        if gap.arrives(id, now) {
            if gap.gone.is_empty() {
                self.gap = None;
            }
            return Place::Back;
        }
        gap.also([id.to_owned()]);
        Place::Away(gap.back.since(now).max(AFTER_OTHERS))
    }

    /// These went back, before others that did already.
    pub(crate) fn leave(
        &mut self,
        first: String,
        others: impl IntoIterator<Item = String>,
        back: Mono,
    ) {
        let mut gap = Gap::new(first, others, back);
        gap.also(self.gap.take().into_iter().flat_map(|before| before.gone));
        self.gap = Some(gap);
    }

    /// Takes everything from this index on out of the queue; what comes next is one of them.
    pub(crate) fn cut(&mut self, from: usize, back: Mono) -> Vec<Pushed> {
        let cut: Vec<Pushed> = self.queue.drain(from.min(self.queue.len())..).collect();
        if let Some(first) = cut.first() {
            let gone = cut.iter().map(|held| held.id().to_owned());
            self.leave(first.id().to_owned(), gone, back);
        }
        cut
    }
}
