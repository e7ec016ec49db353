use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pumphouse_contract::Clock;

/// How to reach RocketMQ.
#[derive(Clone)]
pub struct RocketmqSettings {
    /// The name servers, each as `host:port`. At least one.
    pub name_servers: Vec<String>,
    /// The namespace that topics and groups are in; on the wire they are `namespace%name`.
    pub namespace: Option<String>,
    /// What requests are signed with; none where the broker asks for nothing.
    pub access: Option<Access>,
    /// TLS towards name servers and brokers; none for plain TCP.
    pub tls: Option<Tls>,
    /// How long calls may take.
    pub timeouts: Timeouts,
    /// What leases are measured with.
    pub clock: Arc<dyn Clock>,
}

/// An access key and its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Access {
    /// The name.
    pub key: String,
    /// The secret.
    pub secret: String,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("key", &self.key).finish_non_exhaustive()
    }
}

/// How TLS is spoken. Files are PEM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// The certificates that are trusted; none for those of the system.
    pub trust: Option<String>,
    /// Our own certificate, where the servers ask for one.
    pub certificate: Option<String>,
    /// Its key.
    pub key: Option<String>,
}

impl RocketmqSettings {
    /// One name server or several, without TLS and without signatures.
    #[must_use]
    pub fn new(name_servers: Vec<String>, clock: Arc<dyn Clock>) -> Self {
        Self {
            name_servers,
            namespace: None,
            access: None,
            tls: None,
            timeouts: Timeouts::default(),
            clock,
        }
    }
}

impl fmt::Debug for RocketmqSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocketmqSettings")
            .field("name_servers", &self.name_servers)
            .field("namespace", &self.namespace)
            .field("access", &self.access)
            .field("tls", &self.tls)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// How long calls may take. A call that takes longer is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// A pop, beyond the time that it waits for messages.
    pub poll_margin: Duration,
    /// A settlement.
    pub settle: Duration,
    /// A publish.
    pub publish: Duration,
    /// One call of provisioning, or the question for a route.
    pub admin: Duration,
}

impl Default for Timeouts {
    /// 8 s beyond a pop's wait, 5 s to settle, 10 s to publish, 10 s for a call of provisioning.
    fn default() -> Self {
        Self {
            poll_margin: Duration::from_secs(8),
            settle: Duration::from_secs(5),
            publish: Duration::from_secs(10),
            admin: Duration::from_secs(10),
        }
    }
}
