//! One call: a place, an instance, the guest's answer or what happened instead.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pumphouse_contract::ports::Invocation;
use pumphouse_contract::{Ended, Fault, FaultKind, HeaderValue, Outcome, Usage};
use tokio::sync::SemaphorePermit;
use tokio::time::timeout_at;
use wasmtime::Store;

use crate::demand::Pace;
use crate::entry::Entry;
use crate::faults::{self, Circumstances, Lack, Phase};
use crate::guest::Guest;
use crate::journal::{Journal, Speaker};
use crate::ledger::Logged;
use crate::meter::Meter;
use crate::pace::{CpuSpent, Paced};
use crate::resident::Loaded;
use crate::reuse::{Live, Seat};
use crate::version::Code;

/// A call that was begun. It is under way until it ends or is dropped, and then entered in the accounts.
pub(crate) struct Call {
    code: Arc<Code>,
    began: Instant,
    entered: bool,
}

/// How a call ended, and what the accounts want to know beside that.
struct Done {
    ended: Ended,
    waited: Duration,
    logged: Logged,
    late: bool,
}

impl Call {
    pub(crate) fn begin(code: Arc<Code>) -> Self {
        code.owner.tenant.demand.begin();
        code.machine.compiler.note_served();
        Self { code, began: Instant::now(), entered: false }
    }

    /// Calls the handler, in a fresh instance where its policy has no other. Ends within the deadline, which began
    /// with the call.
    pub(crate) async fn run(mut self, invocation: Invocation) -> Ended {
        let done = run(&self.code, invocation, self.began).await;
        self.enter(&done);
        done.ended
    }

    fn enter(&mut self, done: &Done) {
        self.entered = true;
        let (owner, now) = (&self.code.owner, Instant::now());
        for ledger in owner.ledgers() {
            ledger.enter(&done.ended, done.waited, done.logged, now);
        }
        owner.tenant.demand.end(if done.is_in_time() { Pace::InTime } else { Pace::Neither });
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.entered {
            self.code.owner.ledgers().iter().for_each(|ledger| ledger.enter_dropped());
            self.code.owner.tenant.demand.end(Pace::Neither);
        }
    }
}

impl Done {
    fn fault(fault: Fault, waited: Duration) -> Self {
        Self { ended: Ended::fault(fault), waited, logged: Logged::default(), late: true }
    }

    /// Whether there was room for it: not where it would have gone on, had it had more time.
    fn is_in_time(&self) -> bool {
        let cut = |kind| matches!(kind, FaultKind::Deadline | FaultKind::Starved | FaultKind::Cpu);
        !self.late && !self.ended.result.as_ref().is_err_and(|fault| cut(fault.kind))
    }
}

async fn run(code: &Code, invocation: Invocation, began: Instant) -> Done {
    let deadline = began + code.limits.deadline;
    let Seated { _place, seat, loaded, waited } = match seated(code, began, deadline).await {
        Ok(seated) => seated,
        Err(fault) => return Done::fault(fault, began.elapsed()),
    };
    let _running = code.shelf.pool.ticker.running();
    let mut live = live(code, seat, &invocation, deadline);
    let mut progress = Progress { phase: Phase::Instantiating, instantiation: Duration::ZERO };
    let places = &code.machine.tenants.places;
    let mut pace = Paced::new(&code.owner.tenant, places, &code.limits, waited);
    let attempt = {
        // Pinned here: these futures are large, and each adapter around them would move them once more.
        let attempt = pin!(attempt(&loaded.entry, &invocation, &mut live, &mut progress));
        let paced = pin!(pace.run(attempt));
        timeout_at(deadline.into(), paced).await
    };
    let around = |meter| circumstances(code, &live.store, progress.phase, meter);
    let result = match attempt {
        Ok(Ok(Ok(outcome))) => Ok(outcome),
        Ok(Ok(Err(error))) => Err(faults::fault(&error, around(&pace.meter))),
        Ok(Err(CpuSpent)) => Err(faults::cpu(around(&pace.meter))),
        Err(_) => {
            pace.cut();
            Err(faults::cut(around(&pace.meter)))
        }
    };
    let done = done(clean(code, result), &invocation, &live.store, &progress, &pace);
    if done.ended.result.is_ok() {
        code.shelf.rest(live);
    }
    done
}

/// What a call needs before it can begin.
struct Seated<'a> {
    /// The handler's own place.
    _place: SemaphorePermit<'a>,
    seat: Seat,
    loaded: Arc<Loaded>,
    waited: Duration,
}

/// Waits for what a call needs before it can begin.
///
/// # Errors
/// The fault of a call that did not get it before its deadline.
async fn seated(code: &Code, began: Instant, deadline: Instant) -> Result<Seated<'_>, Fault> {
    // Who waits for a component to be loaded holds no place.
    code.component.get(&code.machine, deadline).await?;
    let (place, seat) = places(code, deadline).await.map_err(|lack| never_began(code, lack))?;
    let waited = began.elapsed();
    // A place may come free at the very deadline, when those that hold one are cut.
    if waited >= code.limits.deadline {
        return Err(never_began(code, Lack::Concurrency));
    }
    // It may have left while the call waited for its place.
    let loaded = code.component.get(&code.machine, deadline).await?;
    Ok(Seated { _place: place, seat, loaded, waited })
}

