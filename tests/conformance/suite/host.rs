//! A host as a trial runs it: the real pump over the row's real source and sinks, with a guest in the sandbox.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, ensure};
use pumphouse_contract::ports::{Capabilities, Sink, Source, State};
use pumphouse_contract::{Backoff, Budget, Jitter, LeaseBudget, OnFault, Policy};
use pumphouse_pump::{Deduplicate, Dispatch, KeySource, Pump, Settings, Sinks, Subscription};
use tracing::Level;

use crate::bench::{Channel, until};
use crate::cell::{Cell, Variant};
use crate::logs::{self, Line};
use crate::recorder::{Calls, Notes, Recorded};
use crate::rows::{Fault, Place};
use crate::tap::{Leak, Tap};

/// Deliveries at once in the concurrent variant.
const CONCURRENCY: usize = 4;

/// How long a host may take to stop.
const GRACE: Duration = Duration::from_secs(20);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The lease of most cases: longer than anything takes on a busy machine.
const LONG: LeaseBudget = LeaseBudget {
    queue_wait: ms(1_000),
    deadline: ms(10_000),
    linger: ms(5),
    settle_timeout: ms(5_000),
    settle_tries: 3,
    publish_timeout: Some(ms(5_000)),
    skew: ms(1_000),
};

/// A lease of two seconds, for cases that wait until it lapses.
const SHORT: LeaseBudget = LeaseBudget {
    queue_wait: ms(100),
    deadline: ms(300),
    linger: Duration::ZERO,
    settle_timeout: ms(400),
    settle_tries: 2,
    publish_timeout: Some(ms(500)),
    skew: ms(300),
};

/// Which guest handles the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guest {
    /// Does what the message says.
    Steered,
    /// Rejects what is no text.
    TextOnly,
}

/// What a case configures.
#[derive(Clone)]
pub(crate) struct Setup {
    /// `max_deliveries`.
    pub(crate) budget: i64,
    pub(crate) backoff: Backoff,
    pub(crate) window: Option<Duration>,
    pub(crate) on_fault: OnFault,
    pub(crate) dead_letter: Option<Place>,
    pub(crate) invalid_message: Option<Place>,
    /// What is read: the source, or a destination, whose copies keep their count then.
    pub(crate) reads: Place,
    pub(crate) short_lease: bool,
    pub(crate) deduplicate: Option<(Arc<dyn State>, KeySource)>,
    pub(crate) guest: Guest,
    /// Where calls are noted; those of several hosts in one place, where a case says so.
    pub(crate) calls: Arc<Calls>,
}

impl Default for Setup {
    /// No budget, no backoff, both destinations.
    fn default() -> Self {
        Self {
            budget: -1,
            backoff: Backoff { base: Duration::ZERO, max: ms(60_000), jitter: Jitter::None },
            window: None,
            on_fault: OnFault::Defer,
            dead_letter: Some(Place::DeadLetter),
            invalid_message: Some(Place::Invalid),
            reads: Place::Source,
            short_lease: false,
            deduplicate: None,
            guest: Guest::Steered,
            calls: Arc::default(),
        }
    }
}

impl Setup {
    pub(crate) fn budget(budget: i64) -> Self {
        Self { budget, ..Self::default() }
    }

    pub(crate) fn with_backoff(mut self, base: Duration) -> Self {
        self.backoff.base = base;
        self
    }

    fn settings(&self, cell: Cell) -> Settings {
        Settings {
            dispatch: match cell.variant {
                Variant::Sequential => Dispatch::Sequential,
                Variant::Concurrent => Dispatch::Concurrent(CONCURRENCY),
            },
            policy: Policy {
                budget: Budget::from_configured(self.budget),
                backoff: self.backoff,
                window: self.window,
                on_fault: self.on_fault,
                guard: cell.configuration.has_guard(),
            },
            honours_copies: self.reads != Place::Source,
            lease: if self.short_lease { SHORT } else { LONG },
            receive_wait: ms(1_000),
            receive_margin: ms(10_000),
        }
    }
}

/// A running host.
pub(crate) struct Host {
    /// The subscription.
    pub(crate) name: String,
    pub(crate) calls: Arc<Calls>,
    pub(crate) notes: Arc<Notes>,
    pub(crate) tap: Arc<Tap>,
    channel: Channel,
    dead_letter: Option<Arc<Leak>>,
    invalid_message: Option<Arc<Leak>>,
    pump: Pump,
}

impl Host {
    pub(crate) async fn start(channel: &Channel, setup: Setup) -> Result<Arc<Self>> {
        let source = match setup.reads {
            Place::Source => channel.source().await?,
            place => channel.reader(place).await?,
        };
        let tap = Tap::new(source);
        let dead_letter = leak(channel, setup.dead_letter).await?;
        let invalid_message = leak(channel, setup.invalid_message).await?;
        let world = channel.bench.world();
        let notes = Arc::new(Notes::default());
        let name = subscription(channel, setup.reads);
        let handler = match setup.guest {
            Guest::Steered => world.steered.clone(),
            Guest::TextOnly => world.text_only.clone(),
        };
        let settings = setup.settings(channel.bench.cell());
        let pump = Pump::start(Subscription {
            name: name.as_str().into(),
            source_name: channel.queue(setup.reads).into(),
            source: tap.clone(),
            handler: Arc::new(Recorded { inner: handler, calls: setup.calls.clone() }),
            sinks: Sinks {
                dead_letter: dead_letter.clone().map(|sink| sink as Arc<dyn Sink>),
                invalid_message: invalid_message.clone().map(|sink| sink as Arc<dyn Sink>),
            },
            deduplicate: setup.deduplicate.map(|(state, key)| Deduplicate {
                state,
                scope: format!("test/{}/leg", channel.queue(Place::Source)).into(),
                key,
                ttl: Duration::from_secs(3_600),
            }),
            tenant: None,
            pace: None,
            observer: notes.clone(),
            clock: world.clock.clone(),
            settings,
        });
        let calls = setup.calls;
        let channel = channel.clone();
        let host = Self { name, calls, notes, tap, channel, dead_letter, invalid_message, pump };
        let host = Arc::new(host);
        host.channel.bench.keep(&host);
        Ok(host)
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        *self.tap.capabilities()
    }

