//! What a sandbox is given: by the host for all handlers, by a tenant for one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::http::HttpGrant;
use crate::secrets::SecretText;

const MIB: u64 = 1024 * 1024;

/// The settings that all handlers of a host share.
#[derive(Debug, Clone)]
pub struct SandboxSettings {
    /// Where compiled components are kept from one start to the next. None: they are compiled at every start.
    /// The folder is made if it is missing; one that others can write is refused.
    pub cache: Option<PathBuf>,
    /// The file with the key that compiled components are sealed with. None: beside the folder, with the extension
    /// `key`. It is made if it is missing; one that others can read is refused.
    pub cache_key: Option<PathBuf>,
    /// The most bytes of compiled components that are kept though no handler uses them. The oldest go first.
    pub cache_unused: u64,
    /// How components are compiled.
    pub compiling: Compiling,
    /// The most handlers whose components are in memory. The others are loaded from the cache when a message comes
    /// for them, and those that were called longest ago make room. Without a cache all stay.
    pub resident: usize,
    /// The threads that run guests. None: one for each processor.
    pub guest_threads: Option<usize>,
    /// The most instances that live at once, over all handlers. Calls beyond it wait.
    pub pool_slots: usize,
    /// The same for handlers that bring an interpreter ([`Runtime::Heavy`]). Reserved when the first of them is
    /// deployed.
    pub heavy_slots: usize,
    /// The most linear memory of one instance, in bytes. No handler's [`Limits::memory`] may be above it.
    pub max_memory: u64,
    /// The most elements of one table. No handler's [`Limits::table_elements`] may be above it.
    pub max_table_elements: u64,
    /// The stack of a guest's calls, in bytes. It is one for all, since the engine knows no other.
    pub stack: usize,
    /// The largest file that is read as a component, in bytes.
    pub max_component: u64,
    /// What the clocks step by that guests see. A fine clock is what guests measure each other with.
    pub clock_resolution: Duration,
    /// How often watched files are looked at.
    pub scan_interval: Duration,
    /// Certificate authorities that handlers' outgoing HTTP trusts beside the machine's own: files in PEM.
    pub http_trust: Vec<PathBuf>,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            cache: None,
            cache_key: None,
            cache_unused: 4 * 1024 * MIB,
            compiling: Compiling::Here,
            resident: 2_048,
            guest_threads: None,
            pool_slots: 512,
            heavy_slots: 64,
            max_memory: 64 * MIB,
            max_table_elements: 20_000,
            stack: 512 * 1024,
            max_component: 128 * MIB,
            clock_resolution: crate::clocks::STEP,
            scan_interval: Duration::from_secs(1),
            http_trust: Vec::new(),
        }
    }
}

/// How components are compiled: one at a time, and at a low priority as soon as messages are handled.
#[derive(Debug, Clone, Default)]
pub enum Compiling {
    /// On a thread of this process. What is too much for the compiler is too much for this process: for components
    /// that are one's own.
    #[default]
    Here,
    /// Each in a process of its own, which is limited and can be killed.
    Worker(CompileWorker),
}

/// How a compile worker is started: a program that calls [`compile_worker`](crate::compile_worker) with the arguments
/// that follow `arguments`. It must be built with the same engine as this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileWorker {
    /// The program, by its whole path.
    pub program: PathBuf,
    /// What comes first on its command line.
    pub arguments: Vec<OsString>,
    /// `host.compile.memory`: the address space, in bytes.
    pub memory: u64,
    /// `host.compile.time`: the time on a processor, in whole seconds.
    pub time: Duration,
    /// The time that passes until it is killed: a process of low priority on a busy machine needs much longer
    /// than it computes.
    pub patience: Duration,
}

impl CompileWorker {
    /// This very program, with one argument before the sandbox's own: also where its file was replaced meanwhile.
    pub fn this_program(argument: impl Into<OsString>) -> Self {
        Self {
            program: "/proc/self/exe".into(),
            arguments: vec![argument.into()],
            memory: 2 * 1024 * MIB,
            time: Duration::from_secs(120),
            patience: Duration::from_secs(1_200),
        }
    }

    /// The same with so much time on a processor, and ten times as much to pass.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        Self { time, patience: time.saturating_mul(10), ..self }
    }
}

/// A handler to be loaded.
#[derive(Debug, Clone)]
pub struct HandlerSpec {
    /// `tenant/name`.
    pub name: String,
    /// The component's file.
    pub component: PathBuf,
    /// What one call may use.
    pub limits: Limits,
    /// What the handler may see and do beyond its message.
    pub grants: Grants,
    /// Whether the file is watched, and the handler swapped when it changes.
    pub watch: bool,
    /// Which pool its instances come from.
    pub runtime: Runtime,
    /// Whether an instance handles more than one message. None: what the runtime has by default.
    pub instances: Option<Instances>,
}

impl HandlerSpec {
    /// A watched handler with the default limits and no grant.
    pub fn new(name: impl Into<String>, component: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            component: component.into(),
            limits: Limits::default(),
            grants: Grants::default(),
            watch: true,
            runtime: Runtime::Auto,
            instances: None,
        }
    }
}

