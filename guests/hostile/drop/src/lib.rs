//! Has its answer ready, and panics while it drops what it holds: a panic in the middle of tidying up.

use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    let _held: Vec<_> = (0..8).map(Grenade).collect();
    Outcome::ack()
}

struct Grenade(u32);

impl Drop for Grenade {
    fn drop(&mut self) {
        panic!("grenade {} went off while it was dropped", self.0);
    }
}