    /// Stops within its grace, having settled everything.
    pub(crate) async fn stop(&self) -> Result<()> {
        ensure!(self.pump.stop(GRACE).await.clean, "{} did not stop cleanly", self.name);
        Ok(())
    }

    /// Stops without waiting for what it holds.
    pub(crate) async fn abandon(&self) {
        self.tap.script.hold.store(false, Ordering::SeqCst);
        self.pump.cut();
        self.pump.stop(Duration::from_secs(4)).await;
    }

    pub(crate) fn drain(&self) {
        self.pump.drain();
    }

    pub(crate) fn logs(&self) -> Vec<Line> {
        logs::of(&self.name)
    }

    /// Its lines of that level and text.
    pub(crate) fn lines(&self, level: Level, message: &str) -> Vec<Line> {
        let mut lines = self.logs();
        lines.retain(|line| line.level == level && line.message == message);
        lines
    }

    /// Waits until a message was handled so often.
    pub(crate) async fn called(&self, tag: &str, times: usize) -> Result<()> {
        let what = format!("{times} calls for {tag}");
        until(&what, || self.calls.counts(tag).len() >= times).await
    }

    /// Waits until the handler acknowledged a message.
    pub(crate) async fn acked(&self, tag: &str) -> Result<()> {
        let acked = |call: &crate::recorder::Call| {
            call.ended.as_ref().is_some_and(|(_, how)| how == "Ok(Ack)")
        };
        until(&format!("{tag} is acknowledged"), || self.calls.of(tag).iter().any(acked)).await
    }

    /// Waits until the pump noted so many events that begin so.
    pub(crate) async fn noted(&self, begins: &str, times: usize) -> Result<()> {
        let what = format!("{times} events {begins}");
        until(&what, || self.notes.count(begins) >= times).await
    }

    /// The next publishes to a destination fail without having reached it.
    pub(crate) fn publishes_fail(&self, place: Place, times: usize) {
        self.spoil(Fault::Publish, place, times);
    }

    /// The next publishes to a destination reach it, and nobody hears of it.
    pub(crate) fn publishes_unconfirmed(&self, place: Place, times: usize) {
        self.spoil(Fault::Confirmation, place, times);
    }

    /// The next acknowledgements fail.
    pub(crate) fn acks_fail(&self, times: usize) {
        self.spoil(Fault::Ack, Place::Source, times);
    }

    /// The next releases fail.
    pub(crate) fn releases_fail(&self, times: usize) {
        self.spoil(Fault::Release, Place::Source, times);
    }

    /// One answer with messages never arrives.
    pub(crate) fn loses_an_answer(&self) {
        self.spoil(Fault::Answer, Place::Source, 1);
    }

    /// The next calls of a kind go wrong: between the host and its server, or at the port where there is none.
    fn spoil(&self, fault: Fault, place: Place, times: usize) {
        if self.channel.bench.rig().spoil(fault, &self.channel.queue(place), times) {
            return;
        }
        let script = &self.tap.script;
        let counter = match fault {
            Fault::Publish => self.leak(place).map(|leak| &leak.refuse),
            Fault::Confirmation => self.leak(place).map(|leak| &leak.unconfirmed),
            Fault::Ack => Some(&script.fail_acks),
            Fault::Release => Some(&script.fail_releases),
            Fault::Answer => Some(&script.lose),
        };
        if let Some(counter) = counter {
            counter.store(times, Ordering::SeqCst);
        }
    }

    fn leak(&self, place: Place) -> Option<&Arc<Leak>> {
        match place {
            Place::DeadLetter | Place::Missing => self.dead_letter.as_ref(),
            Place::Invalid => self.invalid_message.as_ref(),
            Place::Source | Place::Native => None,
        }
    }

    /// What happened, for the message of a trial that failed.
    pub(crate) fn story(&self) -> String {
        let mut story = format!("host {}: calls", self.name);
        for call in self.calls.all() {
            let ended = call.ended.map_or_else(|| "goes on".to_owned(), |(_, how)| how);
            // Writing to a string does not fail.
            let _ = write!(story, " [{} count {} {ended:.60}]", call.tag, call.count);
        }
        story.push_str("\n  settled");
        for one in self.tap.settled().iter().rev().take(20).rev() {
            let _ = write!(story, " [{} {:?} {:?}]", one.tag, one.action, one.failed);
        }
        for line in self.logs().iter().rev().take(12).rev() {
            let _ = write!(story, "\n  {line:.300}");
        }
        story
    }
}

async fn leak(channel: &Channel, place: Option<Place>) -> Result<Option<Arc<Leak>>> {
    match place {
        None => Ok(None),
        Some(place) => Ok(Some(Leak::new(channel.sink(place).await?))),
    }
}

/// A name that no other host has, so that its lines in the log are its own.
fn subscription(channel: &Channel, reads: Place) -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    format!("{}-h{number}", channel.queue(reads))
}
