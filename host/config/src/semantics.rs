//! What is in force for a subscription, as `check` prints it (S-1).

use std::fmt;
use std::time::Duration;

use pumphouse_contract::ports::{Counter, Ordering};
use pumphouse_contract::{Backoff, Budget, Jitter, LeaseBudget};

use crate::load::{Build, TransportFacts};
use crate::tenancy::HandlerConfig;
use crate::timing;
use crate::types::{Config, Deduplicate, Subscription};
use crate::units::Readable;
use crate::words::{Dispatch, Provision, PubsubMode, TopicKind};

/// How often a message may be handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// Once or more.
    AtLeastOnce,
    /// Once or more, but a duplicate that is still remembered is acknowledged without a call.
    Deduplicated(Deduplicate),
}

/// How messages come from a subscription of Pub/Sub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pushed {
    /// `mode`.
    pub mode: PubsubMode,
    /// `held`: the most that a stream holds beyond those in the handlers.
    pub held: u32,
}

/// How messages come from a topic of RocketMQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Popped {
    /// `kind`.
    pub kind: TopicKind,
    /// `queues`: how many the topic has on each broker where it is made.
    pub queues: u32,
}

/// What is in force for one subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// Its name.
    pub subscription: String,
    /// `source`, as it stands in the file.
    pub source: String,
    /// The full name of its handler.
    pub handler: String,
    /// How often a message may be handled.
    pub delivery: Delivery,
    /// The order that is kept.
    pub ordering: Ordering,
    /// `dispatch`.
    pub dispatch: Dispatch,
    /// `concurrency`.
    pub concurrency: u32,
    /// `max_deliveries`.
    pub budget: Budget,
    /// M, as `native` says it.
    pub native_limit: Option<u32>,
    /// How good the count is that the budget goes by.
    pub counter: Counter,
    /// Why there is none, as far as the configuration tells (C-8).
    pub uncounted: Option<&'static str>,
    /// `source.pubsub`, where it is one.
    pub pubsub: Option<Pushed>,
    /// `source.rocketmq`, where it is one.
    pub rocketmq: Option<Popped>,
    /// `retry.backoff`, `retry.max_backoff` and `retry.jitter`.
    pub backoff: Backoff,
    /// `retry.window`.
    pub window: Option<Duration>,
    /// `dead_letter`, as it stands in the file.
    pub dead_letter: Option<String>,
    /// `invalid_message`, as it stands in the file.
    pub invalid_message: Option<String>,
    /// Whether rejected copies in the source keep their stamped count (C-7).
    pub reads_copies: bool,
    /// `provision`.
    pub provision: Provision,
    /// The parts of the lease.
    pub lease: LeaseBudget,
}

/// What is in force for a subscription with this handler on this transport.
#[must_use]
pub fn effective(
    one: &Subscription,
    handler: &HandlerConfig,
    transport: &TransportFacts,
) -> Effective {
    let routes = one.dead_letter.is_some() || one.invalid_message.is_some();
    Effective {
        subscription: one.name.clone(),
        source: one.source.to_string(),
        handler: one.handler.clone(),
        delivery: match &one.deduplicate {
            Some(deduplicate) => Delivery::Deduplicated(deduplicate.clone()),
            None => Delivery::AtLeastOnce,
        },
        ordering: one.source.ordering(),
        dispatch: one.dispatch,
        concurrency: one.concurrency,
        budget: one.policy.budget,
        native_limit: one.native.as_ref().map(|native| native.limit),
        counter: transport.counter,
        uncounted: one.count_stands_still(),
        pubsub: one.source.pubsub_source().map(|one| Pushed { mode: one.mode, held: one.held }),
        rocketmq: one.source.rocketmq().map(|one| Popped { kind: one.kind, queues: one.queues }),
        backoff: one.policy.backoff,
        window: one.policy.window,
        dead_letter: one.dead_letter.as_ref().map(ToString::to_string),
        invalid_message: one.invalid_message.as_ref().map(ToString::to_string),
        reads_copies: one.reads_copies,
        provision: one.provision,
        lease: timing::lease_budget(handler.limits.deadline, transport.settle_linger, routes),
    }
}

impl Config {
    /// What is in force for each subscription, in their order.
    #[must_use]
    pub fn effective(&self, build: &Build) -> Vec<Effective> {
        let one = |one: &Subscription| {
            let transport = build.transport(one.source.transport())?;
            Some(effective(one, self.handlers.get(&one.handler)?, transport))
        };
        self.subscriptions.iter().filter_map(one).collect()
    }
}

impl Effective {
    /// min(R, M): the most deliveries before the host or the broker ends them; none where neither does (C-15).
    #[must_use]
    pub fn delivery_limit(&self) -> Option<u32> {
        let budget = match self.budget {
            Budget::Unlimited => None,
            // Only the first deferral can be told without a count.
            Budget::Deliveries(2..) if self.uncounted.is_some() => None,
            Budget::Deliveries(most) => Some(most),
            Budget::Suspicious(_) => Some(1),
        };
        [budget, self.native_limit].into_iter().flatten().min()
    }

