//! What a good consumer looks like that someone writes by hand: several loops, each of which receives ten, handles
//! them at once and deletes them in one request. It asks for what it needs to know about a message: its attributes
//! and how often it was delivered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName};
use futures_util::future::join_all;
use pumphouse_contract::Outcome;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{BATCH, POLLERS};
use crate::measure::{Sample, Stopwatch};

const PATIENCE: Duration = Duration::from_secs(120);
const WAIT_SECONDS: i32 = 1;
const LEASE_SECONDS: i32 = 60;

/// Handles and deletes so many messages; gives what each cost.
pub(super) async fn consume(client: &Client, url: &str, messages: usize) -> Result<Sample> {
    let consumer = Arc::new(Consumer {
        client: client.clone(),
        url: url.to_owned(),
        left: AtomicUsize::new(messages),
        finished: Notify::new(),
    });
    let watch = Stopwatch::start();
    let mut pollers = JoinSet::new();
    for _ in 0..POLLERS {
        let consumer = consumer.clone();
        pollers.spawn(async move { consumer.poll().await });
    }
    let ended = async {
        tokio::select! {
            () = consumer.finished.notified() => Ok(()),
            Some(ended) = pollers.join_next() => ended?,
        }
    };
    timeout(PATIENCE, ended).await.context("the plain consumer stands still")??;
    Ok(watch.stop(messages))
}

struct Consumer {
    client: Client,
    url: String,
    left: AtomicUsize,
    finished: Notify,
}

impl Consumer {
    /// Ends with an error alone.
    async fn poll(&self) -> Result<()> {
        loop {
            let messages = self.receive().await?;
            if messages.is_empty() {
                continue;
            }
            let handled = join_all(messages.iter().map(handle)).await;
            ensure!(handled.iter().all(|outcome| *outcome == Outcome::Ack), "not acknowledged");
            self.delete(&messages).await?;
            let before = self.left.fetch_sub(messages.len(), Ordering::AcqRel);
            if before == messages.len() {
                self.finished.notify_one();
            }
        }
    }

    async fn receive(&self) -> Result<Vec<Message>> {
        let receive = self
            .client
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(i32::try_from(BATCH)?)
            .wait_time_seconds(WAIT_SECONDS)
            .visibility_timeout(LEASE_SECONDS)
            .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount)
            .message_attribute_names("All");
        Ok(receive.send().await?.messages.unwrap_or_default())
    }

    async fn delete(&self, messages: &[Message]) -> Result<()> {
        let entries = messages.iter().enumerate().map(|(at, message)| {
            let entry = DeleteMessageBatchRequestEntry::builder().id(at.to_string());
            Ok(entry.set_receipt_handle(message.receipt_handle.clone()).build()?)
        });
        let entries = entries.collect::<Result<Vec<_>>>()?;
        let request = self.client.delete_message_batch().queue_url(&self.url);
        let deleted = request.set_entries(Some(entries)).send().await?;
        match deleted.failed.first() {
            None => Ok(()),
            Some(failed) => Err(anyhow!("{}: {}", failed.code, failed.message().unwrap_or(""))),
        }
    }
}

/// What the native handler does, with the body and the attributes as the SDK gives them.
async fn handle(message: &Message) -> Outcome {
    let copies = (
        message.message_id.clone(),
        message.message_attributes.clone(),
        message.body.as_ref().map(|body| body.as_bytes().to_vec()),
    );
    std::hint::black_box(copies);
    Outcome::Ack
}
