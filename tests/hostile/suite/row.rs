//! What a row of the table is: a guest, what it may use, and what must come of it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use pumphouse_contract::{FaultKind, Outgoing};
use pumphouse_sandbox::{Grants, Limits};

/// The deadline of the guests that run into it.
pub(crate) const SHORT: Duration = Duration::from_secs(1);

/// One hostile guest.
pub(crate) struct Row {
    /// The trial's name.
    pub(crate) name: &'static str,
    /// What it does, for a reader.
    pub(crate) does: &'static str,
    /// Its components: the first is the one that is measured, and all of them have to end alike.
    pub(crate) components: fn() -> Result<Vec<Component>>,
    pub(crate) limits: Limits,
    pub(crate) grants: Grants,
    /// The message on which it misbehaves.
    pub(crate) message: fn() -> Outgoing,
    pub(crate) expected: Expected,
    /// How the handler comes to its next message.
    pub(crate) next: Next,
}

/// A component's file.
pub(crate) enum Component {
    /// One of the guests' workspace, by its file's name.
    Built(PathBuf),
    /// Made here.
    Made(Vec<u8>),
}

/// What must come of it.
pub(crate) enum Expected {
    /// The call ends with this fault.
    Fault(FaultKind),
    /// It is not deployed; the refusal has these words in it.
    Refused(&'static [&'static str]),
    /// It answers, and has gained nothing: what the table says of that, and the test of the answer.
    Harmless(&'static str, Answer),
    /// It is deployed or refused, and either is well.
    Either,
    /// A test of its own, and what the table says.
    Own(&'static str, Own),
}

/// An answer that a harmless guest may give.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    Ack,
    /// It rejects, with a text that passes this.
    Says(fn(&str) -> bool),
}

/// A trial that is not like the others.
#[derive(Clone, Copy)]
pub(crate) enum Own {
    PoisonedCache,
}

/// How a handler comes to a message that succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next message is one that the guest behaves on.
    Message,
    /// It never behaves: it is replaced by a version that does.
    Swap,
}

impl Row {
    /// A row whose guest is compiled, with the default limits, no grant and a deadline that it never meets.
    pub(crate) fn new(
        name: &'static str,
        does: &'static str,
        components: fn() -> Result<Vec<Component>>,
        expected: Expected,
    ) -> Self {
        let limits = Limits { deadline: Duration::from_secs(60), ..Limits::default() };
        Self {
            name,
            does,
            components,
            limits,
            grants: Grants::default(),
            message: || Outgoing { body: "bad".into(), ..Outgoing::default() },
            expected,
            next: Next::Message,
        }
    }

    /// With the deadline that it runs into.
    pub(crate) fn short(mut self) -> Self {
        self.limits.deadline = SHORT;
        self
    }

    pub(crate) fn limited(mut self, limits: impl FnOnce(&mut Limits)) -> Self {
        limits(&mut self.limits);
        self
    }

    pub(crate) fn logging(mut self) -> Self {
        self.grants.logging = true;
        self
    }

    pub(crate) fn granted(mut self, grants: impl FnOnce(&mut Grants)) -> Self {
        grants(&mut self.grants);
        self
    }

    pub(crate) fn swapped(mut self) -> Self {
        self.next = Next::Swap;
        self
    }

    pub(crate) fn with(mut self, message: fn() -> Outgoing) -> Self {
        self.message = message;
        self
    }
}
