//! Those that end badly, or lie: panics, exits, lengths and texts that can't be.

use anyhow::Result;
use pumphouse_contract::FaultKind;

use super::{built, handler, whole};
use crate::row::{Component, Expected, Row};

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = ending();
    rows.extend(large());
    rows.extend(lying());
    rows
}

fn ending() -> Vec<Row> {
    let trap = || Expected::Fault(FaultKind::Trap);
    vec![
        Row::new("panic", "panics", || built("hostile_panic"), trap()),
        Row::new(
            "panic while dropping",
            "panics while it tidies up",
            || built("hostile_drop"),
            trap(),
        ),
        Row::new(
            "trap after the answer",
            "acknowledges, then traps",
            || handler("post-trap"),
            trap(),
        ),
        Row::new(
            "exit",
            "exits with status 0",
            || built("hostile_exit"),
            Expected::Fault(FaultKind::Exit),
        ),
    ]
}

fn large() -> Vec<Row> {
    let size = || Expected::Fault(FaultKind::ResultSize);
    vec![
        Row::new(
            "gigantic answer",
            "rejects with a text of 39 MiB",
            || handler("description-huge"),
            size(),
        ),
        Row::new(
            "gigantic request",
            "asks for a tebibyte of random bytes",
            || built("hostile_random"),
            size(),
        ),
    ]
}

fn lying() -> Vec<Row> {
    let invalid = || Expected::Fault(FaultKind::InvalidResult);
    vec![
        Row::new(
            "lying length of a text",
            "answers with a text that reaches past its memory",
            || handler("description-out-of-bounds"),
            invalid(),
        ),
        Row::new(
            "lying length of a log line",
            "logs a text that reaches past its memory",
            || whole("whole/log-out-of-bounds"),
            invalid(),
        )
        .logging(),
        Row::new(
            "lying place for the message",
            "wants it past the end of its memory",
            || handler("realloc-out-of-bounds"),
            invalid(),
        )
        .swapped(),
        Row::new(
            "broken text",
            "answers with a text that is not UTF-8",
            || handler("description-not-utf8"),
            invalid(),
        ),
        Row::new(
            "answer that is none",
            "an unknown case or reason, a place that is none",
            unknown,
            invalid(),
        ),
        Row::new(
            "forged handle",
            "waits for a handle that it was never given",
            || whole("whole/handle-forged"),
            invalid(),
        ),
    ]
}

fn unknown() -> Result<Vec<Component>> {
    let names =
        ["outcome-unknown", "outcome-misaligned", "outcome-out-of-bounds", "reason-unknown"];
    let all: Result<Vec<_>> = names.into_iter().map(handler).collect();
    Ok(all?.into_iter().flatten().collect())
}
