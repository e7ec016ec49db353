//! `pumphouse status`: how a running host is.

use anyhow::Result;
use serde_json::Value;

use crate::args::Status;
use crate::commands::client::Client;
use crate::exit::{Exit, say};

pub(crate) fn status(arguments: &Status) -> Result<Exit> {
    let client = match Client::found(arguments.admin, arguments.config.as_deref())? {
        Ok(client) => client,
        Err(exit) => return Ok(exit),
    };
    let answer = client.get("/status")?;
    if arguments.json {
        say(&answer);
        return Ok(Exit::Done);
    }
    if let Some(problem) = answer.get("configuration_problem").and_then(Value::as_str) {
        say(format!("the configuration on disk is not in force: {problem}"));
    }
    let list = |name: &str| answer.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    for subscription in list("subscriptions") {
        say(format!("subscription {}", line(&subscription)));
    }
    for handler in list("handlers") {
        say(format!("handler {}", line(&handler)));
    }
    Ok(Exit::Done)
}

/// The name, then every other field that says something.
fn line(object: &Value) -> String {
    let name = object.get("name").and_then(Value::as_str).unwrap_or_default();
    let fields = object.as_object().into_iter().flatten();
    let rest = fields.filter(|(key, value)| *key != "name" && !value.is_null());
    let rest: Vec<String> = rest.map(|(key, value)| format!("{key} {value}")).collect();
    format!("{name}: {}", rest.join(", "))
}
