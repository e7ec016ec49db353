//! The second of two versions of a handler. Each says in the log who handled the message.

use pumphouse_sdk::{Message, Outcome, log};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    log::info(format!("version=2 id={}", message.id));
    Outcome::ack()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_acknowledged() {
        assert_eq!(handle(Message::test("any")), Outcome::ack());
    }
}
