//! What a guest says in one call: the lines that it logs, and what it prints.
//!
//! Both are bounded. Logged lines go to the operator's log, where that is granted, until the call's budget is
//! spent; then the call ends. What is printed needs no grant, so it ends no call: it is kept for the fault alone,
//! and shown at debug level where logging is granted, as far as the budget goes.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use pumphouse_contract::trace::TraceContext;
use pumphouse_contract::{Count, Message};

use crate::ledger::Logged;
use crate::secrets::Redactor;
use crate::services::Services;
use crate::settings::Limits;
use crate::text::escaped;

const TAIL_LINES: usize = 20;
const TAIL_BYTES: usize = 4 * 1024;
const LONGEST_LINE: usize = 4 * 1024;
const LONGEST_TAIL_LINE: usize = 1024;

/// The budget for log output is spent.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the budget for log output is spent")]
pub(crate) struct BudgetSpent;

/// How much a line matters; as in the WIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
    Critical,
}

/// Where a guest prints to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// Whose lines these are.
#[derive(Debug, Clone)]
pub(crate) struct Speaker {
    pub(crate) handler: Arc<str>,
    pub(crate) version: Arc<str>,
    pub(crate) subscription: Arc<str>,
    pub(crate) message: Arc<Message>,
    pub(crate) count: Count,
}

impl Speaker {
    /// What every line about the message says; made where something is said.
    pub(crate) fn span(&self) -> tracing::Span {
        let trace = TraceContext::of(&self.message.headers);
        tracing::error_span!(
            target: "pumphouse::guest",
            "process",
            subscription = &*self.subscription,
            message_id = escaped(&self.message.id, LONGEST_TAIL_LINE),
            attempt = self.count.deliveries(),
            trace_id = trace.map(|trace| display(trace.trace())),
            parent_id = trace.map(|trace| display(trace.parent())),
        )
    }
}

/// The lines of one call.
#[derive(Debug)]
pub(crate) struct Journal {
    speaker: ArcSwap<Speaker>,
    services: Arc<Services>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    bytes_left: u64,
    lines_left: u64,
    tail: VecDeque<String>,
    tail_bytes: usize,
    unfinished: [Vec<u8>; 2],
    /// Bytes that the guest logged or printed, whatever became of them.
    said: u64,
    logged: Logged,
}

impl Journal {
    pub(crate) fn new(speaker: Speaker, services: Arc<Services>, limits: &Limits) -> Self {
        let speaker = ArcSwap::from_pointee(speaker);
        Self { speaker, services, state: Mutex::new(State::new(limits)) }
    }

    /// Begins the lines of another call in the same instance, whose streams go on writing here.
    pub(crate) fn renew(&self, speaker: Speaker, limits: &Limits) {
        let mut state = self.state();
        self.speaker.store(Arc::new(speaker));
        *state = State::new(limits);
    }

    /// Adds a line to the operator's log.
    pub(crate) fn log(&self, level: Level, context: &str, text: &str) -> Result<(), BudgetSpent> {
        let mut state = self.state();
        let bytes = context.len() + text.len();
        state.said += bytes as u64;
        if !state.spend(bytes) {
            return Err(BudgetSpent);
        }
        let (context, text) = (self.redacted(context), self.redacted(text));
        let (context, text) = (escaped(&context, LONGEST_TAIL_LINE), escaped(&text, LONGEST_LINE));
        state.remember(&if context.is_empty() {
            format!("{level:?}: {text}")
        } else {
            format!("{level:?} {context}: {text}")
        });
        let passes = self.passes(&mut state, bytes);
        drop(state);
        if passes {
            self.emit(level, &context, &text);
        }
        Ok(())
    }

