//! What a configuration says, once it is sound.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pumphouse_contract::Policy;
use pumphouse_contract::ports::Ordering;

use crate::place::Place;
use crate::tenancy::{HandlerConfig, Tenant};
use crate::words::{Dispatch, LogFormat, LogLevel, Provision, Semantics, Store};

/// The longest secret that is read from a file, in bytes.
const LONGEST_SECRET_BYTES: u64 = 64 * 1024;

/// Why the count of a Pub/Sub subscription can't advance; the end of F-3's text.
pub const UNCOUNTED: &str = "a Pub/Sub subscription without a dead-letter policy reports no delivery count; set `native`, or use `retry.window`";

/// A whole configuration. Two are equal when they mean the same, so that a reload can tell what changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `[host]`.
    pub host: Host,
    /// `[embedded]`.
    pub embedded: Embedded,
    /// `[sqs]`; none where the section is absent and nothing is on SQS.
    pub sqs: Option<Sqs>,
    /// `[pubsub]`; none where the section is absent and nothing is on Pub/Sub.
    pub pubsub: Option<Pubsub>,
    /// `[rocketmq]`; none where the section is absent and nothing is on RocketMQ.
    pub rocketmq: Option<Rocketmq>,
    /// The tenants by name.
    pub tenants: BTreeMap<String, Tenant>,
    /// The handlers by full name, `tenant/handler`.
    pub handlers: BTreeMap<String, HandlerConfig>,
    /// The subscriptions in the order of their names.
    pub subscriptions: Vec<Subscription>,
}

/// `[host]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// `state`, with the configuration's directory before it where it was relative.
    pub state: PathBuf,
    /// `admin.listen`; none for `off`.
    pub admin_listen: Option<SocketAddr>,
    /// `grace`.
    pub grace: Duration,
    /// `log`.
    pub log: Log,
    /// `pool_slots`.
    pub pool_slots: u32,
    /// `heavy_slots`.
    pub heavy_slots: u32,
    /// `guest_threads`; none for one for each core.
    pub guest_threads: Option<u32>,
    /// `resident_handlers`.
    pub resident_handlers: u32,
    /// `compile`.
    pub compile: Compile,
    /// `clock_resolution`.
    pub clock_resolution: Duration,
    /// `http.trust`, with the configuration's directory before it where it was relative.
    pub http_trust: Option<PathBuf>,
    /// `account_interval`; none for `"0s"`.
    pub account_interval: Option<Duration>,
    /// `metrics.handlers`.
    pub metrics_handlers: u32,
}

/// `host.compile`: what compiling one component may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compile {
    /// `memory`, in bytes.
    pub memory_bytes: u64,
    /// `time`.
    pub time: Duration,
}

/// `host.log`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Log {
    /// `format`.
    pub format: LogFormat,
    /// `level`.
    pub level: LogLevel,
}

/// `[embedded]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Embedded {
    /// `store`.
    pub store: Store,
    /// `provision`.
    pub provision: Provision,
}

/// `[sqs]`. What is absent is left to the SDK: environment, profile, instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sqs {
    /// `region`.
    pub region: Option<String>,
    /// `endpoint`, without a slash at its end.
    pub endpoint: Option<String>,
    /// `provision`.
    pub provision: Provision,
    /// `access_key_id`, `secret_access_key` and `session_token`; none for the default credential chain.
    pub credentials: Option<Credentials>,
}

/// `[pubsub]`. What is absent is found as Google's tools find it: environment, credentials, metadata server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pubsub {
    /// `project`.
    pub project: Option<String>,
    /// `endpoint`, without a slash at its end.
    pub endpoint: Option<String>,
    /// `credentials`; none for Application Default Credentials.
    pub credentials: Option<Secret>,
    /// `provision`.
    pub provision: Provision,
}

/// `[rocketmq]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rocketmq {
    /// `name_servers`, each as `host:port`. At least one.
    pub name_servers: Vec<String>,
    /// `namespace`.
    pub namespace: Option<String>,
    /// `access`; none where requests are not signed.
    pub access: Option<Access>,
    /// `tls`; none for plain TCP.
    pub tls: Option<Tls>,
    /// `provision`.
    pub provision: Provision,
}

/// `rocketmq.access`: what requests are signed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// `key`.
    pub key: Setting,
    /// `secret`.
    pub secret: Secret,
}

/// `rocketmq.tls`, with the configuration's directory before each path where it was relative.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// `trust`; none for the system's certificates.
    pub trust: Option<PathBuf>,
    /// `certificate`; there where `key` is.
    pub certificate: Option<PathBuf>,
    /// `key`.
    pub key: Option<PathBuf>,
}

/// An access key by reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// `access_key_id`.
    pub access_key_id: Secret,
    /// `secret_access_key`.
    pub secret_access_key: Secret,
    /// `session_token`.
    pub session_token: Option<Secret>,
}

/// Where a secret is to be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secret {
    /// In this environment variable.
    Env(String),
    /// In this file, whose last line break is no part of it.
    File(PathBuf),
}

/// A secret is not where the configuration says.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The environment variable is not set, or is no text.
    #[error("environment variable {0} holds no secret: set it")]
    Env(String),
    /// The file can't be read.
    #[error("secret file {path} can't be read")]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is too long for a secret, empty, or no text.
    #[error("secret file {0} must hold a text of 1 byte to 64 KiB")]
    Content(PathBuf),
}

