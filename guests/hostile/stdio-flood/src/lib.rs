//! Writes a hundred and sixty megabytes to its standard output and error streams, which need no grant.

use std::io::Write;

use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    let chunk = [b'x'; 4096];
    for _ in 0..20_000 {
        drop(std::io::stdout().write_all(&chunk));
        drop(std::io::stderr().write_all(&chunk));
    }
    Outcome::ack()
}