    /// Takes what was printed.
    pub(crate) fn print(&self, stream: Stream, bytes: &[u8]) {
        let mut state = self.state();
        state.said += bytes.len() as u64;
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end);
            state.add(stream, line, self.room());
            self.finish(&mut state, stream);
            rest = after.get(1..).unwrap_or_default();
        }
        state.add(stream, rest, self.room());
    }

    /// The last lines, oldest first, those that were not ended included.
    pub(crate) fn tail(&self) -> Vec<String> {
        let mut state = self.state();
        for stream in [Stream::Out, Stream::Err] {
            self.finish(&mut state, stream);
        }
        state.tail.iter().cloned().collect()
    }

    fn finish(&self, state: &mut State, stream: Stream) {
        let line = std::mem::take(state.line(stream));
        if line.is_empty() {
            return;
        }
        let text = escaped(&self.readable(&line), LONGEST_TAIL_LINE);
        state.remember(&text);
        // Most hosts do not log at this level: what goes nowhere is not counted.
        let heard = self.services.logging
            && tracing::enabled!(target: "pumphouse::guest", tracing::Level::DEBUG);
        if heard && state.spend(line.len()) && self.passes(state, line.len()) {
            let context = if stream == Stream::Out { "stdout" } else { "stderr" };
            self.emit(Level::Debug, context, &text);
        }
    }

    /// What went to the operator's log, and what did not.
    pub(crate) fn logged(&self) -> Logged {
        self.state().logged
    }

    /// The bytes that the guest logged or printed.
    pub(crate) fn said(&self) -> u64 {
        self.state().said
    }

    /// Whether the tenant's rate lets a line pass. It counts either way.
    fn passes(&self, state: &mut State, bytes: usize) -> bool {
        let passes = self.services.tenant.as_ref().is_none_or(|tenant| tenant.may_log(bytes));
        state.logged.count(bytes, passes);
        passes
    }

    /// What the guest may see and do.
    pub(crate) fn services(&self) -> &Services {
        &self.services
    }

    /// Whose lines these are now.
    pub(crate) fn speaker(&self) -> Arc<Speaker> {
        self.speaker.load_full()
    }

    fn redacted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.services.redactor.as_ref().map_or(Cow::Borrowed(text), |redactor| redactor.apply(text))
    }

    /// How much of a printed line is kept: a secret that begins in what is shown is there to its end.
    fn room(&self) -> usize {
        LONGEST_TAIL_LINE + 1 + self.longest_secret()
    }

    fn longest_secret(&self) -> usize {
        self.services.redactor.as_ref().map_or(0, Redactor::longest)
    }

    /// A printed line as text, without secrets. Where it was cut, a secret's beginning may be its end.
    fn readable(&self, line: &[u8]) -> String {
        let mut text = self.redacted(&String::from_utf8_lossy(line)).into_owned();
        if line.len() >= self.room() {
            let end = text.len().saturating_sub(self.longest_secret().saturating_sub(1));
            text.truncate(text.floor_char_boundary(end));
        }
        text
    }

    fn emit(&self, level: Level, context: &str, text: &str) {
        let speaker = self.speaker.load();
        let (handler, version) = (&*speaker.handler, &*speaker.version);
        let message_id = escaped(&speaker.message.id, LONGEST_TAIL_LINE);
        let _about = speaker.span().entered();
        macro_rules! line {
            ($as:ident, $level:literal) => {
                tracing::event!(
                    target: "pumphouse::guest",
                    tracing::Level::$as,
                    handler, version, message_id, level = $level, context, text,
                    "guest log"
                )
            };
        }
        match level {
            Level::Trace => line!(TRACE, "trace"),
            Level::Debug => line!(DEBUG, "debug"),
            Level::Info => line!(INFO, "info"),
            Level::Warn => line!(WARN, "warn"),
            Level::Error => line!(ERROR, "error"),
            Level::Critical => line!(ERROR, "critical"),
        }
    }

    /// A guest that panicked inside a host call does not take the journal with it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(limits: &Limits) -> Self {
        Self {
            bytes_left: limits.log_bytes,
            lines_left: limits.log_lines,
            tail: VecDeque::new(),
            tail_bytes: 0,
            unfinished: [Vec::new(), Vec::new()],
            said: 0,
            logged: Logged::default(),
        }
    }

    fn spend(&mut self, bytes: usize) -> bool {
        match (self.bytes_left.checked_sub(bytes as u64), self.lines_left.checked_sub(1)) {
            (Some(bytes), Some(lines)) => {
                (self.bytes_left, self.lines_left) = (bytes, lines);
                true
            }
            _ => false,
        }
    }

    fn line(&mut self, stream: Stream) -> &mut Vec<u8> {
        let [out, err] = &mut self.unfinished;
        if stream == Stream::Out { out } else { err }
    }

    /// Adds to the line that is not ended yet, as far as it will be shown.
    fn add(&mut self, stream: Stream, bytes: &[u8], room: usize) {
        let line = self.line(stream);
        let room = room.saturating_sub(line.len());
        line.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    fn remember(&mut self, line: &str) {
        let line = pumphouse_contract::copy::shorten(line, LONGEST_TAIL_LINE);
        self.tail_bytes += line.len();
        self.tail.push_back(line);
        while self.tail.len() > TAIL_LINES || self.tail_bytes > TAIL_BYTES {
            let Some(oldest) = self.tail.pop_front() else { break };
            self.tail_bytes -= oldest.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(limits: &Limits) -> Journal {
        let speaker = Speaker {
            handler: "acme/orders".into(),
            version: "abc".into(),
            subscription: "orders".into(),
            message: Arc::new(Message::default()),
            count: Count(0),
        };
        let services = Services { logging: true, ..Services::default() };
        Journal::new(speaker, Arc::new(services), limits)
    }

    #[test]
    fn the_tail_is_the_last_lines_and_bounded() {
        let journal = journal(&Limits::default());
        for n in 0..100 {
            journal.print(Stream::Err, format!("line {n}\n").as_bytes());
        }
        journal.print(Stream::Out, b"not ended");
        let tail = journal.tail();
        assert_eq!(tail.len(), TAIL_LINES);
        assert_eq!(tail.last().unwrap(), "not ended");
        assert_eq!(tail[TAIL_LINES - 2], "line 99");
        for _ in 0..100 {
            journal.print(Stream::Out, &[b'x'; 10_000]);
            journal.print(Stream::Out, b"\n");
        }
        let tail = journal.tail();
        assert!(tail.iter().map(String::len).sum::<usize>() <= TAIL_BYTES, "{tail:?}");
    }

    #[test]
    fn a_line_may_come_in_pieces_and_in_broken_text() {
        let journal = journal(&Limits::default());
        journal.print(Stream::Out, b"one ");
        journal.print(Stream::Err, b"other\n");
        journal.print(Stream::Out, b"line\xff\n\nnext");
        assert_eq!(journal.tail(), ["other", "one line\u{fffd}", "next"]);
    }

    #[test]
    fn logging_ends_at_either_budget_and_printing_does_not() {
        let bytes = journal(&Limits { log_bytes: 10, ..Limits::default() });
        assert!(bytes.log(Level::Info, "a", "123456789").is_ok());
        assert!(bytes.log(Level::Info, "", "1").is_err());
        bytes.print(Stream::Out, b"still here\n");
        assert_eq!(bytes.tail(), ["Info a: 123456789", "still here"]);
        let lines = journal(&Limits { log_lines: 2, ..Limits::default() });
        assert!(lines.log(Level::Info, "", "").is_ok() && lines.log(Level::Warn, "", "").is_ok());
        assert!(lines.log(Level::Info, "", "").is_err());
    }
}
