//! A proxy between a client and a gRPC server, for faults that happen on purpose.
//!
//! It speaks HTTP/2 without TLS (a connection that speaks HTTP/1.1, as REST clients of the same
//! address do, passes unseen, and is cut, slowed and silenced with the others), counts calls by the method's name (`Pull`, `Acknowledge`,
//! `StreamingPull`), and follows rules:
//!
//! ```no_run
//! # use std::time::Duration;
//! # async fn example() -> Result<(), pumphouse_test_brokers::Error> {
//! use pumphouse_test_brokers::{PubsubEmulator, grpc::{GrpcProxy, code}};
//!
//! let server = PubsubEmulator::start().await?;
//! let proxy = GrpcProxy::start(&server.endpoint()).await?;
//! // The first acknowledgement is done and never confirmed; the second is refused.
//! let lost = proxy.on("Acknowledge").nth(1).drop_after();
//! let refused = proxy.on("Acknowledge").times(1).status(code::UNAVAILABLE, "busy");
//! // … a client works against `proxy.endpoint()` …
//! assert!(proxy.wait_for("Acknowledge", 2, Duration::from_secs(30)).await);
//! assert_eq!((lost.count(), refused.count()), (1, 1));
//! # Ok(())
//! # }
//! ```
//!
//! The first rule that applies is followed, in the order of their making. A call is judged when
//! its request has arrived in full, and one of a method whose name begins with `Streaming` when
//! its first message has. Bytes pass as they come, and no answer waits for its end unless a rule
//! says so. A client's connection has one of its own to the server; they end together, so a
//! server that is down is a closed connection.
//!
//! It runs in the caller's runtime. Dropping it closes all its connections.

mod body;
pub mod code;
mod message;
mod rule;
mod tally;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::Error;
use crate::faults::Door;
pub use crate::faults::{ANY, Applied, Seen};
pub use rule::On;
use tally::Side;
use wire::Wire;

/// A running proxy; closed when dropped.
#[derive(Debug)]
pub struct GrpcProxy {
    door: Door,
    wire: Arc<Wire>,
}

impl GrpcProxy {
    /// Listens on a free port of loopback and forwards to `upstream`, `http://HOST:PORT` or
    /// `HOST:PORT`.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(upstream: &str) -> Result<Self, Error> {
        let (door, wire) = Door::open(|_| Arc::new(Wire::new(upstream))).await?;
        Ok(Self { door, wire })
    }

    /// `http://127.0.0.1:PORT`, the same until it is dropped.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.host())
    }

    /// `127.0.0.1:PORT`, as `PUBSUB_EMULATOR_HOST` takes it.
    #[must_use]
    pub fn host(&self) -> String {
        self.door.host()
    }

    /// Begins a rule for a method; what is done ends it, as in `on("X").nth(2).hang()`.
    pub fn on(&self, method: &str) -> On<'_> {
        On::new(&self.wire.rules, method)
    }

    /// Ends every stream that is open now (a call of a method whose name begins with
    /// `Streaming`) with this status, between two messages of its answer. New ones work.
    pub fn reset_streams(&self, code: u32) {
        self.wire.reset_streams(code);
    }

    /// Closes every connection at once, as a restarted load balancer does; new ones are taken.
    /// Returns when they are closed.
    pub async fn cut(&self) {
        self.door.close_all().await;
    }

    /// Refuses new connections, or takes them again; those that are open stay. Returns when it
    /// is so. `refuse(true)` and then [`cut`](Self::cut) is a server that is down.
    pub async fn refuse(&self, refuse: bool) {
        if refuse { self.door.refuse().await } else { self.door.accept().await }
    }

    /// Lets every connection that is open now fall silent in both directions without closing
    /// it, as a router does that forgot about it. New connections work. Silent ones stay until
    /// the client gives up on them, or a cut.
    pub fn half_open(&self) {
        self.wire.valve.freeze();
    }

    /// Limits each connection to this many bytes a second in each direction; 0 lifts the limit.
    pub fn slow(&self, bytes_per_second: u64) {
        self.wire.valve.limit(bytes_per_second);
    }

    /// Back to normal: accepts connections, no rule, no limit. What already hangs or fell
    /// silent stays so. Counts are kept. Returns when connections are accepted.
    pub async fn heal(&self) {
        self.wire.rules.clear();
        self.wire.valve.limit(0);
        self.door.accept().await;
    }

    /// Calls by method since the start or the last [`reset`](Self::reset). One counts when it is
    /// judged, whatever becomes of it.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.wire.journal.counts()
    }

    /// Calls of one method, or of [`ANY`].
    #[must_use]
    pub fn count(&self, method: &str) -> u64 {
        self.wire.journal.count(method)
    }

    /// Calls of one method, or of [`ANY`], that have not ended: of a stream method, the open
    /// streams.
    #[must_use]
    pub fn in_flight(&self, method: &str) -> u64 {
        self.wire.journal.in_flight(method)
    }

    /// Messages of one method, or of [`ANY`], that were passed on to the server: of a stream,
    /// each one that the client sent.
    #[must_use]
    pub fn stream_up(&self, method: &str) -> u64 {
        self.wire.tally.count(Side::Up, method)
    }

    /// Messages of one method, or of [`ANY`], that came from the server to be passed on.
    #[must_use]
    pub fn stream_down(&self, method: &str) -> u64 {
        self.wire.tally.count(Side::Down, method)
    }

    /// The last 4,096 calls, oldest first, each with its first message as protobuf, cut at 16 KiB.
    #[must_use]
    pub fn requests(&self) -> Vec<Seen> {
        self.wire.journal.requests()
    }

    /// Waits until a method was called this often in total; false when it wasn't in time.
    pub async fn wait_for(&self, method: &str, count: u64, limit: Duration) -> bool {
        self.wire.journal.wait_for(method, count, limit).await
    }

    /// Connections that clients have open now.
    #[must_use]
    pub fn open_connections(&self) -> u64 {
        self.wire.valve.open()
    }

    /// Sets all counts to 0 and forgets the recorded calls. Rules stay.
    pub fn reset(&self) {
        self.wire.journal.reset();
        self.wire.tally.reset();
    }
}
