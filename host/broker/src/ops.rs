//! What the durable broker asks of its writer. Each operation is written, and then either done or refused.
//!
//! An operation carries its change of the ledger with it and makes it on the writer's thread, after the commit and
//! in the order of the commits. So a caller that is dropped changes nothing about what happens.

use std::sync::Arc;

use pumphouse_contract::{Message, Mono, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::error::StoreError;
use crate::ledger::{Entry, Grant, Sequence};
use crate::limits::Charge;
use crate::peek::Peek;
use crate::queue::{Queue, Queues};
use crate::settling::Held;
use crate::store::{Span, Writing};

/// Tells the caller, if there still is one.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// One operation.
pub(crate) enum Op {
    Create(Create),
    Publish(Box<Publish>),
    Lease(Lease),
    Settle(Settle),
    Peek(Peek),
    /// Take no more operations, finish those that are there, then answer.
    Close(oneshot::Sender<()>),
}

impl Op {
    /// Whether it needs new room on the disk that is not given back.
    pub(crate) fn adds(&self) -> bool {
        match self {
            Self::Create(_) | Self::Publish(_) => true,
            Self::Lease(_) | Self::Settle(_) | Self::Peek(_) | Self::Close(_) => false,
        }
    }

    /// Writes it. May be called again after the transaction was rolled back.
    pub(crate) fn write(&mut self, writing: &mut Writing<'_>) -> rusqlite::Result<()> {
        match self {
            Self::Create(create) => create.write(writing),
            Self::Publish(publish) => publish.write(writing),
            Self::Lease(lease) => lease.write(writing),
            Self::Settle(settle) => settle.write(writing),
            Self::Peek(peek) => peek.write(writing),
            Self::Close(_) => Ok(()),
        }
    }

    /// It is on the disk.
    pub(crate) fn done(self) {
        match self {
            Self::Create(create) => create.done(),
            Self::Publish(publish) => publish.done(),
            Self::Lease(lease) => lease.done(),
            Self::Settle(settle) => settle.done(),
            Self::Peek(peek) => drop(peek.reply.send(Ok(peek.glimpses))),
            Self::Close(reply) => drop(reply),
        }
    }

    /// It is not on the disk, and will not be.
    pub(crate) fn refused(self, error: StoreError) {
        match self {
            Self::Create(create) => drop(create.reply.send(Err(error))),
            Self::Publish(publish) => drop(publish.reply.send(Err(error))),
            Self::Lease(lease) => lease.refused(error),
            Self::Settle(settle) => settle.refused(error),
            Self::Peek(peek) => drop(peek.reply.send(Err(error))),
            Self::Close(reply) => drop(reply),
        }
    }
}

/// Makes a queue.
pub(crate) struct Create {
    pub(crate) name: String,
    pub(crate) queues: Arc<Queues>,
    pub(crate) row: i64,
    pub(crate) reply: Reply<()>,
}

impl Create {
    fn write(&mut self, writing: &mut Writing<'_>) -> rusqlite::Result<()> {
        self.row = writing.queue(&self.name)?;
        Ok(())
    }

    fn done(self) {
        self.queues.add(&self.name, Queue::new(self.row));
        drop(self.reply.send(Ok(())));
    }
}

/// What writing a message came to.
pub(crate) enum Placed {
    NotYet,
    At(Sequence),
    /// The message of this id was published under the same deduplication id before.
    Duplicate(String),
}

/// Adds a message.
pub(crate) struct Publish {
    pub(crate) queue: Arc<Queue>,
    pub(crate) message: Arc<Message>,
    pub(crate) published_at: Timestamp,
    pub(crate) deduplication_id: Option<String>,
    pub(crate) size: usize,
    pub(crate) charge: Charge,
    pub(crate) placed: Placed,
    /// Its share of what may wait for the disk.
    pub(crate) room: OwnedSemaphorePermit,
    pub(crate) reply: Reply<String>,
}

impl Publish {
    fn write(&mut self, writing: &mut Writing<'_>) -> rusqlite::Result<()> {
        self.placed = match self.first_of_its_id(writing)? {
            Some(first) => Placed::Duplicate(first),
            None => Placed::At(writing.insert(self.queue.row, &self.message)?),
        };
        Ok(())
    }

    fn first_of_its_id(&self, writing: &Writing<'_>) -> rusqlite::Result<Option<String>> {
        let Some(id) = &self.deduplication_id else { return Ok(None) };
        writing.recall(self.queue.row, id, &self.message.id, self.published_at)
    }

    fn done(mut self) {
        let id = match self.placed {
            Placed::Duplicate(first) => first,
            Placed::NotYet => return,
            Placed::At(sequence) => {
                let id = self.message.id.clone();
                // Where memory has no room for it, the disk has it.
                let held = self.charge.hold_bytes(self.size).is_ok();
                let mut entry = Entry::new(self.message, self.published_at, self.charge);
                entry.message = entry.message.filter(|_| held);
                self.queue.change(|ledger| ledger.push(sequence, entry));
                id
            }
        };
        drop(self.room);
        drop(self.reply.send(Ok(id)));
    }
}

/// Counts deliveries.
pub(crate) struct Lease {
    pub(crate) queue: Arc<Queue>,
    pub(crate) grants: Vec<Grant>,
    pub(crate) until: Mono,
    pub(crate) span: Span,
    pub(crate) reply: Reply<Vec<Grant>>,
}

impl Lease {
    fn write(&mut self, writing: &mut Writing<'_>) -> rusqlite::Result<()> {
        for grant in &mut self.grants {
            writing.lease(grant.sequence, grant.count, grant.first_received_at, self.span)?;
            if grant.message.is_none() {
                let (message, undecodable) = writing.fetch(grant.sequence)?;
                (grant.message, grant.undecodable) = (Some(message), undecodable);
            }
        }
        Ok(())
    }

    fn done(self) {
        self.queue.change(|ledger| {
            self.grants.iter().for_each(|grant| ledger.grant(grant.sequence, self.until));
        });
        drop(self.reply.send(Ok(self.grants)));
    }

    fn refused(self, error: StoreError) {
        self.queue.change(|ledger| {
            self.grants.iter().rev().for_each(|grant| ledger.ungrant(grant.sequence));
        });
        drop(self.reply.send(Err(error)));
    }
}

/// Settles deliveries.
pub(crate) struct Settle {
    pub(crate) queue: Arc<Queue>,
    pub(crate) held: Vec<Held>,
    pub(crate) now: Timestamp,
    pub(crate) reply: Reply<()>,
}

impl Settle {
    fn write(&mut self, writing: &mut Writing<'_>) -> rusqlite::Result<()> {
        for held in &self.held {
            held.write(writing, self.now)?;
        }
        Ok(())
    }

    fn done(self) {
        self.queue.change(|ledger| self.held.iter().for_each(|held| held.carry_out(ledger)));
        drop(self.reply.send(Ok(())));
    }

    fn refused(self, error: StoreError) {
        self.queue.change(|ledger| self.held.iter().for_each(|held| held.undo(ledger)));
        drop(self.reply.send(Err(error)));
    }
}
