//! A proxy between a client and an SQS or SNS server, for faults that happen on purpose.
//!
//! It speaks plain HTTP/1.1, counts requests by operation, and follows rules:
//!
//! ```no_run
//! # use std::time::Duration;
//! # async fn example() -> Result<(), pumphouse_test_brokers::Error> {
//! use pumphouse_test_brokers::{Fauxqs, proxy::Proxy};
//!
//! let server = Fauxqs::start().await?;
//! let proxy = Proxy::start(&server.endpoint()).await?;
//! // The third receive is accepted and never answered.
//! let hung = proxy.on("ReceiveMessage").nth(3).hang();
//! // … a client works against `proxy.endpoint()` …
//! assert!(proxy.wait_for("ReceiveMessage", 4, Duration::from_secs(30)).await);
//! assert_eq!(hung.count(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! An operation is the name in the header `X-Amz-Target` (`AmazonSQS.ReceiveMessage` is
//! `ReceiveMessage`), or the parameter `Action` of a form; [`ANY`] stands for every operation.
//! The first rule that applies is followed, in the order of their making. Queue URLs in answers
//! name the proxy instead of the server, so that a client which follows them stays here.
//!
//! It runs in the caller's runtime. Dropping it closes all its connections.

pub mod edit;
mod exchange;
mod rule;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::Error;
use crate::faults::Door;
pub use crate::faults::{ANY, Applied, Seen};
use exchange::Exchange;
pub use rule::On;

/// A running proxy; closed when dropped.
#[derive(Debug)]
pub struct Proxy {
    door: Door,
    exchange: Arc<Exchange>,
}

impl Proxy {
    /// Listens on a free port of loopback and forwards to `upstream`, `http://HOST:PORT`.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(upstream: &str) -> Result<Self, Error> {
        let (door, exchange) = Door::open(|own| Arc::new(Exchange::new(upstream, own))).await?;
        Ok(Self { door, exchange })
    }

    /// `http://127.0.0.1:PORT`, the same until it is dropped.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.door.host())
    }

    /// Begins a rule for an operation; what is done ends it, as in `on("X").nth(2).hang()`.
    pub fn on(&self, operation: &str) -> On<'_> {
        On::new(&self.exchange.rules, operation)
    }

    /// Closes every connection at once and refuses new ones until [`heal`](Self::heal).
    /// Returns when both are so.
    pub async fn cut_all(&self) {
        self.door.refuse().await;
        self.door.close_all().await;
    }

    /// Closes every connection at once, as a restarted load balancer does; new ones are taken.
    pub async fn cut_once(&self) {
        self.door.close_all().await;
    }

    /// Lets every connection that is open now fall silent in both directions without closing
    /// it, as a router does that forgot about it. New connections work. Silent ones stay until
    /// the client gives up on them, or a cut.
    pub fn half_open(&self) {
        self.exchange.valve.freeze();
    }

    /// Limits each connection to this many bytes a second in each direction; 0 lifts the limit.
    pub fn slow(&self, bytes_per_second: u64) {
        self.exchange.valve.limit(bytes_per_second);
    }

    /// Back to normal: accepts connections, no rule, no limit. What already hangs or fell
    /// silent stays so. Counts are kept. Returns when connections are accepted.
    pub async fn heal(&self) {
        self.exchange.rules.clear();
        self.exchange.valve.limit(0);
        self.door.accept().await;
    }

    /// Requests by operation since the start or the last [`reset`](Self::reset). One counts
    /// when it has arrived in full, whatever becomes of it.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.exchange.journal.counts()
    }

    /// Requests of one operation, or of [`ANY`].
    #[must_use]
    pub fn count(&self, operation: &str) -> u64 {
        self.exchange.journal.count(operation)
    }

    /// Requests of one operation, or of [`ANY`], that are not answered yet: an answer counts from
    /// its head on.
    #[must_use]
    pub fn in_flight(&self, operation: &str) -> u64 {
        self.exchange.journal.in_flight(operation)
    }

    /// The last 4,096 requests, oldest first, each body cut at 16 KiB.
    #[must_use]
    pub fn requests(&self) -> Vec<Seen> {
        self.exchange.journal.requests()
    }

    /// Waits until an operation was requested this often in total; false when it wasn't in time.
    pub async fn wait_for(&self, operation: &str, count: u64, limit: Duration) -> bool {
        self.exchange.journal.wait_for(operation, count, limit).await
    }

    /// Connections that clients have open now.
    #[must_use]
    pub fn open_connections(&self) -> u64 {
        self.exchange.valve.open()
    }

    /// Sets all counts to 0 and forgets the recorded requests. Rules stay.
    pub fn reset(&self) {
        self.exchange.journal.reset();
    }
}
