//! Compiling components: one at a time, in a process of its own, and fair among tenants.
//!
//! A thread of low priority takes the jobs in turns. It reads the component only then, so that what waits is
//! small, however large it is; it puts what came of it into the cache, and the next job for the same component finds
//! it there.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, oneshot};
use wasmtime::Engine;

use crate::cache::Cache;
use crate::errors::{CompilerEnd, DeployError, SandboxError};
use crate::settings::Compiling;
use crate::turns::Turns;
use crate::worker::LOW_PRIORITY;
use crate::{digest, file, process};

const NAME: &str = "pumphouse-compile";

/// Jobs of one tenant that wait. Each is some hundred bytes.
const MOST_WAITING: usize = 10_000;

/// The compiling thread. Dropping this ends it and what it is at.
#[derive(Debug)]
pub(crate) struct Compiler {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    turns: Mutex<Turns<Job>>,
    bell: Notify,
    stop: Notify,
    stopped: AtomicBool,
    /// A message was handled: there is somebody to give way to.
    served: AtomicBool,
}

/// A component to be compiled.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) tenant: Arc<str>,
    pub(crate) path: PathBuf,
    /// Of the component that is meant. The file may be another by the time that it is read.
    pub(crate) digest: String,
    /// The most bytes that it may have.
    pub(crate) most: u64,
    /// What the cache has of it is of no use.
    pub(crate) anew: bool,
}

#[derive(Debug)]
struct Job {
    work: Work,
    answer: oneshot::Sender<Result<Compiled, DeployError>>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// Of the component.
    pub(crate) digest: String,
    /// None where the cache had it by then.
    pub(crate) artifact: Option<Vec<u8>>,
    /// It is in the cache.
    pub(crate) kept: bool,
}

/// Why a component was not compiled.
#[derive(Debug)]
pub(crate) enum CompileError {
    /// It is not a valid one.
    Invalid(String),
    /// It was too much for the compiler.
    Ended(CompilerEnd),
    /// There is no worker to be had.
    NoWorker(io::Error),
    /// The sandbox is gone.
    Stopped,
}

impl Compiler {
    /// Starts the thread.
    pub(crate) fn start(
        engine: &Engine,
        how: &Compiling,
        cache: Option<Arc<Cache>>,
    ) -> Result<Self, SandboxError> {
        let failed = |error| SandboxError::Thread(NAME, error);
        let shared = Arc::new(Shared {
            turns: Mutex::new(Turns::new(MOST_WAITING)),
            bell: Notify::new(),
            stop: Notify::new(),
            stopped: AtomicBool::new(false),
            served: AtomicBool::new(false),
        });
        let bench = Bench { engine: engine.clone(), how: how.clone(), cache };
        let jobs = shared.clone();
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        thread::Builder::new()
            .name(NAME.to_owned())
            .spawn(move || work(&runtime, &bench, &jobs))
            .map_err(failed)?;
        Ok(Self { shared })
    }

    /// Compiles a component when its tenant's turn has come. That takes seconds for a large one, and longer where
    /// others wait.
    ///
    /// Dropping the future withdraws the job, if it has not begun.
    ///
    /// # Errors
    /// It can't be read or compiled, or too much waits already.
    pub(crate) async fn compile(&self, work: Work) -> Result<Compiled, DeployError> {
        let (answer, result) = oneshot::channel();
        let (tenant, path) = (work.tenant.clone(), work.path.clone());
        if self.shared.stopped.load(Ordering::Acquire) {
            return Err(deploy_error(path, CompileError::Stopped));
        }
        let pushed = self.shared.turns().push(&tenant, Job { work, answer });
        if pushed.is_err() {
            let tenant = tenant.to_string();
            return Err(DeployError::CompilerBusy { path, tenant, waiting: MOST_WAITING });
        }
        self.shared.bell.notify_one();
        result.await.unwrap_or_else(|_| Err(deploy_error(path, CompileError::Stopped)))
    }

    /// Says that messages are handled from here on.
    pub(crate) fn note_served(&self) {
        if !self.shared.served.load(Ordering::Relaxed) {
            self.shared.served.store(true, Ordering::Relaxed);
        }
    }

    /// Ends what is being compiled, and takes no more.
    pub(crate) fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Release);
        *self.shared.turns() = Turns::new(0);
        self.shared.bell.notify_one();
        self.shared.stop.notify_one();
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn turns(&self) -> MutexGuard<'_, Turns<Job>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job that someone waits for. None where there will be no more.
    async fn next(&self) -> Option<Job> {
        loop {
            if self.stopped.load(Ordering::Acquire) {
                return None;
            }
            let job = self.turns().pop();
            match job {
                Some(job) if job.answer.is_closed() => {}
                Some(job) => return Some(job),
                None => self.bell.notified().await,
            }
        }
    }
}

/// What the thread works with.
struct Bench {
    engine: Engine,
    how: Compiling,
    cache: Option<Arc<Cache>>,
}

fn work(runtime: &Runtime, bench: &Bench, shared: &Shared) {
    // On Linux this is the calling thread's priority, not the process's. A worker sets its own.
    if matches!(bench.how, Compiling::Here)
        && let Err(error) = rustix::process::setpriority_process(None, LOW_PRIORITY)
    {
        tracing::warn!(%error, "components are compiled at ordinary priority");
    }
    runtime.block_on(async {
        while let Some(Job { work, answer }) = shared.next().await {
            let done = bench.work(&work, shared).await;
            // Whoever asked may have gone.
            drop(answer.send(done));
        }
    });
}

impl Bench {
    async fn work(&self, work: &Work, shared: &Shared) -> Result<Compiled, DeployError> {
        if !work.anew && self.cache.as_ref().is_some_and(|cache| cache.has(&work.digest)) {
            return Ok(Compiled { digest: work.digest.clone(), artifact: None, kept: true });
        }
        let (component, _) = file::read(&work.path, work.most)?;
        if digest::of(&component) != work.digest {
            return Err(DeployError::Unsettled { path: work.path.clone() });
        }
        let compiled = match &self.how {
            Compiling::Here => self.here(&component),
            Compiling::Worker(worker) => {
                let gives_way = shared.served.load(Ordering::Relaxed);
                process::compile(worker, &component, gives_way, &shared.stop).await
            }
        };
        let artifact = compiled.map_err(|error| deploy_error(work.path.clone(), error))?;
        let kept = self.cache.as_ref().is_some_and(|cache| cache.put(&work.digest, &artifact));
        Ok(Compiled { digest: work.digest.clone(), artifact: Some(artifact), kept })
    }

    fn here(&self, component: &[u8]) -> Result<Vec<u8>, CompileError> {
        match catch_unwind(AssertUnwindSafe(|| self.engine.precompile_component(component))) {
            Ok(compiled) => compiled.map_err(|error| CompileError::Invalid(format!("{error:#}"))),
            Err(_) => {
                let text = "it panicked; the host's log says more".to_owned();
                Err(CompileError::Ended(CompilerEnd::Crashed { text }))
            }
        }
    }
}

fn deploy_error(path: PathBuf, error: CompileError) -> DeployError {
    match error {
        CompileError::Invalid(text) => DeployError::Compile { path, text },
        CompileError::Ended(end) => DeployError::CompilerEnded { path, end },
        CompileError::NoWorker(error) => {
            DeployError::Host { path, text: format!("no compile worker could be started: {error}") }
        }
        CompileError::Stopped => {
            DeployError::Host { path, text: "the sandbox was shut down".to_owned() }
        }
    }
}
