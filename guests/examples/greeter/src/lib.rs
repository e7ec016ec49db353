//! Greets whom the message names, with the greeting from its settings.

use pumphouse_sdk::{Failure, Message, Outcome, config, log};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Result<Outcome, Failure> {
    let greeting = config::get("greeting")?.unwrap_or_else(|| "Hello".into());
    log::info(format!("{greeting}, {}!", message.body_str()?));
    Ok(Outcome::ack())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumphouse_sdk::IntoOutcome;

    #[test]
    fn a_name_is_greeted() {
        config::set_for_test("greeting", "Good morning");
        assert_eq!(handle(Message::test("Ada")).into_outcome(), Outcome::ack());
    }

    #[test]
    fn what_is_no_text_is_unacceptable() {
        assert!(matches!(handle(Message::test([0xff])), Err(Failure::Reject { .. })));
    }
}
