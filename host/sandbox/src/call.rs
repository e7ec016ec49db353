//! One call: a place, a fresh instance, the guest's answer or what happened instead.

use std::pin::pin;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pumphouse_contract::ports::Invocation;
use pumphouse_contract::{Ended, Fault, HeaderValue, Message, Outcome, Reason, Rejection, Usage};
use tokio::sync::SemaphorePermit;
use tokio::time::timeout_at;
use wasmtime::Store;

use crate::bindings::pumphouse::handler::types as wit;
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
        Ok(Ok(outcome)) => Ok(answer(outcome)),
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
    guest.into_store(code.pre.engine(), &code.limits)
}

async fn attempt(
    code: &Code,
    invocation: &Invocation,
    store: &mut Store<Guest>,
    progress: &mut Progress,
) -> wasmtime::Result<wit::Outcome> {
    let began = Instant::now();
    let instance = code.pre.instantiate_async(&mut *store).await?;
    *progress = Progress { phase: Phase::Calling, instantiation: began.elapsed() };
    let binary = binary_headers(&invocation.message);
    let headers = headers(&invocation.message, &binary);
    let message = message(invocation, &headers);
    instance.pumphouse_handler_incoming_handler().call_handle(store, message).await
}

/// The values that a guest sees in base64, in order. Most messages have none.
fn binary_headers(message: &Message) -> Vec<String> {
    let binary = message.headers.iter().filter_map(|(_, value)| match value {
        HeaderValue::Binary(bytes) => Some(BASE64.encode(bytes)),
        HeaderValue::Text(_) | HeaderValue::Number(_) => None,
    });
    binary.collect()
}

fn headers<'a>(message: &'a Message, binary: &'a [String]) -> Vec<(&'a str, &'a str)> {
    let mut binary = binary.iter();
    let pairs = message.headers.iter().map(|(name, value)| {
        let value = value.as_str().or_else(|| binary.next().map(String::as_str));
        (name, value.unwrap_or_default())
    });
    pairs.collect()
}

fn message<'a>(invocation: &'a Invocation, headers: &'a [(&'a str, &'a str)]) -> wit::Message<'a> {
    let message = &*invocation.message;
    wit::Message {
        id: &message.id,
        source: &invocation.source,
        delivery_count: invocation.count.0,
        headers,
        content_type: message.content_type.as_deref(),
        ordering_key: message.ordering_key.as_deref(),
        published_at: message.published_at.map(|time| time.0),
        body: &message.body,
    }
}

fn answer(outcome: wit::Outcome) -> Outcome {
    match outcome {
        wit::Outcome::Ack => Outcome::Ack,
        wit::Outcome::Defer(millis) => Outcome::Defer(millis.map(Duration::from_millis)),
        wit::Outcome::Reject(wit::Rejection { reason, description }) => {
            let reason = match reason {
                wit::RejectionReason::Unacceptable => Reason::Unacceptable,
                wit::RejectionReason::DeliveryError => Reason::DeliveryError,
                wit::RejectionReason::None => Reason::None,
            };
            Outcome::Reject(Rejection { reason, description })
        }
    }
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
    let usage = Usage { cpu: meter.cpu, memory_peak, instantiation: progress.instantiation };
    Ended { result, usage }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use pumphouse_contract::Headers;

    #[test]
    fn a_guest_sees_numbers_in_digits_and_bytes_in_base64() {
        let headers: Headers = [
            ("text", HeaderValue::from("a")),
            ("raw", HeaderValue::Binary(Bytes::from_static(b"\xff\xfe"))),
            ("number", HeaderValue::Number("7".into())),
            ("more", HeaderValue::Binary(Bytes::from_static(b"x"))),
        ]
        .into_iter()
        .collect();
        let message = Message { headers, ..Message::default() };
        let binary = binary_headers(&message);
        assert_eq!(
            super::headers(&message, &binary),
            [("text", "a"), ("raw", "//4="), ("number", "7"), ("more", "eA==")]
        );
    }
}
