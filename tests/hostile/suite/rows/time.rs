//! Those that take what there is: time, memory, handles, stacks, the log.

use std::time::Duration;

use pumphouse_contract::FaultKind;

use super::{built, handler};
use crate::row::{Answer, Expected, Row};

const MIB: u64 = 1 << 20;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = endless();
    rows.extend(growing());
    rows.extend(chatty());
    rows
}

fn endless() -> Vec<Row> {
    let deadline = || Expected::Fault(FaultKind::Deadline);
    vec![
        Row::new("endless loop", "computes without end", || built("hostile_loop"), deadline())
            .short(),
        Row::new(
            "endless host calls",
            "asks for the time without end",
            || built("hostile_calls"),
            deadline(),
        )
        .short(),
        Row::new(
            "processor time",
            "computes beyond its limit of 100 ms",
            || built("hostile_loop"),
            Expected::Fault(FaultKind::Cpu),
        )
        .limited(|limits| limits.cpu = Some(Duration::from_millis(100))),
        Row::new("sleep", "sleeps for a minute", || built("hostile_sleep"), deadline()).short(),
        Row::new("wait", "waits for a pollable", || built("hostile_poll"), deadline()).short(),
        Row::new(
            "late answer",
            "acknowledges after its deadline",
            || built("hostile_late"),
            deadline(),
        )
        .short(),
        Row::new(
            "endless start",
            "a start function without end",
            || handler("start-loop"),
            deadline(),
        )
        .short()
        .swapped(),
        Row::new(
            "endless allocation",
            "never says where the message goes",
            || handler("realloc-loop"),
            deadline(),
        )
        .short()
        .swapped(),
        Row::new(
            "endless tidying",
            "acknowledges and tidies up without end",
            || handler("post-loop"),
            deadline(),
        )
        .short(),
    ]
}

fn growing() -> Vec<Row> {
    let memory = || Expected::Fault(FaultKind::Memory);
    let table = || Expected::Fault(FaultKind::Table);
    let stack = || Expected::Fault(FaultKind::Stack);
    vec![
        Row::new(
            "memory bomb",
            "takes all memory, and touches it",
            || built("hostile_memory"),
            memory(),
        ),
        Row::new(
            "memory at the start",
            "takes all memory in its start function",
            || handler("start-memory"),
            memory(),
        )
        .limited(|limits| limits.memory = 16 * MIB)
        .swapped(),
        Row::new("table bomb", "grows a table without end", || handler("table"), table()),
        Row::new(
            "handle bomb",
            "makes five million timers",
            || built("hostile_pollables"),
            table(),
        ),
        Row::new("deep recursion", "uses up the engine's stack", || handler("recursion"), stack()),
        Row::new(
            "shadow stack",
            "uses up the stack in its own memory",
            || built("hostile_recursion"),
            stack(),
        ),
    ]
}

fn chatty() -> Vec<Row> {
    let ack = |says| Expected::Harmless(says, Answer::Ack);
    vec![
        Row::new(
            "log flood",
            "logs a million lines",
            || built("hostile_flood"),
            Expected::Fault(FaultKind::LogBudget),
        )
        .logging(),
        Row::new(
            "print flood",
            "prints 160 MB",
            || built("hostile_stdio_flood"),
            ack("acknowledges; 4 KiB of it were kept"),
        ),
        Row::new(
            "clocks and randomness",
            "asks for the time and for random bytes 300,000 times",
            || built("hostile_clocks"),
            Expected::Harmless("answers", Answer::Says(|_| true)),
        ),
    ]
}