impl Secret {
    /// The secret itself. Reads a file: not for the async runtime. Never logged by this crate.
    ///
    /// # Errors
    /// The variable or the file is not there, or holds no text.
    pub fn resolve(&self) -> Result<String, SecretError> {
        match self {
            Self::Env(name) => std::env::var(name)
                .ok()
                .filter(|value| !value.is_empty())
                .ok_or_else(|| SecretError::Env(name.clone())),
            Self::File(path) => read_secret(path),
        }
    }
}

fn read_secret(path: &Path) -> Result<String, SecretError> {
    let failed = |source| SecretError::File { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(LONGEST_SECRET_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    let whole = bytes.len() as u64 <= LONGEST_SECRET_BYTES;
    let text = String::from_utf8(bytes).ok().filter(|_| whole);
    let text = text.map(|text| text.trim_end_matches(['\r', '\n']).to_owned());
    text.filter(|text| !text.is_empty()).ok_or_else(|| SecretError::Content(path.to_owned()))
}

/// One setting of a handler's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// As it stands in the file.
    Text(String),
    /// By reference.
    Secret(Secret),
}

impl Setting {
    /// The text that the handler reads. May read a file: not for the async runtime.
    ///
    /// # Errors
    /// It is a reference to what is not there.
    pub fn resolve(&self) -> Result<String, SecretError> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Secret(secret) => secret.resolve(),
        }
    }
}

/// `[subscriptions.<subscription>]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Its name.
    pub name: String,
    /// The tenant of its handler.
    pub tenant: String,
    /// `source`.
    pub source: Place,
    /// `handler`: `tenant/handler`.
    pub handler: String,
    /// `dispatch`.
    pub dispatch: Dispatch,
    /// `concurrency`; 1 where `dispatch` is sequential.
    pub concurrency: u32,
    /// `max_deliveries`, `retry` and `on_fault`.
    pub policy: Policy,
    /// `dead_letter`.
    pub dead_letter: Option<Place>,
    /// `invalid_message`.
    pub invalid_message: Option<Place>,
    /// `deduplicate`.
    pub deduplicate: Option<Deduplicate>,
    /// `rejected`.
    pub rejected: bool,
    /// Whether rejected copies in the source are honoured (C-7): `rejected`, or the source is a rejection
    /// destination of this configuration.
    pub reads_copies: bool,
    /// What is done about the source: [`Subscription::provision_at`] of it.
    pub provision: Provision,
    /// `provision`, each transport's own where it is absent.
    pub provisioning: Provisioning,
    /// `native`.
    pub native: Option<Native>,
    /// `semantics`, where it is declared.
    pub semantics: Option<Semantics>,
    /// `ordering`, where it is declared.
    pub ordering: Option<Ordering>,
}

impl Subscription {
    /// What is done at start-up about a source or destination of this subscription.
    #[must_use]
    pub fn provision_at(&self, place: &Place) -> Provision {
        self.provisioning.at(place)
    }

    /// Why its source counts no deliveries, as far as the configuration tells (C-8); none where it does.
    #[must_use]
    pub fn count_stands_still(&self) -> Option<&'static str> {
        (self.source.pubsub_source().is_some() && self.native.is_none()).then_some(UNCOUNTED)
    }
}

/// What is done at start-up, by transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provisioning {
    /// About embedded queues.
    pub embedded: Provision,
    /// About queues, topics and policies of SQS and SNS.
    pub sqs: Provision,
    /// About topics, subscriptions and policies of Pub/Sub.
    pub pubsub: Provision,
    /// About topics and consumer groups of RocketMQ.
    pub rocketmq: Provision,
}

impl Provisioning {
    /// The same everywhere.
    pub(crate) fn all(how: Provision) -> Self {
        Self { embedded: how, sqs: how, pubsub: how, rocketmq: how }
    }

    /// What is done about this place.
    #[must_use]
    pub fn at(&self, place: &Place) -> Provision {
        match place {
            Place::Embedded { .. } => self.embedded,
            Place::Sqs(_) => self.sqs,
            Place::Pubsub(_) => self.pubsub,
            Place::Rocketmq(_) => self.rocketmq,
        }
    }
}

/// `deduplicate` (S-5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deduplicate {
    /// `key`.
    pub key: DeduplicationKey,
    /// `ttl`.
    pub ttl: Duration,
}

/// What makes two messages one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeduplicationKey {
    /// The broker's message id.
    Id,
    /// This header; a message without it goes by its id.
    Header(String),
}

impl fmt::Display for DeduplicationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id => f.write_str("id"),
            Self::Header(name) => write!(f, "header:{name}"),
        }
    }
}

/// `native`: the broker's own dead-letter policy (C-15).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Native {
    /// M, the most deliveries, the first included: `max_receive_count` on SQS, `max_delivery_attempts` on Pub/Sub.
    pub limit: u32,
    /// `dead_letter`, always there on Pub/Sub.
    pub dead_letter: Option<Place>,
    /// `publisher_member` of Pub/Sub.
    pub publisher_member: Option<String>,
    /// `subscriber_member` of Pub/Sub.
    pub subscriber_member: Option<String>,
}
