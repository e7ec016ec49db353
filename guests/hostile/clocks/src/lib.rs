//! Asks for the time and for random numbers three hundred thousand times: cheap calls, each into the host.

#![cfg(target_family = "wasm")]

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hostile_wasi::get_random_bytes;
use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    let mut sum = 0_u64;
    for _ in 0..100_000 {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        sum ^= u64::from(wall.subsec_nanos()) ^ u64::from(Instant::now().elapsed().subsec_nanos());
        sum ^= u64::from_le_bytes(get_random_bytes(8).try_into().unwrap_or_default());
    }
    Outcome::unacceptable(sum)
}
