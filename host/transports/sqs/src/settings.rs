use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pumphouse_contract::Clock;

/// How to reach SQS and SNS. What is not set comes from the usual places of the AWS tools: environment,
/// profile, container, instance.
#[derive(Clone)]
pub struct SqsSettings {
    /// The region; else `AWS_REGION`, the profile's, or the instance's.
    pub region: Option<String>,
    /// The address of SQS and of SNS; else `AWS_ENDPOINT_URL_SQS`, `AWS_ENDPOINT_URL_SNS`, `AWS_ENDPOINT_URL`,
    /// or AWS.
    pub endpoint: Option<String>,
    /// Credentials; else the default chain, which refreshes them.
    pub credentials: Option<StaticCredentials>,
    /// How long calls may take.
    pub timeouts: Timeouts,
    /// What leases are measured with.
    pub clock: Arc<dyn Clock>,
}

impl SqsSettings {
    /// Everything from the usual places.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            region: None,
            endpoint: None,
            credentials: None,
            timeouts: Timeouts::default(),
            clock,
        }
    }
}

impl fmt::Debug for SqsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqsSettings")
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .field("credentials", &self.credentials)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// Credentials that do not change.
#[derive(Clone, PartialEq, Eq)]
pub struct StaticCredentials {
    /// The access key's id.
    pub access_key_id: String,
    /// The secret access key.
    pub secret_access_key: String,
    /// The session token of temporary credentials.
    pub session_token: Option<String>,
}

impl fmt::Debug for StaticCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticCredentials")
            .field("access_key_id", &self.access_key_id)
            .finish_non_exhaustive()
    }
}

/// How long calls may take. A call that takes longer is given up with its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Making a connection.
    pub connect: Duration,
    /// A receive, beyond the time that it waits for messages.
    pub poll_margin: Duration,
    /// A settlement.
    pub settle: Duration,
    /// A publish.
    pub publish: Duration,
    /// One call of provisioning, and asking for a depth.
    pub admin: Duration,
}

impl Default for Timeouts {
    /// 3 s to connect, 8 s beyond a poll's wait, 5 s to settle, 10 s to publish, 10 s for a call of provisioning.
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