/// That its tenant has more calls than it can do need not be found out twice.
fn never_began(code: &Code, lack: Lack) -> Fault {
    code.owner.tenant.late();
    faults::never_began(&code.limits, lack)
}

fn done(
    result: Result<Outcome, Fault>,
    invocation: &Invocation,
    store: &Store<Guest>,
    progress: &Progress,
    pace: &Paced<'_>,
) -> Done {
    let usage = usage(&result, invocation, store, progress, &pace.meter);
    Done {
        ended: Ended { result, usage },
        waited: pace.meter.waited,
        logged: store.data().journal.logged(),
        late: pace.is_late(),
    }
}

#[derive(Debug)]
struct Progress {
    phase: Phase,
    instantiation: Duration,
}

/// A place of the handler's own, then one of the pool's: calls that have to wait hold none of the pool's.
///
/// # Errors
/// What was short until the deadline.
async fn places(code: &Code, deadline: Instant) -> Result<(SemaphorePermit<'_>, Seat), Lack> {
    let place = match code.places.try_acquire() {
        Ok(place) => place,
        Err(_) => {
            let place = timeout_at(deadline.into(), code.places.acquire()).await;
            place.ok().and_then(Result::ok).ok_or(Lack::Concurrency)?
        }
    };
    if let Some(seat) = code.shelf.try_seat() {
        return Ok((place, seat));
    }
    let seat = timeout_at(deadline.into(), code.shelf.seat()).await;
    let short = || code.shelf.pool.slots.short(code.owner.tenant.id);
    Ok((place, seat.map_err(|_| Lack::Instances(short()))?))
}

/// What the call runs in: an instance that rested, or the place for a new one.
fn live(code: &Code, seat: Seat, invocation: &Invocation, deadline: Instant) -> Live {
    let speaker = Speaker {
        handler: code.name.clone(),
        version: code.digest.clone(),
        subscription: invocation.subscription.clone(),
        message: invocation.message.clone(),
        count: invocation.count,
    };
    match seat {
        Seat::Free(slot) => Live::new(store(code, speaker, deadline), slot),
        Seat::Rested(mut live) => {
            live.renew(speaker, deadline, &code.limits);
            live
        }
    }
}

fn store(code: &Code, speaker: Speaker, deadline: Instant) -> Store<Guest> {
    let journal = Journal::new(speaker, code.services.clone(), &code.limits);
    let guest =
        Guest::new(&code.limits, deadline, journal).with_clocks(code.machine.clock_resolution);
    guest.into_store(&code.shelf.pool.engine, &code.limits)
}

async fn attempt(
    entry: &Entry,
    invocation: &Invocation,
    live: &mut Live,
    progress: &mut Progress,
) -> wasmtime::Result<Outcome> {
    let began = Instant::now();
    live.prepare(entry).await?;
    *progress = Progress { phase: Phase::Calling, instantiation: began.elapsed() };
    live.call(invocation).await
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

/// What the guest says reaches logs and dead letters: not with a secret in it.
fn clean(code: &Code, result: Result<Outcome, Fault>) -> Result<Outcome, Fault> {
    let Some(redactor) = &code.services.redactor else { return result };
    match result {
        Ok(outcome) => Ok(redactor.clean_outcome(outcome)),
        Err(fault) => Err(redactor.clean(fault)),
    }
}

fn usage(
    result: &Result<Outcome, Fault>,
    invocation: &Invocation,
    store: &Store<Guest>,
    progress: &Progress,
    meter: &Meter,
) -> Usage {
    let guest = store.data();
    let (sent, received) = guest.traffic();
    Usage {
        cpu: meter.cpu,
        memory_peak: guest.limiter.peak(),
        instantiation: progress.instantiation,
        host_calls: guest.tally.host_calls,
        bytes_in: size_of_invocation(invocation) + guest.tally.bytes_in + received,
        bytes_out: size_of_answer(result) + guest.journal.said() + sent,
    }
}

/// What the guest is given of a message, in bytes.
fn size_of_invocation(Invocation { message, source, .. }: &Invocation) -> u64 {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let headers = message.headers.iter().map(|(name, value)| {
        let value = match value {
            HeaderValue::Text(text) | HeaderValue::Number(text) => text.len(),
            HeaderValue::Binary(bytes) => bytes.len(),
        };
        name.len() + value
    });
    let own = message.id.len() + source.len() + message.body.len();
    let kind = length(&message.content_type) + length(&message.ordering_key);
    (own + kind + headers.sum::<usize>()) as u64
}

fn size_of_answer(result: &Result<Outcome, Fault>) -> u64 {
    match result {
        Ok(Outcome::Reject(rejection)) => rejection.description.len() as u64,
        Ok(Outcome::Ack | Outcome::Defer(_)) | Err(_) => 0,
    }
}
