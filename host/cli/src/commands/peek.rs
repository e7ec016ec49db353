//! `pumphouse peek`: what waits in an embedded queue.

use anyhow::{Result, bail};
use serde_json::Value;

use crate::args::Peek;
use crate::commands::client::Client;
use crate::exit::{Exit, say};
use crate::host;

pub(crate) fn peek(arguments: &Peek) -> Result<Exit> {
    let Some(config) = host::load(&arguments.config) else { return Ok(Exit::Configuration) };
    let odd = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if arguments.queue.is_empty() || arguments.queue.contains(odd) {
        bail!("{:?} is no queue name: letters, digits, `-`, `_` and `.`", arguments.queue);
    }
    let path = format!("/v1/queues/{}/messages?max={}", arguments.queue, arguments.max);
    let answer = Client::of(&config)?.get(&path)?;
    if arguments.json {
        say(&answer);
        return Ok(Exit::Done);
    }
    let messages = answer.get("messages").and_then(Value::as_array).cloned().unwrap_or_default();
    for message in &messages {
        show(message);
    }
    say(format!("{} shown", messages.len()));
    Ok(Exit::Done)
}

fn show(message: &Value) {
    let text = |name: &str| message.get(name).map(plain).unwrap_or_default();
    say(format!("{} ({}, delivered {} times)", text("id"), text("state"), text("deliveries")));
    for header in message.get("headers").and_then(Value::as_array).into_iter().flatten() {
        if let Some([name, value]) = header.as_array().map(Vec::as_slice) {
            say(format!("  {}: {}", plain(name), plain(value)));
        }
    }
    let body = message.get("body").filter(|body| !body.is_null());
    say(format!("  {}", body.map_or_else(|| format!("base64 {}", text("body_base64")), plain)));
}

/// Text without its quotes, and without what could play tricks on a terminal.
fn plain(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}
