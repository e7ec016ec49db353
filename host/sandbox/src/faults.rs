//! What happened to a call that gave no answer, in words for the handler's author.

use std::time::Duration;

use pumphouse_contract::{Fault, FaultKind};
use wasmtime::component::ResourceTableError;
use wasmtime::{Error, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;
use wasmtime_wasi_http::FieldMapError;

use crate::engine::FRAMES;
use crate::guest::DeadlinePassed;
use crate::journal::BudgetSpent;
use crate::limits::Tripped;
use crate::meter::Meter;
use crate::settings::Limits;
use crate::shares::Short;
use crate::text::escaped;
use crate::worlds::messaging::TooMuchHeld;

const LONGEST_NAME: usize = 200;
const LONGEST_DETAIL: usize = 600;

/// A backtrace that is full and has so few functions is a recursion's.
const FUNCTIONS_OF_A_RECURSION: usize = FRAMES / 4;

/// A deadline was not the guest's own doing where it waited for more than this part of it …
const STARVED_WAIT: u32 = 2;
/// … and had a processor for less than this part of it.
const STARVED_CPU: u32 = 10;

/// How far a call came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Instantiating,
    Calling,
}

/// What is known of a call beside its error.
#[derive(Debug)]
pub(crate) struct Circumstances<'a> {
    pub(crate) phase: Phase,
    pub(crate) limits: &'a Limits,
    pub(crate) stack: usize,
    pub(crate) tripped: Option<Tripped>,
    pub(crate) meter: &'a Meter,
    /// What the guest logged or printed at last.
    pub(crate) tail: Vec<String>,
}

/// The fault of an error that ended a call.
pub(crate) fn fault(error: &Error, around: Circumstances<'_>) -> Fault {
    let backtrace = backtrace(error);
    let (kind, detail) = explain(error, &backtrace, &around);
    Fault { kind, detail, backtrace, last_logs: around.tail }
}

/// The fault of a call that was cut in a host call, or while it waited for its turn.
pub(crate) fn cut(around: Circumstances<'_>) -> Fault {
    let (kind, detail) = deadline(&around, "it was waiting, in a call to the host or for its turn");
    Fault { kind, detail, backtrace: Vec::new(), last_logs: around.tail }
}

/// The fault of a call that used up its time on a processor.
pub(crate) fn cpu(around: Circumstances<'_>) -> Fault {
    let detail = format!(
        "the handler used {:?} of processor time, more than its limit of {:?}. Make it do less for one message, or \
         raise `limits.cpu` if it needs more",
        rounded(around.meter.cpu),
        around.limits.cpu.unwrap_or_default()
    );
    Fault { kind: FaultKind::Cpu, detail, backtrace: Vec::new(), last_logs: around.tail }
}

/// What a call had too little of to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The handler's own places.
    Concurrency,
    /// Instances of a pool.
    Instances(Short),
}

/// The fault of a call that never got an instance.
pub(crate) fn never_began(limits: &Limits, lack: Lack) -> Fault {
    let (what, raise) = match lack {
        Lack::Concurrency => (
            "as many calls of the handler as may run at once had not ended",
            "`limits.concurrency` of the handler",
        ),
        Lack::Instances(Short::Tenant) => (
            "the handlers of its tenant had all the instances that they may have",
            "`limits.instances` of the tenant",
        ),
        Lack::Instances(Short::All) => (
            "all handlers together had all the instances that there are",
            "`host.pool_slots`, or lower `limits.instances` of tenants that have many",
        ),
    };
    let detail = format!(
        "no instance was free within the deadline of {:?}: {what}; the handler was not called. Raise {raise}, or \
         lower the concurrency of its subscriptions",
        limits.deadline
    );
    Fault::new(FaultKind::Starved, detail)
}

fn explain(error: &Error, trace: &[String], around: &Circumstances<'_>) -> (FaultKind, String) {
    if error.is::<DeadlinePassed>() {
        return deadline(around, "it was computing");
    }
    if error.is::<BudgetSpent>() {
        return log_budget(around.limits);
    }
    if let Some(I32Exit(status)) = error.downcast_ref() {
        return exit(*status);
    }
    if let Some(ResourceTableError::Full) = error.downcast_ref() {
        return (
            FaultKind::Table,
            "the handler held too many handles of the host at once, such as \
             streams and timers; it must drop those that it is done with"
                .to_owned(),
        );
    }
    if let Some(FieldMapError::TotalSizeTooBig | FieldMapError::TooManyFields) =
        error.downcast_ref()
    {
        let detail = "the headers of a request are larger than 32KiB, or too many; send fewer";
        return (FaultKind::ResultSize, detail.to_owned());
    }
    if let Some(TooMuchHeld) = error.downcast_ref() {
        return (
            FaultKind::Memory,
            format!("{TooMuchHeld}; it must drop those that it is done with"),
        );
    }
    match error.downcast_ref::<Trap>() {
        Some(trap) => trapped(*trap, trace, around),
        None => other(error, around),
    }
}

