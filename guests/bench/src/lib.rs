//! The plainest handler of the SDK: it acknowledges whatever it is given.

use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(_message: Message) -> Outcome {
    Outcome::ack()
}
