//! `pumphouse invoke`: one message through the sandbox, without a broker.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use pumphouse_contract::ports::{Handler, Invocation};
use pumphouse_contract::{Count, Ended, Message, Outcome, Timestamp};
use pumphouse_sandbox::{Grants, HandlerSpec, Limits, Sandbox, SandboxSettings};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::Invoke;
use crate::commands::{pair, read};
use crate::exit::{Exit, say};
use crate::host;

/// A message as a file says it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    #[serde(default = "example_id")]
    id: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    delivery_count: u32,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    content_type: Option<String>,
    ordering_key: Option<String>,
    published_at: Option<u64>,
    #[serde(default)]
    body: String,
    body_base64: Option<String>,
}

fn example_id() -> String {
    "invoke-1".to_owned()
}

pub(crate) fn invoke(arguments: &Invoke) -> Result<Exit> {
    let invocation = invocation(arguments)?;
    host::log_plainly()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (ended, digest) = runtime.block_on(call(arguments, invocation))?;
    let answer = describe(&ended, &digest);
    if arguments.json {
        say(&answer);
    } else {
        say(serde_json::to_string_pretty(&answer)?);
    }
    Ok(if ended.result.is_ok() { Exit::Done } else { Exit::Failed })
}

fn invocation(arguments: &Invoke) -> Result<Invocation> {
    let path = arguments.message.display();
    let described: Described = serde_json::from_slice(&read(&arguments.message)?)
        .with_context(|| format!("{path} describes no message"))?;
    let body = match &described.body_base64 {
        Some(text) => STANDARD.decode(text).with_context(|| format!("body_base64 of {path}"))?,
        None => described.body.into_bytes(),
    };
    Ok(Invocation {
        message: Arc::new(Message {
            id: described.id,
            headers: described.headers.into_iter().collect(),
            content_type: described.content_type,
            ordering_key: described.ordering_key,
            published_at: described.published_at.map(Timestamp),
            body: Bytes::from(body),
        }),
        source: described.source.into(),
        count: Count(described.delivery_count),
    })
}

async fn call(arguments: &Invoke, invocation: Invocation) -> Result<(Ended, String)> {
    let settings: BTreeMap<String, String> =
        arguments.settings.iter().map(|text| pair(text)).collect::<Result<_>>()?;
    let memory = arguments.memory.saturating_mul(1 << 20);
    let spec = HandlerSpec {
        name: "invoke/handler".to_owned(),
        component: arguments.component.clone(),
        limits: Limits {
            memory,
            deadline: Duration::from_millis(arguments.deadline),
            ..Limits::default()
        },
        grants: Grants {
            logging: arguments.logging,
            config: (!settings.is_empty()).then_some(settings),
            ..Grants::default()
        },
        watch: false,
    };
    let sandbox = Sandbox::new(SandboxSettings {
        pool_slots: 2,
        max_memory: memory,
        ..SandboxSettings::default()
    })?;
    let version = sandbox.load(spec).await?.begin();
    Ok((version.call(invocation).await, version.digest().to_owned()))
}

fn describe(ended: &Ended, digest: &str) -> Value {
    let mut answer = match &ended.result {
        Ok(Outcome::Ack) => json!({ "outcome": "ack" }),
        Ok(Outcome::Defer(after)) => {
            json!({ "outcome": "defer", "after_ms": after.map(|after| after.as_millis() as u64) })
        }
        Ok(Outcome::Reject(rejection)) => json!({
            "outcome": "reject",
            "reason": rejection.reason.label(),
            "description": rejection.description,
        }),
        Err(fault) => json!({
            "fault": fault.kind.label(),
            "detail": fault.detail,
            "backtrace": fault.backtrace,
            "last_logs": fault.last_logs,
        }),
    };
    if let Some(object) = answer.as_object_mut() {
        object.insert("version".to_owned(), digest.into());
        object.insert("cpu_us".to_owned(), (ended.usage.cpu.as_micros() as u64).into());
        object.insert("memory_peak".to_owned(), ended.usage.memory_peak.into());
    }
    answer
}
