//! What the broker takes at most, and who holds how much of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The longest delay of a release.
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The longest lease.
pub(crate) const LONGEST_LEASE: Duration = Duration::from_secs(12 * 60 * 60);

/// The longest wait of one receive.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// The most messages of one receive and the most entries of one settle.
pub(crate) const BATCH: usize = 128;

/// How long a deduplication id is remembered.
pub(crate) const DEDUPLICATION: Duration = Duration::from_secs(5 * 60);

/// The most deduplication ids that a queue in memory remembers; the oldest is forgotten first.
pub(crate) const MOST_REMEMBERED: usize = 100_000;

/// The longest name of a queue, in bytes.
pub(crate) const LONGEST_NAME: usize = 255;

/// What the broker takes at most. One for all its queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest message in bytes: body, headers, content type and key together. A rejected copy's metadata comes
    /// on top, with as many bytes of description at most.
    pub message_bytes: usize,
    /// The most messages. Each takes some 300 bytes of memory beside its body, on both brokers.
    pub messages: usize,
    /// The most bytes of messages in memory. A broker in memory refuses what goes beyond; the durable one keeps it
    /// on the disk alone and reads it when it is received.
    pub memory_bytes: usize,
}

impl Limits {
    /// For a broker in memory: messages of 4 MiB, a million of them, 512 MiB in all.
    pub const MEMORY: Self =
        Self { message_bytes: 4 << 20, messages: 1_000_000, memory_bytes: 512 << 20 };

    /// For a durable broker: messages of 4 MiB, five million of them, 64 MiB of them in memory too.
    pub const DURABLE: Self =
        Self { message_bytes: 4 << 20, messages: 5_000_000, memory_bytes: 64 << 20 };
}

/// What is held of the limits, by all queues together.
#[derive(Debug)]
pub(crate) struct Quota {
    limits: Limits,
    messages: AtomicUsize,
    bytes: AtomicUsize,
}

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exceeded {
    Messages(usize),
    Bytes(usize),
}

impl std::fmt::Display for Exceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Messages(most) => write!(f, "the broker is full: it holds {most} messages"),
            Self::Bytes(most) => write!(f, "the broker is full: it holds {most} bytes in memory"),
        }
    }
}

impl Quota {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, messages: AtomicUsize::new(0), bytes: AtomicUsize::new(0) })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Room for one message, without its bytes.
    pub(crate) fn slot(self: &Arc<Self>) -> Result<Charge, Exceeded> {
        let most = self.limits.messages;
        let before = self.messages.fetch_add(1, Ordering::Relaxed);
        let charge = Charge { quota: Arc::clone(self), bytes: 0 };
        if before < most { Ok(charge) } else { Err(Exceeded::Messages(most)) }
    }

    /// Room for a message that is there already, whatever the limit says.
    pub(crate) fn forced_slot(self: &Arc<Self>) -> Charge {
        self.messages.fetch_add(1, Ordering::Relaxed);
        Charge { quota: Arc::clone(self), bytes: 0 }
    }
}

/// What one message holds of the quota, until it is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    quota: Arc<Quota>,
    bytes: usize,
}

impl Charge {
    /// Room for the message's bytes too.
    pub(crate) fn hold_bytes(&mut self, bytes: usize) -> Result<(), Exceeded> {
        let most = self.quota.limits.memory_bytes;
        let before = self.quota.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > most {
            self.quota.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return Err(Exceeded::Bytes(most));
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.quota.messages.fetch_sub(1, Ordering::Relaxed);
        self.quota.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_can_be_held_again() {
        let quota = Quota::new(Limits { message_bytes: 10, messages: 2, memory_bytes: 10 });
        let mut one = quota.slot().expect("room");
        let two = quota.slot().expect("room");
        assert_eq!(quota.slot().err(), Some(Exceeded::Messages(2)));
        assert_eq!(one.hold_bytes(11), Err(Exceeded::Bytes(10)));
        assert_eq!(one.hold_bytes(10), Ok(()));
        drop((one, two));
        let mut again = quota.slot().expect("room");
        assert_eq!(again.hold_bytes(10), Ok(()));
    }
}
