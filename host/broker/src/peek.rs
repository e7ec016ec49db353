//! What an operator sees of a queue, and puts into it.

use std::sync::Arc;

use pumphouse_contract::copy::reserved_in;
use pumphouse_contract::ports::{BoxFuture, PublishError, Queues, Waiting};
use pumphouse_contract::{Message, Outgoing};
use rusqlite::OptionalExtension;
use tokio::sync::oneshot;

use crate::broker::{Backing, Broker};
use crate::error::StoreError;
use crate::ledger::Sequence;
use crate::ops::{Op, Reply};
use crate::store::Writing;

/// The most messages of one look; their bodies are in memory until they are shown.
const MOST: usize = 100;
/// The most bytes of bodies of one look; the first message is shown whatever its size.
const MOST_BYTES: usize = 8 << 20;

/// A message of the ledger, as it stood at that moment.
#[derive(Debug, Clone)]
pub(crate) struct Glimpse {
    pub(crate) sequence: Sequence,
    /// None until it is read from the disk; then none where it was removed meanwhile.
    pub(crate) message: Option<Arc<Message>>,
    pub(crate) deliveries: u32,
    pub(crate) state: &'static str,
}

/// Reads what is only on the disk. It stands in line with the writes, so that it needs no second connection.
pub(crate) struct Peek {
    pub(crate) glimpses: Vec<Glimpse>,
    pub(crate) reply: Reply<Vec<Glimpse>>,
}

impl Peek {
    pub(crate) fn write(&mut self, writing: &Writing<'_>) -> rusqlite::Result<()> {
        let mut bytes = 0;
        for glimpse in &mut self.glimpses {
            if glimpse.message.is_none() && bytes < MOST_BYTES {
                let fetched = writing.fetch(glimpse.sequence).optional()?;
                glimpse.message = fetched.map(|(message, _)| message);
            }
            bytes += glimpse.message.as_ref().map_or(0, |message| message.body.len());
        }
        Ok(())
    }
}

impl Broker {
    async fn glimpses(&self, queue: &str, max: usize) -> Result<Vec<Glimpse>, PublishError> {
        let missing = || PublishError::Missing(queue.to_owned(), "no queue has that name".into());
        let found = self.0.queues.get(queue).ok_or_else(missing)?;
        let glimpses = found.read(|ledger| ledger.peek(max.min(MOST)));
        let Backing::Durable(writer) = &self.0.backing else { return Ok(glimpses) };
        let failed =
            |error: StoreError| PublishError::Unavailable(queue.to_owned(), error.to_string());
        let (reply, answer) = oneshot::channel();
        writer.reserve().await.map_err(failed)?.send(Op::Peek(Peek { glimpses, reply }));
        writer.answer(answer).await.map_err(failed)
    }
}

/// The first messages, up to so many bytes of bodies.
fn within(most: usize, waiting: impl Iterator<Item = Waiting>) -> Vec<Waiting> {
    let mut bytes = 0;
    let fits = |one: &Waiting| {
        let before = bytes;
        bytes += one.message.body.len();
        before == 0 || bytes <= most
    };
    waiting.take_while(fits).collect()
}

impl Queues for Broker {
    fn publish<'a>(
        &'a self,
        queue: &'a str,
        message: Outgoing,
    ) -> BoxFuture<'a, Result<String, PublishError>> {
        Box::pin(async move {
            let refused = |text: String| PublishError::Refused(queue.to_owned(), text);
            let reserved = reserved_in(&message.headers).join(", ");
            if !reserved.is_empty() {
                return Err(refused(format!(
                    "headers of rejected copies are reserved: {reserved}"
                )));
            }
            self.sink(queue).map_err(|error| refused(error.to_string()))?.publish(message).await
        })
    }

    fn peek<'a>(
        &'a self,
        queue: &'a str,
        max: usize,
    ) -> BoxFuture<'a, Result<Vec<Waiting>, PublishError>> {
        Box::pin(async move {
            let glimpses = self.glimpses(queue, max).await?.into_iter();
            let waiting = glimpses.filter_map(|Glimpse { message, deliveries, state, .. }| {
                Some(Waiting { message: message?, deliveries, state })
            });
            Ok(within(MOST_BYTES, waiting))
        })
    }
}
