//! What a configuration says of tenants and their handlers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::types::{Secret, Setting};
use crate::words::{HttpScheme, Runtime};

/// `[tenants.<tenant>]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// `limits`: what holds for each call, and `concurrency` for all handlers of the tenant together.
    pub limits: Limits,
    /// `limits`: what all handlers of the tenant together may use.
    pub share: Share,
}

/// `limits` of a tenant that hold for all its handlers together. A reload changes them while calls run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// `weight`.
    pub weight: u32,
    /// `runnable`.
    pub runnable: u32,
    /// `instances`; none for a quarter of `host.pool_slots`.
    pub instances: Option<u32>,
    /// `log_rate`, in bytes a second; none for no rate.
    pub log_bytes_per_second: Option<u64>,
    /// `log_lines_rate`, a second; none for no rate.
    pub log_lines_per_second: Option<u32>,
    /// `messages_rate`, a second; none for no rate.
    pub messages_per_second: Option<u32>,
    /// `component`: the largest component, in bytes; none for the host's own bound.
    pub component_bytes: Option<u64>,
    /// `handlers`: how many; none for any number.
    pub handlers: Option<u32>,
}

/// `limits` of a tenant or a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `memory` of one call, in bytes.
    pub memory_bytes: u64,
    /// `cpu`: time on a processor of one call; none where the deadline alone bounds it.
    pub cpu: Option<Duration>,
    /// `deadline` of one call.
    pub deadline: Duration,
    /// `concurrency`: calls at once; none for no limit of its own. A handler does not take over its tenant's.
    pub concurrency: Option<u32>,
    /// `log` of one call, in bytes.
    pub log_bytes: u64,
    /// `log_lines` of one call.
    pub log_lines: u32,
    /// `result` of one call, in bytes.
    pub result_bytes: u64,
    /// `table`: elements of each table.
    pub table_elements: u32,
    /// `http`: what bounds outgoing requests.
    pub http: HttpLimits,
}

/// `limits.http`: what bounds the outgoing requests of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// `time`: of one request, to the last byte of its answer.
    pub time: Duration,
    /// `request`: the body of one request, in bytes.
    pub request_bytes: u64,
    /// `response`: the body of one answer, in bytes.
    pub response_bytes: u64,
    /// `calls`: requests that one call may have open at once.
    pub calls: u32,
}

/// `[tenants.<tenant>.handlers.<handler>]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerConfig {
    /// `tenant/handler`.
    pub name: String,
    /// The tenant.
    pub tenant: String,
    /// `component`, with the configuration's directory before it where it was relative.
    pub component: PathBuf,
    /// `limits`, the tenant's where they are absent.
    pub limits: Limits,
    /// `grants`.
    pub grants: Grants,
    /// `runtime`.
    pub runtime: Runtime,
    /// `instances`: when an instance is used again.
    pub instances: Reuse,
}

impl HandlerConfig {
    /// The name without the tenant's.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.name.split_once('/').map_or(self.name.as_str(), |(_, short)| short)
    }
}

/// `instances` of a handler. What is absent follows from the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reuse {
    /// `reuse`: whether an instance may see a second message.
    pub reuse: Option<bool>,
    /// `messages`: after how many it is dropped.
    pub messages: Option<u32>,
    /// `age`: after which time it is dropped.
    pub age: Option<Duration>,
    /// `idle`: how many wait for a message.
    pub idle: Option<u32>,
}

/// `grants` of a handler: what it gets beyond its message. Nothing by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// `logging`.
    pub logging: bool,
    /// `config`, by name. An empty one grants nothing.
    pub config: BTreeMap<String, Setting>,
    /// `secrets`, by name. An empty one grants nothing.
    pub secrets: BTreeMap<String, Secret>,
    /// `http`: what it may ask of whom. An empty one grants nothing.
    pub http: Vec<HttpGrant>,
}

/// One entry of `grants.http`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpGrant {
    /// `host` in small letters: a name, an address, or `*.` and the end of names.
    pub host: String,
    /// `port`; none for the scheme's own.
    pub port: Option<u16>,
    /// `scheme`.
    pub scheme: HttpScheme,
    /// `methods` in capitals, none twice.
    pub methods: Vec<String>,
    /// `private`: whether the name may resolve to an address that is not of the public network.
    pub private: bool,
}

impl std::fmt::Display for HttpGrant {
    /// `GET, POST https://api.example.com:8443`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let brackets = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        let (methods, (open, close)) = (self.methods.join(", "), brackets);
        write!(f, "{methods} {}://{open}{}{close}", self.scheme, self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(if self.private { " (private addresses too)" } else { "" })
    }
}
