//! Puts line ends, terminal escapes and pieces of JSON into all that it may write, to make the operator's log say
//! what the host never said. Needs the logging grant.

use pumphouse_sdk::{Message, Outcome, log};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    for text in FORGERIES {
        log::line(log::Level::Info, text, text);
        eprintln!("{text}");
    }
    Outcome::unacceptable(FORGERIES.concat())
}

/// Each carries the word `FORGED`, so that a test can look for a line that begins with it.
const FORGERIES: [&str; 6] = [
    "fine\nFORGED ERROR all messages lost",
    "fine\r\nFORGED",
    "\u{1b}[2K\u{1b}[1GFORGED\u{1b}[0m",
    "fine\",\"level\":\"ERROR\",\"FORGED\":\"",
    "fine\u{2028}FORGED\u{85}FORGED",
    "fine\u{0}\u{8}\u{8}\u{8}\u{8}FORGED\u{202e}",
];
