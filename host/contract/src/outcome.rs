//! What a handler says, and what can happen to it instead. The two never share a type.

use std::fmt;
use std::time::Duration;

/// The handler's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done.
    Ack,
    /// Not now; after this delay, or after the subscription's backoff where there is none.
    Defer(Option<Duration>),
    /// Never.
    Reject(Rejection),
}

/// The answer "never" and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Decides the destination.
    pub reason: Reason,
    /// For the person who will look at the copy.
    pub description: String,
}

/// Why a message is rejected; it decides the destination (C-10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The message itself can never be handled.
    Unacceptable,
    /// Handling it failed for good.
    DeliveryError,
    /// No reason given.
    None,
}

impl Reason {
    /// The reason as it is spelled on the wire, the same on every transport.
    #[must_use]
    pub fn on_the_wire(self) -> &'static str {
        match self {
            Self::Unacceptable => "Unacceptable",
            Self::DeliveryError => "DeliveryError",
            Self::None => "None",
        }
    }

    /// The reason as a metric label and in logs.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Unacceptable => "unacceptable",
            Self::DeliveryError => "delivery-error",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// What happened to a call that gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Which of the ways to fail.
    pub kind: FaultKind,
    /// What a handler's author needs to know, in one or two sentences.
    pub detail: String,
    /// Function names of the guest, innermost first, where the component has them.
    pub backtrace: Vec<String>,
    /// The last lines that the handler logged or printed.
    pub last_logs: Vec<String>,
}

impl Fault {
    /// A fault with its explanation alone.
    #[must_use]
    pub fn new(kind: FaultKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), backtrace: Vec::new(), last_logs: Vec::new() }
    }
}

/// The ways in which a call can fail, each with a name of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// The guest trapped: a panic, an unreachable instruction, a division by zero.
    Trap,
    /// The guest left through `exit`.
    Exit,
    /// The deadline passed, in guest code or in a host call.
    Deadline,
    /// The deadline passed while the guest waited for a processor: not its own doing.
    Starved,
    /// The limit on processor time.
    Cpu,
    /// The memory limit.
    Memory,
    /// The table limit.
    Table,
    /// The stack limit.
    Stack,
    /// The budget for log output.
    LogBudget,
    /// The answer, or what a host call was given, is larger than the limit.
    ResultSize,
    /// The answer is not a valid one: broken text, a length beyond the memory.
    InvalidResult,
    /// The component could not be instantiated.
    Instantiation,
    /// The host could not make the call: no version is loaded, or its own machinery failed.
    Host,
}

impl FaultKind {
    /// Every kind.
    pub const ALL: [Self; 13] = [
        Self::Trap,
        Self::Exit,
        Self::Deadline,
        Self::Starved,
        Self::Cpu,
        Self::Memory,
        Self::Table,
        Self::Stack,
        Self::LogBudget,
        Self::ResultSize,
        Self::InvalidResult,
        Self::Instantiation,
        Self::Host,
    ];

    /// The name, as a metric label, in logs and in a rejection's text.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::Exit => "exit",
            Self::Deadline => "deadline",
            Self::Starved => "starved",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Table => "table",
            Self::Stack => "stack",
            Self::LogBudget => "log-budget",
            Self::ResultSize => "result-size",
            Self::InvalidResult => "invalid-result",
            Self::Instantiation => "instantiation",
            Self::Host => "host",
        }
    }

    /// The key below `limits` of the limit that was met; none where it was none.
    #[must_use]
    pub fn limit(self) -> Option<&'static str> {
        match self {
            Self::Deadline => Some("deadline"),
            Self::Cpu => Some("cpu"),
            Self::Memory => Some("memory"),
            Self::Table => Some("table"),
            Self::LogBudget => Some("log"),
            Self::ResultSize => Some("result"),
            Self::Trap
            | Self::Exit
            | Self::Starved
            | Self::Stack
            | Self::InvalidResult
            | Self::Instantiation
            | Self::Host => None,
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// What a call used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Time on a processor.
    pub cpu: Duration,
    /// The largest linear memory, in bytes.
    pub memory_peak: u64,
    /// How long making the instance took.
    pub instantiation: Duration,
    /// Calls of the guest to the host.
    pub host_calls: u64,
    /// What the guest was given: the message, and what came back from the host's services, in bytes.
    pub bytes_in: u64,
    /// What the guest gave: its answer, its log and what it sent through the host, in bytes.
    pub bytes_out: u64,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The answer, or what happened instead.
    pub result: Result<Outcome, Fault>,
    /// What it used.
    pub usage: Usage,
}

impl Ended {
    /// An answer whose use was not measured.
    #[must_use]
    pub fn outcome(outcome: Outcome) -> Self {
        Self { result: Ok(outcome), usage: Usage::default() }
    }

    /// A fault whose use was not measured.
    #[must_use]
    pub fn fault(fault: Fault) -> Self {
        Self { result: Err(fault), usage: Usage::default() }
    }
}
