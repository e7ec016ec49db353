//! Why a sandbox could not be made, and why a component was not taken.

use std::path::PathBuf;
use std::time::Duration;

use crate::fit::Misfits;

/// Why there is no sandbox. The host cannot start.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The machine does not give what the pool reserves, or a setting is beyond what the engine can do.
    #[error(
        "the sandbox can't reserve a pool of {slots} instances with {memory} bytes of memory each: {text}; \
         lower `{key}` or the largest `limits.memory`, or raise the limit on address space (`ulimit -v`)"
    )]
    Pool {
        /// The setting that says how many instances.
        key: &'static str,
        /// The instances asked for.
        slots: usize,
        /// The memory of each, in bytes.
        memory: u64,
        /// What the engine said.
        text: String,
    },
    /// A setting that makes no sense.
    #[error("setting `{key}`: {text}")]
    Setting {
        /// Its key.
        key: &'static str,
        /// What is wrong with it.
        text: String,
    },
    /// The folder for compiled components can't be trusted or used.
    #[error("cache folder {}: {text}", path.display())]
    Cache {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        text: String,
    },
    /// The operating system gave no thread.
    #[error("thread {0} could not be started: {1}")]
    Thread(&'static str, std::io::Error),
    /// The engine could not be set up.
    #[error("the WebAssembly engine could not be set up: {0}")]
    Engine(String),
}

/// Why a component is not taken. What was loaded before goes on.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// The file can't be read.
    #[error("component {} can't be read: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        error: std::io::Error,
    },
    /// The file was written while it was read.
    #[error("component {} changed while it was read; it is read again when it rests", path.display())]
    Unsettled {
        /// The file.
        path: PathBuf,
    },
    /// The file is larger than a component may be.
    #[error(
        "component {} has {size} bytes, more than the {limit} of {bound}; {remedy}",
        path.display(),
        bound = key.map_or_else(|| "the host".to_owned(), |key| format!("`{key}`")),
        remedy = key.map_or("make it smaller, for example by leaving out debugging information", |_| {
            "make it smaller, or raise the tenant's limit"
        })
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
        /// The key of the tenant's limit; none where it is the host's own.
        key: Option<&'static str>,
    },
    /// The file is not a component.
    #[error("{} is not a WebAssembly component: {text}", path.display())]
    NotAComponent {
        /// The file.
        path: PathBuf,
        /// What it is instead, and what to do.
        text: String,
    },
    /// The component does not compile: it is broken, or it was cut off.
    #[error("component {} does not compile: {text}", path.display())]
    Compile {
        /// The file.
        path: PathBuf,
        /// What the compiler said.
        text: String,
    },
    /// It was too much for the compiler, which was ended. Others are compiled as before.
    #[error("component {} was not compiled: {end}", path.display())]
    CompilerEnded {
        /// The file.
        path: PathBuf,
        /// What it was too much of, and what to do.
        end: CompilerEnd,
    },
    /// Too many components of the tenant wait for the compiler.
    #[error(
        "component {} was not compiled: {waiting} of tenant {tenant} wait for the compiler already; deploy it again \
         when fewer do",
        path.display()
    )]
    CompilerBusy {
        /// The file.
        path: PathBuf,
        /// The tenant.
        tenant: String,
        /// How many wait.
        waiting: usize,
    },
    /// The tenant has as many handlers as it may have.
    #[error(
        "handler {handler} would be number {asked} of its tenant, more than the {limit} of `{key}`; remove another, \
         or raise the tenant's limit"
    )]
    TenantLimit {
        /// The handler.
        handler: String,
        /// The limit's key.
        key: &'static str,
        /// How many there would be.
        asked: usize,
        /// How many there may be.
        limit: usize,
    },
    /// The component is a valid one, but no handler that this host can run.
    #[error("component {} does not fit: {misfits}", path.display())]
    Misfit {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        misfits: Misfits,
    },
    /// There is no pool that its instances could come from. The heavy one is reserved for the first that needs it.
    #[error("component {} has no instances to be had: {error}", path.display())]
    NoPool {
        /// The file.
        path: PathBuf,
        /// What the machine did not give, and what to lower.
        error: SandboxError,
    },
    /// A limit is beyond what the host's sandbox was made for.
    #[error(
        "handler {handler}: `{key}` is {asked}, more than the {most} that the running host made room for; \
         restart the host to raise it"
    )]
    Limit {
        /// The handler.
        handler: String,
        /// The limit's key.
        key: &'static str,
        /// What was asked.
        asked: u64,
        /// What the host made room for when it started.
        most: u64,
    },
    /// The sandbox was shut down meanwhile, or its own machinery failed.
    #[error("component {} could not be loaded: {text}", path.display())]
    Host {
        /// The file.
        path: PathBuf,
        /// What happened.
        text: String,
    },
}

/// What a component was too much of for the compiler.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompilerEnd {
    /// Address space.
    #[error(
        "the compiler needed more than the {limit} bytes of `host.compile.memory`; make the component's functions \
         smaller, or raise it"
    )]
    Memory {
        /// In bytes.
        limit: u64,
    },
    /// Time on a processor.
    #[error(
        "the compiler computed for more than the {limit:?} of `host.compile.time`; make the component smaller, or \
         raise it"
    )]
    Time {
        /// How long it may compute.
        limit: Duration,
    },
    /// Time that passed.
    #[error(
        "the compiler had not ended after {limit:?}, many times `host.compile.time`; the machine is overloaded, or the \
         component too large"
    )]
    Slow {
        /// How long it was waited for.
        limit: Duration,
    },
    /// A fault of the compiler.
    #[error("the compiler failed on it ({text}); please report this")]
    Crashed {
        /// What is known of it.
        text: String,
    },
}
