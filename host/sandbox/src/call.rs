//! One call: a place, a fresh instance, the guest's answer or what happened instead.

use std::pin::pin;
use std::time::{Duration, Instant};

use pumphouse_contract::ports::Invocation;
use pumphouse_contract::{Ended, Fault, Outcome, Usage};
use tokio::sync::SemaphorePermit;
use tokio::time::timeout_at;
use wasmtime::Store;

use crate::faults::{self, Circumstances, Phase};
use crate::guest::Guest;
use crate::journal::{Journal, Speaker};
use crate::meter::Meter;
use crate::version::Code;

/// Calls the handler, in a fresh instance. Ends within the deadline, which began at `began`.
pub(crate) async fn run(code: &Code, invocation: Invocation, began: Instant) -> Ended {
    let deadline = began + code.limits.deadline;
    let places = places(code, deadline).await;
    let waited = began.elapsed();
    // A place may come free at the very deadline, when those that hold one are cut.
    let (Some(_places), true) = (places, waited < code.limits.deadline) else {
        return Ended::fault(faults::never_began(&code.limits));
    };
    let _running = code.machine.ticker.running();
    let mut meter = Meter::after(waited);
    let mut store = store(code, &invocation, deadline);
    let mut progress = Progress { phase: Phase::Instantiating, instantiation: Duration::ZERO };
    let attempt = {
        // Pinned here: these futures are large, and each adapter around them would move them once more.
        let attempt = pin!(attempt(code, &invocation, &mut store, &mut progress));
        let metered = pin!(meter.run(attempt));
        timeout_at(deadline.into(), metered).await
    };
    let result = match attempt {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(error)) => {
            Err(faults::fault(&error, circumstances(code, &store, progress.phase, &meter)))
        }
        Err(_) => Err(faults::cut(circumstances(code, &store, progress.phase, &meter))),
    };
    ended(result, &store, &progress, &meter)
}

#[derive(Debug)]
struct Progress {
    phase: Phase,
    instantiation: Duration,
}

type Places<'a> = (Option<SemaphorePermit<'a>>, Option<SemaphorePermit<'a>>);

/// A place of the handler's own, then one of the pool's: calls that have to wait hold none of the pool's.
async fn places(code: &Code, deadline: Instant) -> Option<Places<'_>> {
    let (own, pool) = (&code.places, &code.machine.slots);
    if let Ok(place) = own.try_acquire() {
        return match pool.try_acquire() {
            Ok(slot) => Some((Some(place), Some(slot))),
            Err(_) => {
                let slot = timeout_at(deadline.into(), pool.acquire()).await.ok()?;
                Some((Some(place), slot.ok()))
            }
        };
    }
    let both = async { (own.acquire().await.ok(), pool.acquire().await.ok()) };
    timeout_at(deadline.into(), both).await.ok()
}

fn store(code: &Code, invocation: &Invocation, deadline: Instant) -> Store<Guest> {
    let speaker = Speaker {
        handler: code.name.clone(),
        version: code.digest.clone(),
        message: invocation.message.clone(),
    };
    let journal = Journal::new(speaker, code.logging, &code.limits);
    let guest = Guest::new(&code.limits, deadline, journal, code.config.clone());
    guest.into_store(code.entry.engine(), &code.limits)
}

async fn attempt(
    code: &Code,
    invocation: &Invocation,
    store: &mut Store<Guest>,
    progress: &mut Progress,
) -> wasmtime::Result<Outcome> {
    let began = Instant::now();
    let instance = code.entry.instantiate(store).await?;
    *progress = Progress { phase: Phase::Calling, instantiation: began.elapsed() };
    instance.call(store, invocation).await
}

fn circumstances<'a>(
    code: &'a Code,
    store: &Store<Guest>,
    phase: Phase,
    meter: &'a Meter,
) -> Circumstances<'a> {
    Circumstances {
        phase,
        limits: &code.limits,
        stack: code.machine.stack,
        tripped: store.data().limiter.tripped(),
        meter,
        tail: store.data().journal.tail(),
    }
}

fn ended(
    result: Result<Outcome, Fault>,
    store: &Store<Guest>,
    progress: &Progress,
    meter: &Meter,
) -> Ended {
    let memory_peak = store.data().limiter.peak();
    let usage = Usage {
        cpu: meter.cpu,
        memory_peak,
        instantiation: progress.instantiation,
        ..Usage::default()
    };
    Ended { result, usage }
}
