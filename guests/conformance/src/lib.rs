//! Does what the message's body says, so that a test decides what a handler does and the real pump runs it.
//!
//! A body is a command, as JSON: `{"do": NAME, …}`, or the name alone where a command stands inside another.
//!
//! | `do` | what happens | more keys |
//! |---|---|---|
//! | `ack` | acknowledges | |
//! | `defer` | defers | `ms`: the delay; absent: the subscription's backoff |
//! | `reject` | rejects | `reason`: `unacceptable`, `delivery-error` or `none` (the default); `text` |
//! | `trap` | panics | `text` |
//! | `loop` | never ends | |
//! | `memory` | takes memory until it gets no more | |
//! | `sleep` | waits, then does `then` | `ms`; `then`: a command, `ack` by default |
//! | `log` | logs, then does `then` | `text`; `then` |
//! | `report` | logs all that it was given but the body, as JSON with the context `report`, then does `then` | `then` |
//! | `expect-count` | acknowledges if the delivery count is `n`, else rejects with the count as `text` | `n` |
//! | `sequence` | does the step with the number of the delivery count, the last one from then on | `steps` |
//!
//! A body that is no JSON object with a `do` is acknowledged: it is an ordinary message. A command that can't be
//! understood is rejected as `delivery-error`, since the mistake is the test's.
//!
//! Before anything else every call logs `id=… count=… source=… bytes=…` with the context `call`.

use std::hint::black_box;
use std::time::{Duration, UNIX_EPOCH};

use pumphouse_sdk::{Message, Outcome, Reason, log};
use serde_json::{Value, json};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    let Message { id, delivery_count, source, body, .. } = &message;
    let seen = format!("id={id} count={delivery_count} source={source} bytes={}", body.len());
    log::line(log::Level::Info, "call", &seen);
    match serde_json::from_slice::<Value>(body) {
        Ok(command) if command.get("do").is_some() => obey(&command, &message),
        _ => Outcome::ack(),
    }
}

fn obey(command: &Value, message: &Message) -> Outcome {
    let name = command.get("do").unwrap_or(command).as_str().unwrap_or_default();
    match name {
        "ack" => Outcome::ack(),
        "defer" => {
            Outcome::Defer(command.get("ms").and_then(Value::as_u64).map(Duration::from_millis))
        }
        "reject" => reject(command),
        "trap" => panic!("told to trap: {}", text(command)),
        "loop" => spin(),
        "memory" => hoard(),
        "sleep" => {
            std::thread::sleep(Duration::from_millis(number(command, "ms")));
            then(command, message)
        }
        "log" => {
            log::info(text(command));
            then(command, message)
        }
        "report" => {
            log::line(log::Level::Info, "report", &report(message));
            then(command, message)
        }
        "expect-count" => expect_count(number(command, "n"), message),
        "sequence" => sequence(command, message),
        _ => misunderstood(command),
    }
}

fn then(command: &Value, message: &Message) -> Outcome {
    command.get("then").map_or(Outcome::Ack, |next| obey(next, message))
}

fn reject(command: &Value) -> Outcome {
    let reason = match command.get("reason").and_then(Value::as_str) {
        Some("unacceptable") => Reason::Unacceptable,
        Some("delivery-error") => Reason::DeliveryError,
        Some("none") | None => Reason::None,
        Some(_) => return misunderstood(command),
    };
    Outcome::reject(reason, text(command))
}

fn expect_count(expected: u64, message: &Message) -> Outcome {
    let seen = message.delivery_count;
    if u64::from(seen) == expected {
        Outcome::ack()
    } else {
        Outcome::delivery_error(format!("expected count {expected}, saw count {seen}"))
    }
}

fn sequence(command: &Value, message: &Message) -> Outcome {
    let steps = command.get("steps").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let turn = usize::try_from(message.delivery_count).unwrap_or(usize::MAX);
    match steps.get(turn).or(steps.last()) {
        Some(step) => obey(step, message),
        None => misunderstood(command),
    }
}

fn misunderstood(command: &Value) -> Outcome {
    Outcome::delivery_error(format!("the conformance guest doesn't know the command {command}"))
}