/// Which pool a handler's instances come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Runtime {
    /// The heavy one where the component needs it: more than 1 MiB of code and data, or more tables, core instances or
    /// table elements than the lean one has.
    #[default]
    Auto,
    /// Many small instances, for compiled guests.
    Lean,
    /// Fewer and larger ones, for guests that bring an interpreter.
    Heavy,
}

/// Whether and how long an instance handles one message after another, each of the same handler and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instances {
    /// A fresh one for every message: nothing is left of one when the next comes.
    Fresh,
    /// One is kept after an answer, until one of these is reached. After a fault none is.
    Reused {
        /// The messages that it handles.
        messages: u32,
        /// The time since it was made.
        age: Duration,
        /// The instances of the handler that wait for a message.
        idle: usize,
    },
}

impl Instances {
    /// Reused for 1,000 messages or 60 seconds, 8 of them waiting at most.
    pub const REUSED: Self =
        Self::Reused { messages: 1_000, age: Duration::from_secs(60), idle: 8 };
}

/// What one call of a handler may use. Each limit ends in a fault of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `limits.memory`: the linear memory of the instance, in bytes.
    pub memory: u64,
    /// `limits.table`: the elements of one table.
    pub table_elements: u64,
    /// `limits.cpu`: the time on a processor. None: the deadline alone bounds it.
    pub cpu: Option<Duration>,
    /// `limits.deadline`: from the call to its end, with host calls and the wait for a free instance.
    pub deadline: Duration,
    /// `limits.log`: the bytes that one call may log.
    pub log_bytes: u64,
    /// `limits.log_lines`: the lines that one call may log.
    pub log_lines: u64,
    /// `limits.result`: the bytes that the host copies from the guest in one step: an answer with its
    /// description, or a line for the log.
    pub result_bytes: u64,
    /// `limits.concurrency`: the calls that run at once. Calls beyond it wait.
    pub concurrency: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 64 * MIB,
            table_elements: 20_000,
            cpu: None,
            deadline: Duration::from_secs(30),
            log_bytes: 64 * 1024,
            log_lines: 1_000,
            result_bytes: MIB,
            concurrency: 32,
        }
    }
}

/// What all handlers of a tenant together may use. A tenant that was never named has the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantLimits {
    /// `limits.weight`: the tenant's part of the processors, in proportion to the others'; at least 1.
    pub weight: u32,
    /// `limits.runnable`: the calls that compute at once; at least 1. Calls beyond it wait for their turn.
    pub runnable: usize,
    /// `limits.instances`: the instances that live at once in each pool; at least 1. None: a quarter of the pool.
    /// Calls beyond it wait.
    pub instances: Option<usize>,
    /// `limits.log_rate`: bytes that are logged in a second. None: each call's own budget alone.
    pub log_bytes_per_second: Option<u64>,
    /// `limits.log_lines_rate`: lines that are logged in a second. None: each call's own budget alone.
    pub log_lines_per_second: Option<u64>,
    /// `limits.component`: the largest component, in bytes. None: the host's own bound.
    pub component_bytes: Option<u64>,
    /// `limits.handlers`: how many handlers may be loaded. None: any number.
    pub handlers: Option<usize>,
}

impl Default for TenantLimits {
    fn default() -> Self {
        Self {
            weight: 100,
            runnable: 4,
            instances: None,
            log_bytes_per_second: None,
            log_lines_per_second: None,
            component_bytes: None,
            handlers: None,
        }
    }
}

/// What a handler may see and do beyond its message. Nothing by default.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// `grants.logging`: lines in the operator's log.
    pub logging: bool,
    /// `grants.config`: settings, text by name.
    pub config: Option<BTreeMap<String, String>>,
    /// The names in `config` whose values came by reference. They are redacted like secrets.
    pub config_references: BTreeSet<String>,
    /// `grants.secrets`: secrets by name. An empty one grants nothing.
    pub secrets: BTreeMap<String, SecretText>,
    /// `grants.http`: outgoing HTTP. Without it the interface is refused.
    pub http: Option<HttpGrant>,
}

impl fmt::Debug for Grants {
    /// Without any value: some settings are secrets too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = self.config.as_ref().map(|config| config.keys().collect::<Vec<_>>());
        f.debug_struct("Grants")
            .field("logging", &self.logging)
            .field("config", &config)
            .field("config_references", &self.config_references)
            .field("secrets", &self.secrets)
            .field("http", &self.http)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_show_names_and_no_values() {
        let grants = Grants {
            config: Some([("url".into(), "postgres://u:hunter2@db".into())].into()),
            secrets: [("token".into(), SecretText::new("s3cr3t-token"))].into(),
            ..Grants::default()
        };
        let shown = format!("{grants:?} {}", SecretText::new("s3cr3t-token"));
        assert!(shown.contains("url") && shown.contains("token"), "{shown}");
        assert!(!shown.contains("hunter2") && !shown.contains("s3cr3t-token"), "{shown}");
    }
}
