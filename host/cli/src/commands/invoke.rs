//! `pumphouse invoke`: one message through the sandbox, without a broker.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use pumphouse_config::Secret;
use pumphouse_contract::ports::{Handler, Invocation};
use pumphouse_contract::{Count, Ended, Message, Outcome, Timestamp};
use pumphouse_sandbox::{
    Compiling, Grants, HandlerSpec, HttpGrant, HttpHost, HttpRule, HttpScheme, Limits, Sandbox,
    SandboxSettings, SecretText,
};
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
        subscription: "invoke".into(),
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
            secrets: secrets(&arguments.secrets)?,
            http: http(arguments)?,
            ..Grants::default()
        },
        watch: false,
        ..HandlerSpec::new("invoke/handler", arguments.component.clone())
    };
    let sandbox = Sandbox::new(SandboxSettings {
        pool_slots: 2,
        max_memory: memory,
        compiling: Compiling::Worker(host::compile_worker()),
        ..SandboxSettings::default()
    })?;
    let version = sandbox.load(spec).await?.begin();
    Ok((version.call(invocation).await, version.digest().to_owned()))
}

/// Each `NAME=env:VARIABLE` or `NAME=file:PATH`.
fn secrets(written: &[String]) -> Result<BTreeMap<String, SecretText>> {
    let references = written.iter().map(|text| {
        let (name, from) = pair(text)?;
        let secret = match from.split_once(':') {
            Some(("env", variable)) => Secret::Env(variable.to_owned()),
            Some(("file", path)) => Secret::File(path.into()),
            // What stands there may be the secret itself.
            _ => bail!("--secret {name}=… names no secret: write env:VARIABLE or file:PATH"),
        };
        Ok((name, secret))
    });
    host::grants::secrets(&references.collect::<Result<_>>()?)
}

/// The hosts that may be asked, all with the same methods.
fn http(arguments: &Invoke) -> Result<Option<HttpGrant>> {
    let rules = arguments.http.iter().map(|host| rule(host, arguments));
    let rules: Vec<HttpRule> = rules.collect::<Result<_>>()?;
    Ok((!rules.is_empty()).then_some(HttpGrant { rules, ..HttpGrant::default() }))
}

fn rule(text: &str, arguments: &Invoke) -> Result<HttpRule> {
    let (scheme, rest) = match text.split_once("://") {
        Some(("http", rest)) => (HttpScheme::Http, rest),
        Some(("https", rest)) => (HttpScheme::Https, rest),
        Some((other, _)) => bail!("--http {text}: {other} is neither http nor https"),
        None => (HttpScheme::Https, text),
    };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            let port = port.parse().with_context(|| format!("--http {text}: {port} is no port"))?;
            (host, port)
        }
        Some(_) | None => (rest, scheme.port()),
    };
    let host = HttpHost::parse(host).with_context(|| format!("--http {text}"))?;
    let methods = arguments.methods.iter().map(|method| method.to_ascii_uppercase()).collect();
    Ok(HttpRule { scheme, host, port, methods, private: arguments.private })
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
        object.insert("host_calls".to_owned(), ended.usage.host_calls.into());
        object.insert("bytes_in".to_owned(), ended.usage.bytes_in.into());
        object.insert("bytes_out".to_owned(), ended.usage.bytes_out.into());
    }
    answer
}
