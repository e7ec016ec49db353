use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pumphouse_contract::Clock;

/// How to reach Pub/Sub. What is not set comes from the usual places of Google's tools.
#[derive(Clone)]
pub struct PubsubSettings {
    /// The project of names that have none; else `PUBSUB_PROJECT_ID`, `GOOGLE_CLOUD_PROJECT` or
    /// `GCLOUD_PROJECT`, else the credentials' own, else the metadata server's; else that of the source's or the
    /// destination's full name.
    pub project: Option<String>,
    /// The address; else the emulator that `PUBSUB_EMULATOR_HOST` names, or Google. An address that begins with
    /// `http://` is called without TLS and without credentials.
    pub endpoint: Option<String>,
    /// The JSON of a key file; else Application Default Credentials.
    pub credentials: Option<String>,
    /// The address of Resource Manager; else Google's. It is asked for a project's number where a dead-letter
    /// policy is made whose members are not configured.
    #[doc(hidden)]
    pub resource_manager: Option<String>,
    /// How long calls may take.
    pub timeouts: Timeouts,
    /// What leases are measured with.
    pub clock: Arc<dyn Clock>,
}

impl PubsubSettings {
    /// Everything from the usual places.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            project: None,
            endpoint: None,
            credentials: None,
            resource_manager: None,
            timeouts: Timeouts::default(),
            clock,
        }
    }
}

impl fmt::Debug for PubsubSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PubsubSettings")
            .field("project", &self.project)
            .field("endpoint", &self.endpoint)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// How long calls may take. A call that takes longer is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Making a connection.
    pub connect: Duration,
    /// A pull, beyond the time that it waits for messages.
    pub poll_margin: Duration,
    /// A settlement.
    pub settle: Duration,
    /// A publish.
    pub publish: Duration,
    /// One call of provisioning.
    pub admin: Duration,
}

impl Default for Timeouts {
    /// 3 s to connect, 8 s beyond a pull's wait, 5 s to settle, 10 s to publish, 10 s for a call of provisioning.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            poll_margin: Duration::from_secs(8),
            settle: Duration::from_secs(5),
            publish: Duration::from_secs(10),
            admin: Duration::from_secs(10),
        }
    }
}
