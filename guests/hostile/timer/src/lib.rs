//! Measures how fine the clocks are that the host gives, as one would who wants to see what the processor's caches
//! hold: it reads each for a while and reports the smallest step that it saw, in nanoseconds, and the resolution that
//! the host claims: `monotonic=… wall=… claimed=…`.

#![cfg(target_family = "wasm")]

use std::time::{SystemTime, UNIX_EPOCH};

use hostile_wasi::{now, resolution};
use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

/// Changes of the clock that are looked at.
const STEPS: usize = 20;

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    let (monotonic, wall) = (smallest_step(now), smallest_step(wall));
    Outcome::unacceptable(format!("monotonic={monotonic} wall={wall} claimed={}", resolution()))
}

fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() * 1_000_000_000 + u64::from(since.subsec_nanos())
}

fn smallest_step(clock: impl Fn() -> u64) -> u64 {
    let mut smallest = u64::MAX;
    let mut before = clock();
    for _ in 0..STEPS {
        let mut after = clock();
        while after == before {
            after = clock();
        }
        smallest = smallest.min(after.abs_diff(before));
        before = after;
    }
    smallest
}
