//! Takes note of what the real parts do, and changes nothing of it: the handler's calls, and the pump's events.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pumphouse_contract::ports::{BoxFuture, Event, Handler, Invocation, Observer, Version};
use pumphouse_contract::{Ended, Message};

/// One call of the handler.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// What the message's sender called it.
    pub(crate) tag: String,
    /// What the handler was told.
    pub(crate) count: u32,
    pub(crate) message: Arc<Message>,
    pub(crate) began: Instant,
    /// Where the call ended: when and how.
    pub(crate) ended: Option<(Instant, String)>,
}

/// The calls of one or more hosts, in the order of their beginning.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<Vec<Call>>);

impl Calls {
    fn calls(&self) -> std::sync::MutexGuard<'_, Vec<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn all(&self) -> Vec<Call> {
        self.calls().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.calls().len()
    }

    pub(crate) fn of(&self, tag: &str) -> Vec<Call> {
        self.calls().iter().filter(|call| call.tag == tag).cloned().collect()
    }

    /// The counts that a message presented, in order.
    pub(crate) fn counts(&self, tag: &str) -> Vec<u32> {
        self.calls().iter().filter(|call| call.tag == tag).map(|call| call.count).collect()
    }

    fn begin(&self, invocation: &Invocation) -> usize {
        let mut calls = self.calls();
        calls.push(Call {
            tag: tag(&invocation.message.body),
            count: invocation.count.0,
            message: invocation.message.clone(),
            began: Instant::now(),
            ended: None,
        });
        calls.len() - 1
    }

    fn end(&self, at: usize, ended: &Ended) {
        if let Some(call) = self.calls().get_mut(at) {
            call.ended = Some((Instant::now(), format!("{:?}", ended.result)));
        }
    }
}

/// The name that a steered message carries beside its command.
pub(crate) fn tag(body: &[u8]) -> String {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    body.get("tag").and_then(|tag| tag.as_str()).unwrap_or_default().to_owned()
}

/// A handler whose calls are noted. What runs is what it holds.
pub(crate) struct Recorded {
    pub(crate) inner: Arc<dyn Handler>,
    pub(crate) calls: Arc<Calls>,
}

impl Handler for Recorded {
    fn begin(&self) -> Arc<dyn Version> {
        Arc::new(RecordedVersion { inner: self.inner.begin(), calls: self.calls.clone() })
    }

    fn slots(&self) -> Option<usize> {
        self.inner.slots()
    }
}

struct RecordedVersion {
    inner: Arc<dyn Version>,
    calls: Arc<Calls>,
}

impl Version for RecordedVersion {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn digest(&self) -> &str {
        self.inner.digest()
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Ended> {
        let at = self.calls.begin(&invocation);
        Box::pin(async move {
            let ended = self.inner.call(invocation).await;
            self.calls.end(at, &ended);
            ended
        })
    }
}

/// The pump's events as text.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<Vec<String>>);

impl Notes {
    pub(crate) fn count(&self, begins: &str) -> usize {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.iter().filter(|note| note.starts_with(begins)).count()
    }
}

impl Observer for Notes {
    fn record(&self, event: Event<'_>) {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(format!("{event:?}"));
    }
}
