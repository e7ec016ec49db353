use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::request::{Request, Server, operation};
use super::rule::On;
use super::wire::{Shared, Wire};
use crate::faults::Door;
use crate::{Error, RocketMq};

/// A running proxy in front of a name server and its brokers; closed when dropped.
#[derive(Debug)]
pub struct RemotingProxy {
    namesrv: Front,
    brokers: Vec<Front>,
    shared: Arc<Shared>,
}

/// What stands before one server.
#[derive(Debug)]
struct Front {
    door: Door,
    wire: Arc<Wire>,
}

impl Front {
    async fn open(
        server: Server,
        upstream: &str,
        addresses: Vec<(String, String)>,
        shared: &Arc<Shared>,
    ) -> Result<Self, Error> {
        let wire = Wire::new(server, upstream.to_owned(), addresses, shared.clone());
        let (door, wire) = Door::open(|_| Arc::new(wire)).await?;
        Ok(Self { door, wire })
    }

    async fn refuse(&self, refuse: bool) {
        if refuse { self.door.refuse().await } else { self.door.accept().await }
    }
}

impl RemotingProxy {
    /// Listens on free ports of loopback, one for the name server and one for each broker. The
    /// servers may be restarted behind it.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(servers: &RocketMq) -> Result<Self, Error> {
        let shared = Arc::<Shared>::default();
        let (mut brokers, mut addresses) = (Vec::new(), Vec::new());
        for (number, upstream) in servers.brokers().into_iter().enumerate() {
            let broker = Server::Broker(number);
            let front = Front::open(broker, &upstream, Vec::new(), &shared).await?;
            addresses.push((upstream, front.door.host()));
            brokers.push(front);
        }
        let upstream = servers.namesrv();
        let namesrv = Front::open(Server::Namesrv, &upstream, addresses, &shared).await?;
        Ok(Self { namesrv, brokers, shared })
    }

    /// `127.0.0.1:PORT` in the name server's place; its answers lead to the brokers' places.
    #[must_use]
    pub fn namesrv(&self) -> String {
        self.namesrv.door.host()
    }

    /// `127.0.0.1:PORT` in each broker's place.
    #[must_use]
    pub fn brokers(&self) -> Vec<String> {
        self.brokers.iter().map(|front| front.door.host()).collect()
    }

    /// Begins a rule for a request's code; what is done ends it, as in `on(…).nth(2).hang()`.
    pub fn on(&self, code: i32) -> On<'_> {
        On::new(&self.shared.rules, code)
    }

    /// Closes every connection at once; new ones are taken. Returns when they are closed.
    pub async fn cut(&self) {
        for front in self.fronts() {
            front.door.close_all().await;
        }
    }

    /// The same to the connections of one server alone.
    pub async fn cut_only(&self, server: Server) {
        if let Some(front) = self.front(server) {
            front.door.close_all().await;
        }
    }

    /// Refuses new connections, or takes them again; those that are open stay. Returns when it
    /// is so. `refuse(true)` and then [`cut`](Self::cut) is a network that is down.
    pub async fn refuse(&self, refuse: bool) {
        for front in self.fronts() {
            front.refuse(refuse).await;
        }
    }

    /// The same for one server alone.
    pub async fn refuse_only(&self, server: Server, refuse: bool) {
        if let Some(front) = self.front(server) {
            front.refuse(refuse).await;
        }
    }

    /// Lets every connection that is open now fall silent in both directions without closing
    /// it, as a router does that forgot about it. New connections work. Silent ones stay until
    /// the client gives up on them, or a cut.
    pub fn half_open(&self) {
        self.fronts().for_each(|front| front.wire.valve.freeze());
    }

    /// Limits each connection to this many bytes a second in each direction; 0 lifts the limit.
    pub fn slow(&self, bytes_per_second: u64) {
        self.fronts().for_each(|front| front.wire.valve.limit(bytes_per_second));
    }

    /// Back to normal: accepts connections, no rule, no limit. What already hangs or fell
    /// silent stays so. Counts are kept. Returns when connections are accepted.
    pub async fn heal(&self) {
        self.shared.rules.clear();
        self.slow(0);
        self.refuse(false).await;
    }

    /// Requests by code since the start or the last [`reset`](Self::reset). One counts when it
    /// has arrived in full, whatever becomes of it.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<i32, u64> {
        let counts = self.shared.journal.counts();
        counts.into_iter().filter_map(|(code, count)| Some((code.parse().ok()?, count))).collect()
    }

    /// Requests of one code, or of [`ANY`](super::code::ANY).
    #[must_use]
    pub fn count(&self, code: i32) -> u64 {
        self.shared.journal.count(&operation(code))
    }

    /// Requests of one code, or of [`ANY`](super::code::ANY), that are not answered yet.
    #[must_use]
    pub fn in_flight(&self, code: i32) -> u64 {
        self.shared.journal.in_flight(&operation(code))
    }

    /// The last 4,096 requests, oldest first, each body cut at 16 KiB.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.journal.requests()
    }

    /// Waits until a code was requested this often in total; false when it wasn't in time.
    pub async fn wait_for(&self, code: i32, count: u64, limit: Duration) -> bool {
        self.shared.journal.wait_for(&operation(code), count, limit).await
    }

    /// Connections that clients have open now.
    #[must_use]
    pub fn open_connections(&self) -> u64 {
        self.fronts().map(|front| front.wire.valve.open()).sum()
    }

    /// Sets all counts to 0 and forgets the recorded requests. Rules stay.
    pub fn reset(&self) {
        self.shared.journal.reset();
    }

    fn fronts(&self) -> impl Iterator<Item = &Front> {
        std::iter::once(&self.namesrv).chain(&self.brokers)
    }

    fn front(&self, server: Server) -> Option<&Front> {
        match server {
            Server::Namesrv => Some(&self.namesrv),
            Server::Broker(number) => self.brokers.get(number),
        }
    }
}
