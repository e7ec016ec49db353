//! Calls itself, with a frame in linear memory, until that stack is used up.
//! `wat/handlers/recursion.wat` overflows the other stack, the engine's.

use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    Outcome::unacceptable(dive(0))
}

#[inline(never)]
#[expect(unconditional_recursion)]
fn dive(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    dive(depth + 1).wrapping_add(frame.iter().sum())
}