fn report(message: &Message) -> String {
    let published = message.published_at.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    json!({
        "id": message.id,
        "source": message.source,
        "count": message.delivery_count,
        "headers": message.headers,
        "content-type": message.content_type,
        "ordering-key": message.ordering_key,
        "published-at": published.map(|time| time.as_secs() * 1000 + u64::from(time.subsec_millis())),
    })
    .to_string()
}

fn spin() -> ! {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

fn hoard() -> ! {
    let mut hoard = Vec::new();
    loop {
        hoard.push(black_box(vec![1_u8; 1 << 20]));
    }
}

fn text(command: &Value) -> &str {
    command.get("text").and_then(Value::as_str).unwrap_or_default()
}

fn number(command: &Value, name: &str) -> u64 {
    command.get(name).and_then(Value::as_u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nth(count: u32, body: &str) -> Outcome {
        handle(Message::test(body).with_delivery_count(count))
    }

    #[test]
    fn an_ordinary_message_is_acknowledged() {
        for body in ["", "hello", "{", "7", "{}", r#"{"other":1}"#] {
            assert_eq!(nth(0, body), Outcome::ack(), "{body}");
        }
    }

    #[test]
    fn the_outcomes_are_those_asked_for() {
        let text = r#"{"do":"reject","reason":"unacceptable","text":"no"}"#;
        assert_eq!(nth(0, r#"{"do":"ack"}"#), Outcome::ack());
        assert_eq!(nth(0, r#"{"do":"defer"}"#), Outcome::defer());
        assert_eq!(
            nth(0, r#"{"do":"defer","ms":1500}"#),
            Outcome::defer_for(Duration::from_millis(1500))
        );
        assert_eq!(nth(0, text), Outcome::unacceptable("no"));
        assert_eq!(nth(0, r#"{"do":"reject"}"#), Outcome::reject(Reason::None, ""));
    }

    #[test]
    fn a_sequence_follows_the_count_and_stays_at_its_end() {
        let body = r#"{"do":"sequence","steps":["defer",{"do":"defer","ms":1},"ack"]}"#;
        assert_eq!(nth(0, body), Outcome::defer());
        assert_eq!(nth(1, body), Outcome::defer_for(Duration::from_millis(1)));
        assert_eq!(nth(2, body), Outcome::ack());
        assert_eq!(nth(9, body), Outcome::ack());
    }

    #[test]
    fn an_unexpected_count_is_told() {
        assert_eq!(nth(2, r#"{"do":"expect-count","n":2}"#), Outcome::ack());
        assert_eq!(
            nth(3, r#"{"do":"expect-count","n":2}"#),
            Outcome::delivery_error("expected count 2, saw count 3")
        );
    }

    #[test]
    fn a_command_goes_on_with_the_next() {
        assert_eq!(nth(0, r#"{"do":"sleep","ms":1,"then":"defer"}"#), Outcome::defer());
        assert_eq!(nth(0, r#"{"do":"log","text":"x"}"#), Outcome::ack());
        assert_eq!(nth(0, r#"{"do":"report","then":{"do":"defer"}}"#), Outcome::defer());
    }

    #[test]
    fn a_mistaken_command_is_never_acknowledged() {
        for body in [
            r#"{"do":"akc"}"#,
            r#"{"do":7}"#,
            r#"{"do":"sequence"}"#,
            r#"{"do":"sequence","steps":[]}"#,
            r#"{"do":"reject","reason":"bad mood"}"#,
        ] {
            let outcome = nth(0, body);
            assert!(
                matches!(outcome, Outcome::Reject { reason: Reason::DeliveryError, .. }),
                "{body}: {outcome:?}"
            );
        }
    }

    #[test]
    #[should_panic(expected = "told to trap: now")]
    fn a_trap_says_what_it_was_told() {
        let _ = nth(0, r#"{"do":"trap","text":"now"}"#);
    }

    #[test]
    fn a_report_shows_what_came_with_the_body() {
        let message = Message::test("")
            .with_header("k", "v")
            .with_ordering_key("customer")
            .with_published_at(UNIX_EPOCH + Duration::from_millis(1_001));
        let report: Value = serde_json::from_str(&report(&message)).unwrap();
        assert_eq!(report["headers"], json!([["k", "v"]]));
        assert_eq!(report["ordering-key"], "customer");
        assert_eq!(report["published-at"], 1001);
        assert_eq!(report["content-type"], Value::Null);
    }
}
