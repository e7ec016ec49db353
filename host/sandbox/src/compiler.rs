//! Compiling components: one at a time, on a thread that gives way to everything else.
//!
//! A thread of the lowest priority leaves a handler's p99 as it is; that it shares the process is what a worker
//! process would better: it could be limited and killed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use wasmtime::Engine;

use crate::errors::SandboxError;

const NAME: &str = "pumphouse-compile";
const LOWEST_PRIORITY: i32 = 19;

/// What is queued before those who ask for more wait. Each of them waits for its own answer, too.
const QUEUE: usize = 16;

/// The compiling thread. It ends when this is dropped, after what it is at.
#[derive(Debug)]
pub(crate) struct Compiler(SyncSender<Job>);

struct Job {
    component: Vec<u8>,
    answer: SyncSender<Result<Vec<u8>, String>>,
}

/// Why nothing was compiled.
#[derive(Debug)]
pub(crate) enum CompileError {
    /// The component is not a valid one.
    Invalid(String),
    /// There is no compiler any more.
    Stopped,
}

impl Compiler {
    /// Starts the thread.
    pub(crate) fn start(engine: &Engine) -> Result<Self, SandboxError> {
        let (sender, jobs) = sync_channel(QUEUE);
        let engine = engine.clone();
        thread::Builder::new()
            .name(NAME.to_owned())
            .spawn(move || work(&engine, &jobs))
            .map_err(|error| SandboxError::Thread(NAME, error))?;
        Ok(Self(sender))
    }

    /// Compiles a component. Blocks as long as that takes: seconds, for a large one.
    pub(crate) fn compile(&self, component: Vec<u8>) -> Result<Vec<u8>, CompileError> {
        let (answer, result) = sync_channel(1);
        self.0.send(Job { component, answer }).map_err(|_| CompileError::Stopped)?;
        result.recv().map_err(|_| CompileError::Stopped)?.map_err(CompileError::Invalid)
    }
}

fn work(engine: &Engine, jobs: &Receiver<Job>) {
    // On Linux this is the calling thread's priority, not the process's.
    if let Err(error) = rustix::process::setpriority_process(None, LOWEST_PRIORITY) {
        tracing::warn!(%error, "components are compiled at ordinary priority");
    }
    while let Ok(Job { component, answer }) = jobs.recv() {
        let compiled = catch_unwind(AssertUnwindSafe(|| engine.precompile_component(&component)));
        let result = match compiled {
            Ok(result) => result.map_err(|error| format!("{error:#}")),
            Err(_) => Err("the compiler failed on it; please report this".to_owned()),
        };
        // Whoever asked may have gone.
        drop(answer.send(result));
    }
}
