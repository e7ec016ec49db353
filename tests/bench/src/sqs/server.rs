//! A server on this machine, and queues with messages in them.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{Config, Credentials, Region};
use aws_sdk_sqs::types::{MessageAttributeValue, SendMessageBatchRequestEntry};
use aws_smithy_http_client::Builder;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use pumphouse_contract::Clock;
use pumphouse_sqs::{SqsSettings, StaticCredentials};
use pumphouse_test_brokers::Fauxqs;

use super::BATCH;
use crate::message;

const REGION: &str = "us-east-1";
const KEY: &str = "test";
const SENDERS: usize = 8;

pub(super) struct Server {
    fauxqs: Fauxqs,
    client: Client,
}

impl Server {
    pub(super) async fn start() -> Result<Self> {
        let fauxqs = Fauxqs::start().await?;
        let client = client(&fauxqs.endpoint());
        Ok(Self { fauxqs, client })
    }

    /// How the product reaches it.
    pub(super) fn settings(&self, clock: Arc<dyn Clock>) -> SqsSettings {
        SqsSettings {
            region: Some(REGION.to_owned()),
            endpoint: Some(self.fauxqs.endpoint()),
            credentials: Some(StaticCredentials {
                access_key_id: KEY.to_owned(),
                secret_access_key: KEY.to_owned(),
                session_token: None,
            }),
            ..SqsSettings::new(clock)
        }
    }

    /// How the plain consumer reaches it: a client of its own.
    pub(super) fn client(&self) -> Client {
        client(&self.fauxqs.endpoint())
    }

    /// The URL of a new queue with so many messages.
    pub(super) async fn filled(&self, name: &str, messages: usize) -> Result<String> {
        let created = self.client.create_queue().queue_name(name).send().await?;
        let url = created.queue_url.context("the server gave no URL")?;
        let batches = (0..messages).step_by(BATCH).map(|from| BATCH.min(messages - from));
        let sent = stream::iter(batches).map(|many| self.send(&url, many));
        sent.buffer_unordered(SENDERS).try_for_each(|()| async { Ok(()) }).await?;
        Ok(url)
    }

    async fn send(&self, url: &str, many: usize) -> Result<()> {
        let entries = (0..many).map(entry).collect::<Result<Vec<_>>>()?;
        let request = self.client.send_message_batch().queue_url(url);
        let sent = request.set_entries(Some(entries)).send().await?;
        ensure!(sent.failed.is_empty(), "the server took {} of {many}", sent.successful.len());
        Ok(())
    }
}

fn entry(number: usize) -> Result<SendMessageBatchRequestEntry> {
    let (name, value) = message::HEADER;
    let value = MessageAttributeValue::builder().data_type("String").string_value(value);
    let entry = SendMessageBatchRequestEntry::builder()
        .id(number.to_string())
        .message_body(message::text())
        .message_attributes(name, value.build()?);
    Ok(entry.build()?)
}

/// A client with the SDK's defaults, without TLS.
fn client(endpoint: &str) -> Client {
    let config = Config::builder()
        .behavior_version_latest()
        .region(Region::new(REGION))
        .credentials_provider(Credentials::new(KEY, KEY, None, None, "bench"))
        .endpoint_url(endpoint)
        .http_client(Builder::new().build_http());
    Client::from_conf(config.build())
}
