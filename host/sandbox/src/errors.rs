//! Why a sandbox could not be made, and why a component was not taken.

use std::path::PathBuf;

use crate::fit::Misfits;

/// Why there is no sandbox. The host cannot start.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The machine does not give what the pool reserves, or a setting is beyond what the engine can do.
    #[error(
        "the sandbox can't reserve a pool of {slots} instances with {memory} bytes of memory each: {text}; \
         lower `host.pool_slots` or the largest `limits.memory`, or raise the limit on address space (`ulimit -v`)"
    )]
    Pool {
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
        "component {} has {size} bytes, more than the {limit} that one may have",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
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
    /// The component is a valid one, but no handler that this host can run.
    #[error("component {} does not fit: {misfits}", path.display())]
    Misfit {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        misfits: Misfits,
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