fn trapped(trap: Trap, trace: &[String], around: &Circumstances<'_>) -> (FaultKind, String) {
    match trap {
        Trap::StackOverflow => stack(around.stack),
        Trap::StringOutOfBounds
        | Trap::ListOutOfBounds
        | Trap::InvalidDiscriminant
        | Trap::InvalidChar
        | Trap::UnalignedPointer => invalid(&trap.to_string()),
        _ => match (panic_text(&around.tail), around.tripped) {
            (Some(text), _) => (FaultKind::Trap, format!("the handler panicked: {text}")),
            (None, Some(tripped)) => limit(tripped, around.limits),
            (None, None) if trap == Trap::MemoryOutOfBounds && is_recursion(trace) => {
                own_stack(trace)
            }
            (None, None) => (FaultKind::Trap, format!("the handler trapped: {}", plain(&trap))),
        },
    }
}

/// An error that is no trap: the host's own, or what it found wrong with what it was given.
fn other(error: &Error, around: &Circumstances<'_>) -> (FaultKind, String) {
    let text = escaped(&error.root_cause().to_string(), LONGEST_DETAIL);
    if text.contains("fuel allocated for hostcalls") {
        return result_size(around.limits);
    }
    if text.contains("requested len") {
        let detail = "the handler asked the host for more in one call than it gives";
        return (FaultKind::ResultSize, format!("{detail}: {text}"));
    }
    match (around.phase, around.tripped) {
        (Phase::Instantiating, Some(tripped)) => limit(tripped, around.limits),
        (Phase::Instantiating, None) => {
            (FaultKind::Instantiation, format!("the component could not be instantiated: {text}"))
        }
        (Phase::Calling, _) => invalid(&text),
    }
}

fn deadline(around: &Circumstances<'_>, doing: &str) -> (FaultKind, String) {
    let (limit, meter) = (around.limits.deadline, around.meter);
    if meter.waited > limit / STARVED_WAIT && meter.cpu < limit / STARVED_CPU {
        let detail = format!(
            "the deadline of {limit:?} passed while the handler waited for a processor or a free \
             instance, {:?} in all; it ran for {:?}. {}",
            rounded(meter.waited),
            rounded(meter.cpu),
            remedy(meter.short)
        );
        return (FaultKind::Starved, detail);
    }
    let detail = format!(
        "the handler did not answer within its deadline of {limit:?}; {doing}, and had run for {:?}. Raise \
         `limits.deadline` if it needs longer",
        rounded(meter.cpu)
    );
    (FaultKind::Deadline, detail)
}

/// What helps a call that had no turn.
fn remedy(short: Option<Short>) -> &'static str {
    match short {
        Some(Short::Tenant) => {
            "Its tenant's handlers computed in all the places that they may have: raise `limits.runnable` of the \
             tenant, or lower the concurrency of its handlers"
        }
        Some(Short::All) | None => {
            "The host is overloaded: give it more processors, raise `limits.weight` of the tenant, or lower the \
             concurrency of its handlers"
        }
    }
}

fn limit(tripped: Tripped, limits: &Limits) -> (FaultKind, String) {
    match tripped {
        Tripped::Memory { asked } => (
            FaultKind::Memory,
            format!(
                "the handler asked for {} of memory, more than its limit of {}, and died of it. Raise \
                 `limits.memory` if it needs more",
                size(asked),
                size(limits.memory)
            ),
        ),
        Tripped::Table { asked } => (
            FaultKind::Table,
            format!(
                "the handler asked for a table of {asked} elements, more than its limit of {}. Raise \
                 `limits.table` if it needs more",
                limits.table_elements
            ),
        ),
    }
}

fn stack(bytes: usize) -> (FaultKind, String) {
    let detail = format!(
        "the handler used up its stack of {}: a recursion without end, or \
         one that is too deep",
        size(bytes as u64)
    );
    (FaultKind::Stack, detail)
}

fn own_stack(trace: &[String]) -> (FaultKind, String) {
    let function = trace.first().map_or("a function", String::as_str);
    let detail = format!(
        "the handler used up the stack that it keeps in its own memory, in a recursion through \
         {function}; its size is set when the component is linked (`-C link-arg=-zstack-size=…`)"
    );
    (FaultKind::Stack, detail)
}

fn log_budget(limits: &Limits) -> (FaultKind, String) {
    let detail = format!(
        "the handler logged more than {} or {} lines in one call. Log less, or raise `limits.log` and \
         `limits.log_lines`",
        size(limits.log_bytes),
        limits.log_lines
    );
    (FaultKind::LogBudget, detail)
}

fn result_size(limits: &Limits) -> (FaultKind, String) {
    let detail = format!(
        "the handler's answer, or a text that it gave to the host, is larger than {}. Make it shorter, or raise \
         `limits.result`",
        size(limits.result_bytes)
    );
    (FaultKind::ResultSize, detail)
}

fn invalid(text: &str) -> (FaultKind, String) {
    let detail =
        format!("the handler's answer, or what it gave to the host, is not a valid value: {text}");
    (FaultKind::InvalidResult, detail)
}

fn exit(status: i32) -> (FaultKind, String) {
    let detail = format!(
        "the handler ended itself with exit status {status}, which is no answer. It must return an outcome"
    );
    (FaultKind::Exit, detail)
}

