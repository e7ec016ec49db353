//! Publishing to a queue.

use std::sync::Arc;

use pumphouse_contract::copy::shorten;
use pumphouse_contract::ports::{BoxFuture, Depth, PublishError, Sink};
use pumphouse_contract::{Headers, Message, Outgoing, Timestamp};
use tokio::sync::oneshot;

use crate::broker::{Backing, Broker};
use crate::error::StoreError;
use crate::ledger::Entry;
use crate::ops::{Op, Placed, Publish};
use crate::queue::Queue;
use crate::writer::Writer;

/// A queue as a publisher sees it.
///
/// A deduplication id is remembered for five minutes by its queue: a message that comes with the same id meanwhile
/// is not added, and its publisher gets the id of the first. So a rejected copy that is sent twice is there once.
pub(crate) struct QueueSink {
    broker: Broker,
    name: String,
}

/// A message that is ready to be added.
struct Draft {
    message: Arc<Message>,
    published_at: Timestamp,
    deduplication_id: Option<String>,
    size: usize,
}

impl QueueSink {
    pub(crate) fn new(broker: Broker, name: &str) -> Self {
        Self { broker, name: name.to_owned() }
    }

    fn queue(&self) -> Result<Arc<Queue>, PublishError> {
        let missing = || PublishError::Missing(self.name.clone(), "no queue has that name".into());
        self.broker.0.queues.get(&self.name).ok_or_else(missing)
    }

    fn refused(&self, text: impl ToString) -> PublishError {
        PublishError::Refused(self.name.clone(), text.to_string())
    }

    fn failed(&self, error: &StoreError) -> PublishError {
        match error {
            StoreError::Full(_) => self.refused(error),
            StoreError::Failed(..) | StoreError::Closed => {
                PublishError::Unavailable(self.name.clone(), error.to_string())
            }
        }
    }

    async fn add(&self, outgoing: Outgoing) -> Result<String, PublishError> {
        self.broker.0.usable().map_err(|error| self.failed(&error))?;
        let queue = self.queue()?;
        let draft = self.draft(outgoing)?;
        match &self.broker.0.backing {
            Backing::Memory => self.add_in_memory(&queue, draft),
            Backing::Durable(writer) => self.add_durably(writer, queue, draft).await,
        }
    }

    fn draft(&self, outgoing: Outgoing) -> Result<Draft, PublishError> {
        let published_at = self.broker.0.clock.wall();
        let mut message = Message {
            id: self.broker.0.message_id(published_at),
            headers: outgoing.headers,
            content_type: outgoing.content_type,
            ordering_key: outgoing.ordering_key,
            published_at: Some(published_at),
            body: outgoing.body,
        };
        let sent = size(&message);
        let most = self.broker.0.quota.limits().message_bytes;
        if sent > most {
            return Err(self.refused(format!("it has {sent} bytes, {most} are the most")));
        }
        if let Some(mut stamp) = outgoing.stamp {
            // On top of the limit, so that what could be published can be rejected (C-11).
            stamp.message = shorten(&stamp.message, most);
            stamp.pairs().into_iter().for_each(|(name, value)| message.headers.set(name, value));
        }
        let size = size(&message);
        let deduplication_id = outgoing.deduplication_id;
        Ok(Draft { message: Arc::new(message), published_at, deduplication_id, size })
    }

    fn add_in_memory(&self, queue: &Queue, draft: Draft) -> Result<String, PublishError> {
        let Draft { message, published_at, deduplication_id, size } = draft;
        let now = self.broker.0.clock.mono();
        queue.change(|ledger| {
            if let Some(id) = &deduplication_id
                && let Some(first) = ledger.recent.find(id, now)
            {
                return Ok(first);
            }
            let mut charge = self.broker.0.quota.slot().map_err(|full| self.refused(full))?;
            charge.hold_bytes(size).map_err(|full| self.refused(full))?;
            if let Some(id) = &deduplication_id {
                ledger.recent.note(id, &message.id, now);
            }
            let id = message.id.clone();
            let entry = Entry::new(message, published_at, charge);
            ledger.push(self.broker.0.next_sequence(), entry);
            Ok(id)
        })
    }

    async fn add_durably(
        &self,
        writer: &Writer,
        queue: Arc<Queue>,
        draft: Draft,
    ) -> Result<String, PublishError> {
        let charge = self.broker.0.quota.slot().map_err(|full| self.refused(full))?;
        let failed = |error: StoreError| self.failed(&error);
        let room = writer.room(draft.size).await.map_err(failed)?;
        let (reply, answer) = oneshot::channel();
        let permit = writer.reserve().await.map_err(failed)?;
        permit.send(Op::Publish(Box::new(Publish {
            queue,
            message: draft.message,
            published_at: draft.published_at,
            deduplication_id: draft.deduplication_id,
            size: draft.size,
            charge,
            placed: Placed::NotYet,
            room,
            reply,
        })));
        writer.answer(answer).await.map_err(failed)
    }
}

/// The bytes of a message, as the limits count them.
fn size(message: &Message) -> usize {
    let headers =
        |headers: &Headers| -> usize { headers.iter().map(|(n, v)| n.len() + v.len()).sum() };
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    message.body.len()
        + headers(&message.headers)
        + text(&message.content_type)
        + text(&message.ordering_key)
}

impl Sink for QueueSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn publish(&self, message: Outgoing) -> BoxFuture<'_, Result<String, PublishError>> {
        Box::pin(self.add(message))
    }

    fn depth(&self) -> BoxFuture<'_, Result<Depth, PublishError>> {
        Box::pin(async { self.queue().map(|queue| self.broker.0.depth(&queue)) })
    }
}
