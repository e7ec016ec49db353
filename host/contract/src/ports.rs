//! What a pump talks to. Transports, the sandbox, the store and the metrics implement these.

use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use crate::account::{TenantStatus, Tenants};
pub use crate::observe::{Event, Observer};
pub use crate::terms::{HandlerTerms, TenantTerms, Terms};
use crate::{Count, Delivery, Ended, Message, Outgoing, Receipt, Timestamp};

/// A future behind a pointer, so that ports can be trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a pump asks of a source in one receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The most messages; at least 1, at most [`Capabilities::receive_batch`].
    pub max: usize,
    /// How long to wait for the first; zero looks once.
    pub wait: Duration,
    /// How long the messages must be ours.
    pub lease: Duration,
}

/// Where a source takes its lease from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseSetting {
    /// Each receive names it.
    OnReceive,
    /// The source has one of its own, which provisioning sets.
    OnSource,
}

/// How good a source's counter is (C-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// The n-th delivery says n.
    Exact,
    /// The n-th delivery says n or more.
    Approximate,
}

/// What order a source keeps (S-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ordering {
    /// None.
    None,
    /// Among the messages of one ordering key, redeliveries included.
    Key,
}

/// What a source can do. Each is a claim that the conformance suite tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// The `messaging.system` of OpenTelemetry.
    pub system: &'static str,
    /// The most messages of one receive.
    pub receive_batch: usize,
    /// The most entries of one settle.
    pub settle_batch: usize,
    /// How long one settle waits for others; zero where a batch saves nothing.
    pub settle_linger: Duration,
    /// How long a receive for less than a full batch waits for handlers that are about to be free; zero where a
    /// receive costs little.
    pub receive_linger: Duration,
    /// The longest wait of one receive.
    pub longest_wait: Duration,
    /// The longest delay of a release.
    pub longest_delay: Duration,
    /// Whether that is counted from the receive, so that a handler's time is taken from it (SQS).
    pub delay_counts_from_receive: bool,
    /// The longest lease.
    pub longest_lease: Duration,
    /// Where the lease is set.
    pub lease_setting: LeaseSetting,
    /// Whether a delivery that is given back without a call counts all the same (C-18).
    pub undispatched_release_counts: bool,
    /// How good the counter is.
    pub counter: Counter,
    /// Whether it advances at all (C-8).
    pub count_advances: bool,
    /// What order is kept.
    pub ordering: Ordering,
    /// Whether one receive may bring several messages of one key. A pump then asks for one message at a time,
    /// since those behind a head that is deferred would lose deliveries without having been handled (C-18).
    pub batch_may_hold_followers: bool,
}

/// How a delivery is settled towards its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Removed.
    Ack,
    /// Back after this time; the transport rounds up to what its broker can say.
    Release(Duration),
}

/// One settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// Of which delivery.
    pub receipt: Receipt,
    /// How.
    pub action: Action,
}

/// Why a settlement did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Trying again may help.
    Retry,
    /// The lease is lost: the delivery is no longer ours.
    Gone,
    /// The broker will not do it.
    Refused,
}

/// A settlement that did not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsettled {
    /// What was asked, given back so that it can be asked again.
    pub settlement: Settlement,
    /// Whether asking again may help.
    pub failure: Failure,
    /// What the broker said.
    pub text: String,
}

/// Why nothing was received.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// The broker can't be reached, or does not answer in time.
    #[error("broker of {0} is unavailable: {1}")]
    Unavailable(String, String),
    /// The source is not there.
    #[error("source {0} does not exist: {1}")]
    Missing(String, String),
    /// The host may not read it.
    #[error("reading {0} is denied: {1}")]
    Denied(String, String),
    /// The broker's answer has no delivery counter, so no budget could be kept. The messages were given back.
    #[error("broker of {0} reports no delivery count: {1}")]
    CounterMissing(String, String),
    /// Anything else that the broker said.
    #[error("receiving from {0} failed: {1}")]
    Other(String, String),
}

