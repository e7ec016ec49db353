//! `pumphouse check`: what a configuration means, without touching a broker.

use anyhow::Result;
use pumphouse_config::{Diagnostic, Effective};
use serde_json::{Value, json};

use crate::args::Check;
use crate::exit::{Exit, say};
use crate::host;

pub(crate) fn check(arguments: &Check) -> Result<Exit> {
    let build = host::build();
    let (found, effective) = match pumphouse_config::load(&arguments.config, &build) {
        Ok(loaded) => (loaded.warnings, Some(loaded.config.effective(&build))),
        Err(found) => (found, None),
    };
    let exit = if effective.is_some() { Exit::Done } else { Exit::Configuration };
    if arguments.json {
        let findings: Vec<Value> = found.iter().map(diagnostic).collect();
        let subscriptions: Vec<Value> = effective.iter().flatten().map(subscription).collect();
        say(json!({ "findings": findings, "subscriptions": subscriptions }));
        return Ok(exit);
    }
    if !found.is_empty() {
        say(found.render(host::is_terminal()));
    }
    for one in effective.iter().flatten() {
        say(one);
    }
    say(format!("{} errors, {} warnings", found.errors(), found.warnings()));
    Ok(exit)
}

fn diagnostic(one: &Diagnostic) -> Value {
    Value::Object(
        one.fields().into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect(),
    )
}

fn subscription(one: &Effective) -> Value {
    let mut fields: serde_json::Map<String, Value> =
        one.rows().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    fields.insert("subscription".to_owned(), one.subscription.clone().into());
    let lease = u64::try_from(one.lease.length().as_millis()).unwrap_or(u64::MAX);
    fields.insert("lease_ms".to_owned(), lease.into());
    Value::Object(fields)
}
