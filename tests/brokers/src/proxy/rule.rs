use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::edit::Edit;
use crate::faults::{Applied, Rules, Selection};

/// What is done with a request.
#[derive(Clone)]
pub(super) enum Action {
    Forward,
    Answer { status: u16, error_header: Option<String>, body: Bytes },
    DropBefore,
    DropAfter,
    Delay(Duration),
    Hang,
    HeadersOnly,
    Rewrite(Arc<Edit>),
    FailEntries { first: usize, code: String, sender_fault: bool },
}

/// A rule in the making: which requests, then what is done with them. Without a limit it holds
/// for all of its operation until [`heal`](super::Proxy::heal).
#[must_use = "a rule begins to hold when it says what is done"]
pub struct On<'a> {
    rules: &'a Rules<Action>,
    selection: Selection,
}

impl<'a> On<'a> {
    pub(super) fn new(rules: &'a Rules<Action>, operation: &str) -> Self {
        Self { rules, selection: Selection::of(operation) }
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

    /// Holds for those alone whose JSON body satisfies this; others are not counted for
    /// [`skip`](Self::skip) and [`times`](Self::times). A body that is not JSON is `Null`.
    pub fn when(mut self, condition: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        let of_json =
            move |body: &[u8]| condition(&serde_json::from_slice(body).unwrap_or_default());
        self.selection = self.selection.when(of_json);
        self
    }

    /// Answers in the server's stead. A body that starts with `<` is sent as XML, else as JSON.
    pub fn answer(self, status: u16, body: impl Into<Bytes>) -> Applied {
        self.act(Action::Answer { status, error_header: None, body: body.into() })
    }

    /// Answers with an SQS error such as 400, `OverLimit`; from 500 on it is the server's fault.
    pub fn error(self, status: u16, code: &str, message: &str) -> Applied {
        let body = json!({ "__type": format!("com.amazonaws.sqs#{code}"), "message": message });
        let fault = if status < 500 { "Sender" } else { "Receiver" };
        let error_header = Some(format!("{code};{fault}"));
        self.act(Action::Answer { status, error_header, body: body.to_string().into() })
    }

    /// Closes the connection instead of forwarding: the server never hears of it.
    pub fn drop_before(self) -> Applied {
        self.act(Action::DropBefore)
    }

    /// Forwards, then closes the connection instead of answering: done, and never confirmed.
    pub fn drop_after(self) -> Applied {
        self.act(Action::DropAfter)
    }

    /// Waits before forwarding.
    pub fn delay(self, duration: Duration) -> Applied {
        self.act(Action::Delay(duration))
    }

    /// Never answers and does not forward; the connection stays open until the client leaves
    /// or it is cut.
    pub fn hang(self) -> Applied {
        self.act(Action::Hang)
    }

    /// Sends the head of an answer and never its body; does not forward.
    pub fn headers_only(self) -> Applied {
        self.act(Action::HeadersOnly)
    }

    /// Forwards and lets this change the JSON answer, given the request's JSON.
    /// See [`edit`](super::edit) for some. An answer that is not JSON passes as it is.
    pub fn rewrite(self, edit: impl Fn(&Value, &mut Value) + Send + Sync + 'static) -> Applied {
        self.act(Action::Rewrite(Arc::new(edit)))
    }

    /// Of a batch, keeps the first few entries from the server and answers that they failed.
    pub fn fail_entries(self, first: usize, code: &str, sender_fault: bool) -> Applied {
        self.act(Action::FailEntries { first, code: code.to_owned(), sender_fault })
    }

    fn act(self, action: Action) -> Applied {
        self.rules.add(self.selection, action)
    }
}