    /// What is in force, by name: what `check` and the admin side show.
    #[must_use]
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let none = || "none: the message is discarded".to_owned();
        let dead_letter = self.dead_letter.clone().unwrap_or_else(none);
        let invalid = self.invalid_message.clone().unwrap_or_else(|| match self.dead_letter {
            Some(_) => "dead_letter stands in".to_owned(),
            None => none(),
        });
        let mut rows = vec![
            ("source", self.source.clone()),
            ("handler", self.handler.clone()),
            ("delivery", self.delivery.to_string()),
            ("ordering", ordering(self.ordering).to_owned()),
            ("dispatch", format!("{}, {} at once", self.dispatch, self.concurrency)),
            ("deliveries", self.deliveries()),
            ("backoff", backoff(&self.backoff)),
            ("window", self.window.map_or("none".to_owned(), |w| Readable(w).to_string())),
            ("dead_letter", dead_letter),
            ("invalid_message", invalid),
            ("provision", self.provision.to_string()),
            ("lease", self.lease_row()),
        ];
        if let Some(pushed) = self.pubsub {
            rows.insert(1, ("mode", pushed.to_string()));
            rows.insert(2, ("counter", self.counter_row()));
        }
        if let Some(popped) = self.rocketmq {
            rows.insert(1, ("deferring", popped.to_string()));
            rows.insert(2, ("counter", self.counter_row()));
        }
        rows
    }

    fn counter_row(&self) -> String {
        match (self.uncounted, self.counter) {
            (Some(why), _) => format!("none: {why}"),
            (None, Counter::Exact) => "exact".to_owned(),
            (None, Counter::Approximate) => {
                "approximate: the n-th delivery says n or more".to_owned()
            }
        }
    }

    fn deliveries(&self) -> String {
        let host = match self.budget {
            Budget::Unlimited => "no budget".to_owned(),
            Budget::Deliveries(most) => format!("at most {most}, the first included"),
            Budget::Suspicious(number) => {
                format!("at most 1, since max_deliveries = {number} rejects the first deferral")
            }
        };
        let native =
            self.native_limit.map(|most| format!("the broker moves a message after {most}"));
        let counted = match self.counter {
            Counter::Exact => "counted exactly",
            Counter::Approximate => "counted approximately, so it may be fewer",
        };
        let copies = self.reads_copies.then(|| "rejected copies keep their count".to_owned());
        let counted = match self.uncounted {
            Some(_) if matches!(self.budget, Budget::Deliveries(2..)) => {
                Some("not counted, so it can't be enforced".to_owned())
            }
            Some(_) => Some("not counted".to_owned()),
            None => self.delivery_limit().map(|_| counted.to_owned()),
        };
        [Some(host), native, counted, copies].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    fn lease_row(&self) -> String {
        let LeaseBudget { queue_wait, deadline, publish_timeout, skew, .. } = self.lease;
        let publish = match publish_timeout {
            Some(publish) => format!(" + publish {}", Readable(publish)),
            None => String::new(),
        };
        let set = match self.pubsub.map(|pushed| pushed.mode) {
            Some(PubsubMode::Pull) => "; the subscription's acknowledgement deadline",
            Some(PubsubMode::Stream) => "; the stream's own acknowledgement deadline",
            None => "",
        };
        format!(
            "{} = queue {} + deadline {}{publish} + settle {} + skew {}{set}",
            Readable(self.lease.length()),
            Readable(queue_wait),
            Readable(deadline),
            Readable(self.lease.settling()),
            Readable(skew)
        )
    }
}

impl fmt::Display for Pushed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mode {
            PubsubMode::Pull => f.write_str("pull"),
            PubsubMode::Stream => {
                write!(f, "stream, at most {} held beyond the handlers", self.held)
            }
        }
    }
}

impl fmt::Display for Popped {
    /// What a deferral does there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TopicKind::Normal => f.write_str(
                "a deferral without a delay comes back after 2s to 5s, by the broker's revive rounds",
            ),
            TopicKind::Fifo => write!(
                f,
                "a deferred message holds back its whole queue; the topic has {} on each broker where it is made",
                self.queues
            ),
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeastOnce => f.write_str("at-least-once"),
            Self::Deduplicated(Deduplicate { key, ttl }) => {
                write!(f, "at-least-once, deduplicated by {key} for {}", Readable(*ttl))
            }
        }
    }
}

impl fmt::Display for Effective {
    /// The name, then a line for each row.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "subscription {}", self.subscription)?;
        self.rows().iter().try_for_each(|(name, value)| writeln!(f, "  {name:<16}{value}"))
    }
}

fn ordering(ordering: Ordering) -> &'static str {
    match ordering {
        Ordering::None => "none",
        Ordering::Key => "key: no message of a key overtakes another",
    }
}

fn backoff(backoff: &Backoff) -> String {
    if backoff.base.is_zero() {
        return "none: a deferral comes back at once".to_owned();
    }
    let jitter = match backoff.jitter {
        Jitter::Full => "full jitter",
        Jitter::None => "no jitter",
    };
    format!("{} doubling up to {}, {jitter}", Readable(backoff.base), Readable(backoff.max))
}
