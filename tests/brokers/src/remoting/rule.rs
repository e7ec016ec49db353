use std::sync::Arc;
use std::time::Duration;

use super::call::Answer;
use super::request::{Request, operation};
use crate::faults::{Applied, Rules, Selection};

/// A change of an answer, given the request.
pub(super) type Edit = dyn Fn(&Request, &mut Answer) + Send + Sync;

/// What is done with a request.
#[derive(Clone)]
pub(super) enum Action {
    DropBefore,
    DropAfter,
    CloseBefore,
    CloseAfter,
    Delay(Duration),
    DelayAnswer(Duration),
    Hang,
    Answer { code: i32, remark: String },
    Twice,
    Rewrite(Arc<Edit>),
}

/// A rule in the making: which requests, then what is done with them. Without a limit it holds
/// for all of its code until [`heal`](super::RemotingProxy::heal).
#[must_use = "a rule begins to hold when it says what is done"]
pub struct On<'a> {
    rules: &'a Rules<Action, Request>,
    selection: Selection<Request>,
}

impl<'a> On<'a> {
    pub(super) fn new(rules: &'a Rules<Action, Request>, code: i32) -> Self {
        Self { rules, selection: Selection::of(&operation(code)) }
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

    /// Holds for those alone that satisfy this; others are not counted for [`skip`](Self::skip)
    /// and [`times`](Self::times).
    pub fn when(mut self, condition: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Self {
        self.selection = self.selection.when(condition);
        self
    }

    /// Loses the request: the server never hears of it and the client waits its time out. The
    /// connection stays.
    pub fn drop_before(self) -> Applied {
        self.act(Action::DropBefore)
    }

    /// Forwards and loses the answer: done, and never confirmed. The client waits its time out
    /// and the connection stays.
    pub fn drop_after(self) -> Applied {
        self.act(Action::DropAfter)
    }

    /// Closes the connection instead of forwarding, with all else that waits on it: the server
    /// never hears of the request.
    pub fn close_before(self) -> Applied {
        self.act(Action::CloseBefore)
    }

    /// Forwards, waits for the answer, then closes the connection instead of answering, with all
    /// else that waits on it: done, and never confirmed.
    pub fn close_after(self) -> Applied {
        self.act(Action::CloseAfter)
    }

    /// Waits before forwarding; requests after it on the same connection overtake it.
    pub fn delay(self, duration: Duration) -> Applied {
        self.act(Action::Delay(duration))
    }

    /// Forwards at once and waits with the answer; others on the same connection overtake it.
    pub fn delay_answer(self, duration: Duration) -> Applied {
        self.act(Action::DelayAnswer(duration))
    }

    /// Never answers and does not forward, like [`drop_before`](Self::drop_before), but the
    /// request stays in flight until its connection ends.
    pub fn hang(self) -> Applied {
        self.act(Action::Hang)
    }

    /// Answers with this code, such as [`SYSTEM_BUSY`](super::code::SYSTEM_BUSY), in the server's
    /// stead: the server never hears of the request.
    pub fn answer(self, code: i32, remark: &str) -> Applied {
        self.act(Action::Answer { code, remark: remark.to_owned() })
    }

    /// Forwards it twice, one right after the other, and passes on the answer to the first: what
    /// a network does that repeats.
    pub fn twice(self) -> Applied {
        self.act(Action::Twice)
    }

    /// Forwards and lets this change the answer.
    pub fn rewrite(self, edit: impl Fn(&Request, &mut Answer) + Send + Sync + 'static) -> Applied {
        self.act(Action::Rewrite(Arc::new(edit)))
    }

    fn act(self, action: Action) -> Applied {
        self.rules.add(self.selection, action)
    }
}
