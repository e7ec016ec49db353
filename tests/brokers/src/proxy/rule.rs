use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::ANY;
use super::edit::Edit;

type Condition = dyn Fn(&Value) -> bool + Send + Sync;

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

struct Rule {
    operation: String,
    skip: u64,
    left: u64,
    condition: Option<Box<Condition>>,
    action: Action,
    applied: Applied,
}

impl Rule {
    /// Whether it is this rule's turn. Uses up one of the requests to skip or to act on.
    fn take(&mut self, operation: &str, body: &Bytes) -> bool {
        if self.left == 0 || (self.operation != ANY && self.operation != operation) {
            return false;
        }
        if let Some(condition) = &self.condition {
            let body = serde_json::from_slice(body).unwrap_or_default();
            if !condition(&body) {
                return false;
            }
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.left -= 1;
        self.applied.0.fetch_add(1, Ordering::SeqCst);
        true
    }
}

/// The rules of a proxy, in the order of their making.
#[derive(Default)]
pub(super) struct Rules(Mutex<Vec<Rule>>);

impl Rules {
    pub(super) fn pick(&self, operation: &str, body: &Bytes) -> Action {
        let mut rules = self.rules();
        let picked = rules
            .iter_mut()
            .find_map(|rule| rule.take(operation, body).then(|| rule.action.clone()));
        rules.retain(|rule| rule.left > 0);
        picked.unwrap_or(Action::Forward)
    }

    pub(super) fn clear(&self) {
        self.rules().clear();
    }

    fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        // A condition of a test that panics leaves the list as it was.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Rules").field(&self.rules().len()).finish()
    }
}

/// How often a rule was followed, so that a test can show that its fault happened.
#[derive(Debug, Clone, Default)]
pub struct Applied(Arc<AtomicU64>);

impl Applied {
    /// How often so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A rule in the making: which requests, then what is done with them. Without a limit it holds
/// for all of its operation until [`heal`](super::Proxy::heal).
#[must_use = "a rule begins to hold when it says what is done"]
pub struct On<'a> {
    rules: &'a Rules,
    operation: String,
    skip: u64,
    times: u64,
    condition: Option<Box<Condition>>,
}

impl<'a> On<'a> {
    pub(super) fn new(rules: &'a Rules, operation: &str) -> Self {
        let operation = operation.to_owned();
        Self { rules, operation, skip: 0, times: u64::MAX, condition: None }
    }

    /// Leaves this many alone first.
    pub fn skip(mut self, count: u64) -> Self {
        self.skip = count;
        self
    }

    /// Holds for this many and no more.
    pub fn times(mut self, count: u64) -> Self {
        self.times = count;
        self
    }

    /// Holds for one alone, the next being number 1.
    pub fn nth(self, number: u64) -> Self {
        self.skip(number.saturating_sub(1)).times(1)
    }

    /// Holds for those alone whose JSON body satisfies this; others are not counted for
    /// [`skip`](Self::skip) and [`times`](Self::times). A body that is not JSON is `Null`.
    pub fn when(mut self, condition: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        self.condition = Some(Box::new(condition));
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
        let applied = Applied::default();
        let Self { rules, operation, skip, times, condition } = self;
        let rule =
            Rule { operation, skip, left: times, condition, action, applied: applied.clone() };
        rules.rules().push(rule);
        applied
    }
}