impl ReceiveError {
    /// The kind as a metric label.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Unavailable(..) => "unavailable",
            Self::Missing(..) => "missing",
            Self::Denied(..) => "denied",
            Self::CounterMissing(..) => "counter-missing",
            Self::Other(..) => "other",
        }
    }
}

/// Where a pump's messages come from.
///
/// A source never retries: the pump does. Its methods may be called concurrently.
pub trait Source: Send + Sync {
    /// What this source can do.
    fn capabilities(&self) -> &Capabilities;

    /// Up to `ask.max` messages. Returns within `ask.wait` and the time of one request, an empty list where
    /// none came.
    ///
    /// Not cancel-safe: messages of a dropped call stay leased until their lease lapses. A pump awaits it.
    ///
    /// # Errors
    /// Says what the broker said; nothing was received then.
    fn receive(&self, ask: Ask) -> BoxFuture<'_, Result<Vec<Delivery>, ReceiveError>>;

    /// Settles up to [`Capabilities::settle_batch`] deliveries in one request for each kind of action, and
    /// answers for each in their order. A request that fails as a whole fails for each.
    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Vec<Result<(), Unsettled>>>;

    /// Ends the waits of receives in progress, where nothing can be lost by it; a drain is quicker then.
    fn interrupt(&self) {}

    /// How many messages the broker has pushed that nobody has asked for yet; the source holds and extends them.
    fn held(&self) -> usize {
        0
    }

    /// How many messages came again, so far, while their delivery before was handled.
    fn duplicates(&self) -> u64 {
        0
    }

    /// Lets go of connections. Deliveries that are not settled lapse.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Why a message could not be published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The broker can't be reached, or did not confirm in time: the message may or may not be there.
    #[error("destination {0} is unavailable: {1}")]
    Unavailable(String, String),
    /// The destination is not there.
    #[error("destination {0} does not exist: {1}")]
    Missing(String, String),
    /// The broker will not take it.
    #[error("destination {0} refused the message: {1}")]
    Refused(String, String),
}

/// How full a destination is; unknown where the broker can't tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// Messages waiting, in progress or delayed.
    pub messages: Option<u64>,
    /// The age of the oldest.
    pub oldest_age: Option<Duration>,
}

/// Where messages are published to.
pub trait Sink: Send + Sync {
    /// The destination as configured, for logs and errors.
    fn name(&self) -> &str;

    /// Publishes and waits for the broker's confirmation; gives the broker's id. Never retries and never makes
    /// the destination. A dropped call may have published.
    ///
    /// # Errors
    /// The message is not there, or it is not known whether it is.
    fn publish(&self, message: Outgoing) -> BoxFuture<'_, Result<String, PublishError>>;

    /// How full the destination is.
    ///
    /// # Errors
    /// The broker can't be asked.
    fn depth(&self) -> BoxFuture<'_, Result<Depth, PublishError>>;
}

/// One call of a handler.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The message.
    pub message: Arc<Message>,
    /// The source as configured.
    pub source: Arc<str>,
    /// The subscription, for the log.
    pub subscription: Arc<str>,
    /// What the handler is told.
    pub count: Count,
}

/// A handler behind its sandbox.
pub trait Handler: Send + Sync {
    /// Takes the version that this call will run, so that what is logged and stamped is what ran.
    fn begin(&self) -> Arc<dyn Version>;

    /// How many calls can run at once, where there is a limit of its own.
    fn slots(&self) -> Option<usize>;

    /// Resolves when there is room for calls, and says for how many beside those that are under way; none where it
    /// does not matter. A pump asks before each receive, so that a tenant whose calls wait too long receives less
    /// instead of receiving what starves (C-18).
    ///
    /// Takes no longer than a call's deadline. Cancel-safe: it reserves nothing.
    fn welcome(&self) -> BoxFuture<'_, Option<NonZeroUsize>> {
        Box::pin(std::future::ready(None))
    }
}

/// One version of a handler.
pub trait Version: Send + Sync {
    /// `tenant/name`.
    fn name(&self) -> &str;

