use std::sync::Arc;
use std::time::Duration;

use crate::faults::{Applied, Rules, Selection};

/// A change of an answer's message, given the request's.
pub(super) type Edit = dyn Fn(&[u8], Vec<u8>) -> Vec<u8> + Send + Sync;

/// What is done with a call.
#[derive(Clone)]
pub(super) enum Action {
    Status { code: u32, message: String },
    DropBefore,
    DropAfter,
    Delay(Duration),
    Hang,
    Rewrite(Arc<Edit>),
}

/// A rule in the making: which calls, then what is done with them. Without a limit it holds for
/// all of its method until [`heal`](super::GrpcProxy::heal).
#[must_use = "a rule begins to hold when it says what is done"]
pub struct On<'a> {
    rules: &'a Rules<Action>,
    selection: Selection,
}

impl<'a> On<'a> {
    pub(super) fn new(rules: &'a Rules<Action>, method: &str) -> Self {
        Self { rules, selection: Selection::of(method) }
    }

    /// Leaves this many alone first.
    pub fn skip(mut self, count: u64) -> Self {
        self.selection = self.selection.skip(count);
        self
    }

    /// Holds for this many and no more.
    pub fn times(mut self, count: u64) -> Self {
        self.selection = self.selection.times(count);
        self
    }

    /// Holds for one alone, the next being number 1.
    pub fn nth(self, number: u64) -> Self {
        self.skip(number.saturating_sub(1)).times(1)
    }

    /// Holds for those alone whose first message, as protobuf, satisfies this; others are not
    /// counted for [`skip`](Self::skip) and [`times`](Self::times). A call without a message
    /// shows an empty one, a compressed one is shown as it is.
    pub fn when(mut self, condition: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        self.selection = self.selection.when(condition);
        self
    }

    /// Answers with this gRPC status in the server's stead: the server never hears of it.
    pub fn status(self, code: u32, message: &str) -> Applied {
        self.act(Action::Status { code, message: message.to_owned() })
    }

    /// Resets the call (`RST_STREAM`, `INTERNAL_ERROR`) instead of forwarding: the server never
    /// hears of it.
    pub fn drop_before(self) -> Applied {
        self.act(Action::DropBefore)
    }

    /// Forwards, waits for the whole answer (of a stream: for its head), then resets the call
    /// instead of answering: done, and never confirmed.
    pub fn drop_after(self) -> Applied {
        self.act(Action::DropAfter)
    }

    /// Waits before forwarding.
    pub fn delay(self, duration: Duration) -> Applied {
        self.act(Action::Delay(duration))
    }

    /// Never answers and does not forward; the call stays open until the client gives it up, its
    /// connection is cut, or, of a stream, [`reset_streams`](super::GrpcProxy::reset_streams).
    pub fn hang(self) -> Applied {
        self.act(Action::Hang)
    }

    /// Forwards and lets this change every message of the answer, given the request's first
    /// message, both as protobuf. A compressed message passes as it is.
    pub fn rewrite(
        self,
        edit: impl Fn(&[u8], Vec<u8>) -> Vec<u8> + Send + Sync + 'static,
    ) -> Applied {
        self.act(Action::Rewrite(Arc::new(edit)))
    }

    fn act(self, action: Action) -> Applied {
        self.rules.add(self.selection, action)
    }
}
