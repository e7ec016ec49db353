//! `pumphouse publish`: messages for the source of a subscription.

use std::io::BufRead;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use pumphouse_config::{Config, Place};
use pumphouse_contract::copy::reserved_in;
use pumphouse_contract::{Headers, Outgoing};
use serde_json::{Value, json};

use crate::args::Publish;
use crate::commands::client::Client;
use crate::commands::{pair, read};
use crate::exit::{Exit, say};
use crate::host;

pub(crate) fn publish(arguments: &Publish) -> Result<Exit> {
    let Some(config) = host::load(&arguments.config) else { return Ok(Exit::Configuration) };
    let place = source(&config, &arguments.subscription)?;
    let template = template(arguments)?;
    let mut publisher = Publisher::new(&config, place)?;
    let mut published = 0u64;
    for body in bodies(arguments)? {
        let body = Bytes::from(body?);
        for _ in 0..arguments.count {
            let message = Outgoing { body: body.clone(), ..template.clone() };
            let id = publisher
                .publish(message)
                .with_context(|| format!("{published} published before this one"))?;
            published += 1;
            if arguments.json {
                say(json!({ "id": id }));
            }
        }
    }
    if !arguments.json {
        say(format!("published {published} to {place}"));
    }
    Ok(Exit::Done)
}

fn source<'a>(config: &'a Config, name: &str) -> Result<&'a Place> {
    let subscription = config.subscriptions.iter().find(|one| one.name == name);
    let names = || config.subscriptions.iter().map(|one| &*one.name).collect::<Vec<_>>().join(", ");
    let found = subscription
        .with_context(|| format!("no subscription {name:?}; the configuration has: {}", names()))?;
    Ok(&found.source)
}

fn template(arguments: &Publish) -> Result<Outgoing> {
    let headers: Vec<(String, String)> =
        arguments.headers.iter().map(|text| pair(text)).collect::<Result<_>>()?;
    let headers: Headers = headers.into_iter().collect();
    let reserved = reserved_in(&headers);
    if !reserved.is_empty() {
        bail!("headers of these names belong to rejected copies: {}", reserved.join(", "));
    }
    Ok(Outgoing {
        headers,
        content_type: arguments.content_type.clone(),
        ordering_key: arguments.key.clone(),
        ..Outgoing::default()
    })
}

/// The bodies, one after another, so that a long input needs no memory.
fn bodies(arguments: &Publish) -> Result<Box<dyn Iterator<Item = Result<Vec<u8>>>>> {
    if arguments.lines {
        let lines = std::io::stdin().lock().split(b'\n');
        return Ok(Box::new(lines.map(|line| line.context("standard input can't be read"))));
    }
    let body = match (&arguments.body, &arguments.file) {
        (Some(body), _) => body.clone().into_bytes(),
        (None, Some(file)) => read(file)?,
        (None, None) => bail!("nothing to publish: give --body, --file or --lines"),
    };
    Ok(Box::new(std::iter::once(Ok(body))))
}

/// The way to the source.
enum Publisher {
    /// Through the running host, which alone may open its store.
    Host { client: Client, queue: String },
    /// Straight to the broker.
    Broker {
        runtime: tokio::runtime::Runtime,
        sink: std::sync::Arc<dyn pumphouse_contract::ports::Sink>,
        transports: Box<host::Transports>,
    },
}

impl Publisher {
    fn new(config: &Config, place: &Place) -> Result<Self> {
        match place {
            Place::Embedded { queue } => {
                Ok(Self::Host { client: Client::of(config)?, queue: queue.clone() })
            }
            Place::Sqs(_) | Place::Pubsub(_) | Place::Rocketmq(_) => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                let (sink, transports) = runtime.block_on(host::sink_alone(config, place))?;
                Ok(Self::Broker { runtime, sink, transports: Box::new(transports) })
            }
        }
    }

    fn publish(&mut self, message: Outgoing) -> Result<String> {
        match self {
            Self::Host { client, queue } => {
                let answer =
                    client.post(&format!("/v1/queues/{queue}/messages"), &as_json(&message))?;
                Ok(answer.get("id").and_then(Value::as_str).unwrap_or_default().to_owned())
            }
            Self::Broker { runtime, sink, .. } => Ok(runtime.block_on(sink.publish(message))?),
        }
    }
}

impl Drop for Publisher {
    /// Also where a message failed: a client may have threads of its own.
    fn drop(&mut self) {
        if let Self::Broker { runtime, transports, .. } = self {
            runtime.block_on(transports.close());
        }
    }
}

fn as_json(message: &Outgoing) -> Value {
    let headers: Vec<Value> =
        message.headers.iter().map(|(name, value)| json!([name, value.as_str()])).collect();
    json!({
        "body_base64": STANDARD.encode(&message.body),
        "headers": headers,
        "content_type": message.content_type,
        "ordering_key": message.ordering_key,
    })
}
