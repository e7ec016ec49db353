//! The clock that interrupts guests: a thread that ticks while calls run, and rests while none does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::{self, Thread};
use std::time::Duration;

use wasmtime::{Engine, EngineWeak};

use crate::errors::SandboxError;

/// How long a guest runs before it gives its thread to others.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// Ticks without a call before the thread rests. To wake it costs a call some microseconds.
const IDLE_TICKS: u32 = 200;

const NAME: &str = "pumphouse-tick";

/// The ticking thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Ticker {
    pulse: Arc<Pulse>,
    thread: Thread,
}

#[derive(Debug, Default)]
struct Pulse {
    calls: AtomicUsize,
    resting: AtomicBool,
    stopped: AtomicBool,
}

/// A call that is running.
#[derive(Debug)]
pub(crate) struct Running<'a>(&'a Pulse);

impl Ticker {
    /// Starts the thread.
    pub(crate) fn start(engine: &Engine) -> Result<Self, SandboxError> {
        let pulse = Arc::new(Pulse::default());
        let (shared, engine) = (pulse.clone(), engine.weak());
        let ticking = thread::Builder::new().name(NAME.to_owned());
        let ticking = ticking.spawn(move || tick(&shared, &engine));
        let thread = ticking.map_err(|error| SandboxError::Thread(NAME, error))?.thread().clone();
        Ok(Self { pulse, thread })
    }

    /// Says that a call runs, as long as the answer lives.
    pub(crate) fn running(&self) -> Running<'_> {
        self.pulse.calls.fetch_add(1, SeqCst);
        // The thread says that it rests before it looks at the calls once more, so one of the two sees the other.
        if self.pulse.resting.load(SeqCst) {
            self.thread.unpark();
        }
        Running(&self.pulse)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, SeqCst);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.pulse.stopped.store(true, SeqCst);
        self.thread.unpark();
    }
}

fn tick(pulse: &Pulse, engine: &EngineWeak) {
    let mut idle = 0;
    while !pulse.stopped.load(SeqCst) {
        thread::sleep(TICK);
        let Some(engine) = engine.upgrade() else { return };
        engine.increment_epoch();
        idle = if pulse.calls.load(SeqCst) == 0 { idle + 1 } else { 0 };
        if idle >= IDLE_TICKS {
            rest(pulse);
            idle = 0;
        }
    }
}

fn rest(pulse: &Pulse) {
    pulse.resting.store(true, SeqCst);
    while pulse.calls.load(SeqCst) == 0 && !pulse.stopped.load(SeqCst) {
        thread::park();
    }
    pulse.resting.store(false, SeqCst);
}