/// What a Rust guest prints when it panics: `thread … panicked at FILE:LINE:COLUMN:`, then the message, then a note.
fn panic_text(tail: &[String]) -> Option<String> {
    let at = tail.iter().rposition(|line| line.contains("panicked at "))?;
    let place = tail.get(at)?.split_once("panicked at ")?.1.trim_end_matches(':');
    let message = tail.get(at + 1..)?.iter().take_while(|line| !line.starts_with("note: "));
    let message = message.cloned().collect::<Vec<_>>().join(" ");
    let message = pumphouse_contract::copy::shorten(&message, LONGEST_DETAIL);
    Some(if message.is_empty() { format!("at {place}") } else { format!("{message} (at {place})") })
}

fn backtrace(error: &Error) -> Vec<String> {
    let frames = error.downcast_ref::<WasmBacktrace>().map_or(&[][..], WasmBacktrace::frames);
    frames.iter().map(|frame| function(frame.func_name(), frame.func_index())).collect()
}

fn function(name: Option<&str>, index: u32) -> String {
    match name {
        Some(name) => {
            // A name from a hostile component may unfold into a very long one.
            let name = pumphouse_contract::copy::shorten(name, LONGEST_NAME * 4);
            escaped(&format!("{:#}", rustc_demangle::demangle(&name)), LONGEST_NAME)
        }
        None => format!("function {index}"),
    }
}

fn is_recursion(trace: &[String]) -> bool {
    let mut functions: Vec<&String> = trace.iter().collect();
    functions.sort_unstable();
    functions.dedup();
    trace.len() == FRAMES && functions.len() <= FUNCTIONS_OF_A_RECURSION
}

fn plain(trap: &Trap) -> String {
    trap.to_string().trim_start_matches("wasm trap: ").to_owned()
}

fn rounded(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// As it is spelled in the configuration.
fn size(bytes: u64) -> String {
    const KIB: u64 = 1024;
    const MIB: u64 = 1024 * KIB;
    match bytes {
        _ if bytes >= MIB && bytes.is_multiple_of(MIB) => format!("{}MiB", bytes / MIB),
        _ if bytes >= KIB && bytes.is_multiple_of(KIB) => format!("{}KiB", bytes / KIB),
        _ => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    fn of(error: Error, limits: &Limits, meter: &Meter, tripped: Option<Tripped>) -> Fault {
        let phase = Phase::Calling;
        let around =
            Circumstances { phase, limits, stack: 1 << 19, tripped, meter, tail: Vec::new() };
        fault(&error, around)
    }

    #[test]
    fn a_panic_is_told_by_its_message_and_place() {
        let tail = lines(&[
            "Info: before",
            "thread '<unnamed>' (1) panicked at src/lib.rs:23:5:",
            "order of 4 bytes",
            "has no customer",
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
        ]);
        assert_eq!(
            panic_text(&tail).unwrap(),
            "order of 4 bytes has no customer (at src/lib.rs:23:5)"
        );
        assert_eq!(panic_text(&tail[..1]), None);
    }

    #[test]
    fn names_are_demangled_and_harmless() {
        let mangled = "_ZN8handlers4read17h0123456789abcdefE";
        assert_eq!(function(Some(mangled), 7), "handlers::read");
        assert_eq!(function(Some("a\nFORGED"), 7), "a\\nFORGED");
        assert_eq!(function(None, 7), "function 7");
    }

    #[test]
    fn a_denied_growth_explains_the_trap_that_follows_it() {
        let limits = Limits { memory: 16 << 20, ..Limits::default() };
        let error = || Error::from(Trap::UnreachableCodeReached);
        let meter = Meter::default();
        let tripped = Some(Tripped::Memory { asked: 17 << 20 });
        let fault = of(error(), &limits, &meter, tripped);
        assert_eq!(fault.kind, FaultKind::Memory);
        assert!(fault.detail.contains("17MiB") && fault.detail.contains("16MiB"), "{fault:?}");
        assert!(fault.detail.contains("`limits.memory`"), "{fault:?}");
        assert_eq!(of(error(), &limits, &meter, None).kind, FaultKind::Trap);
    }

    #[test]
    fn a_deadline_is_starvation_where_the_guest_waited_and_hardly_ran() {
        let limits = Limits { deadline: Duration::from_secs(1), ..Limits::default() };
        for (waited, cpu, kind) in [
            (0, 0, FaultKind::Deadline),
            (900, 50, FaultKind::Starved),
            (870, 130, FaultKind::Deadline),
            (400, 50, FaultKind::Deadline),
        ] {
            let mut meter = Meter::default();
            meter.waited = Duration::from_millis(waited);
            meter.cpu = Duration::from_millis(cpu);
            assert_eq!(of(DeadlinePassed.into(), &limits, &meter, None).kind, kind, "{meter:?}");
        }
    }

    #[test]
    fn sizes_are_spelled_as_in_the_configuration() {
        assert_eq!(size(64 << 20), "64MiB");
        assert_eq!(size(1536), "1536 bytes");
        assert_eq!(size(4096), "4KiB");
        assert_eq!(size(0), "0 bytes");
    }
}