    /// SHA-256 of the component, in hexadecimal.
    fn digest(&self) -> &str;

    /// Calls the handler. Its deadline, memory and output are the sandbox's to bound; the call ends within the
    /// deadline and 100 ms. Dropping the future ends the call.
    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Ended>;
}

/// What makes a message a duplicate (S-5).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MarkKey {
    /// `tenant/subscription/leg`: what one consumer handled says nothing about another.
    pub scope: Arc<str>,
    /// The idempotency key.
    pub key: String,
}

/// What is stored before a delivery is acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The message that is handled.
    pub mark: MarkKey,
    /// Until when it is remembered.
    pub until: Timestamp,
}

/// The store failed. Nothing is acknowledged on its account.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("state store {path}: {text}")]
pub struct StateError {
    /// Which store.
    pub path: String,
    /// What it said.
    pub text: String,
}

/// The host's own store.
pub trait State: Send + Sync {
    /// Whether the message was handled, and is still remembered at `now`.
    ///
    /// # Errors
    /// The store can't be read.
    fn seen<'a>(
        &'a self,
        key: &'a MarkKey,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StateError>>;

    /// Stores in one transaction. Not to be dropped between the commit and the acknowledgement.
    ///
    /// # Errors
    /// Nothing was stored.
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<(), StateError>>;
}

/// How a pump is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It has not yet had an answer from its broker.
    Starting,
    /// The last receive was answered.
    Running,
    /// The last receive failed, or never came back.
    Waiting,
    /// It gives back what it holds and ends.
    Draining,
    /// It has ended.
    Stopped,
}

impl Condition {
    /// The name, in the status and in logs.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
        }
    }
}

/// What can be seen of one subscription from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionStatus {
    /// Its name.
    pub name: String,
    /// How it is doing.
    pub condition: Condition,
    /// Why, where it waits.
    pub problem: Option<String>,
    /// Deliveries in progress.
    pub in_flight: usize,
    /// How long the oldest of them has been in progress.
    pub oldest_in_progress: Option<Duration>,
    /// The handler.
    pub handler: String,
}

/// What the admin side sees of the subscriptions.
pub trait Subscriptions: Send + Sync {
    /// Every subscription, by name.
    fn list(&self) -> Vec<SubscriptionStatus>;

    /// Why the configuration on disk is not the one in force; none where it is.
    fn rejected_configuration(&self) -> Option<String>;
}

/// What can be seen of one handler from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerStatus {
    /// `tenant/name`.
    pub name: String,
    /// The version in use.
    pub digest: String,
    /// Where it was read from.
    pub component: String,
    /// Why the file that is there now is not in use; none where it is.
    pub problem: Option<String>,
}

/// What the admin side sees of the handlers.
pub trait Handlers: Send + Sync {
    /// Every handler, by name.
    fn list(&self) -> Vec<HandlerStatus>;
}

/// A message that waits in a queue of the embedded broker, as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The message.
    pub message: Arc<Message>,
    /// How often it was delivered.
    pub deliveries: u32,
    /// `ready`, `delayed`, `leased`, or `behind` another of its ordering key.
    pub state: &'static str,
}

/// The queues of the embedded broker, for an operator on the same machine. Other brokers have tools of their own.
pub trait Queues: Send + Sync {
    /// Puts a message on a queue and waits until it is stored; gives its id.
    ///
    /// # Errors
    /// The queue does not exist, or does not take it. Nothing was stored.
    fn publish<'a>(
        &'a self,
        queue: &'a str,
        message: Outgoing,
    ) -> BoxFuture<'a, Result<String, PublishError>>;

    /// The oldest messages of a queue, at most `max`. Nothing is delivered or counted by it.
    ///
    /// # Errors
    /// The queue does not exist.
    fn peek<'a>(
        &'a self,
        queue: &'a str,
        max: usize,
    ) -> BoxFuture<'a, Result<Vec<Waiting>, PublishError>>;
}
