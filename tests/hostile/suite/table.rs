//! The table in `docs/hostile.md`: what must be so, which every run holds it to, and figures of the last measurement.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::measure::Figures;
use crate::row::{Expected, Next, Row};
use crate::rows::root;

const HEAD: &str = include_str!("texts/head.md");

/// The columns that no two runs agree on, at the end of each line.
const MEASURED: usize = 3;

/// The committed table.
pub(crate) fn committed() -> PathBuf {
    root().join("docs/hostile.md")
}

/// All of it.
pub(crate) fn with(rows: &[Arc<Row>], figures: &[Option<Figures>]) -> String {
    let mut text = HEAD.to_owned();
    for (row, figures) in rows.iter().zip(figures) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{} {}", shown(row), measured(figures.as_ref()));
    }
    text
}

/// All of it with the figures that are committed, for rows that have changed.
pub(crate) fn with_known_figures(rows: &[Arc<Row>]) -> String {
    let known = std::fs::read_to_string(committed()).unwrap_or_default();
    let mut text = HEAD.to_owned();
    for row in rows {
        let begin = format!("| {} |", row.name);
        let line = known.lines().find(|line| line.starts_with(&begin));
        let figures = line.map_or_else(|| measured(None), last_cells);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{} {figures}", shown(row));
    }
    text
}

/// What was measured, of a line.
fn last_cells(line: &str) -> String {
    let cells: Vec<&str> = line.trim_end_matches('|').split(" | ").collect();
    let from = cells.len().saturating_sub(MEASURED);
    format!("{} |", cells.get(from..).unwrap_or_default().join(" | ").trim_end())
}

/// Tells of a measurement while it goes on.
pub(crate) fn show(row: &Row, figures: Option<&Figures>) {
    let _ = writeln!(std::io::stderr(), "{}: {}", row.name, measured(figures));
}

/// Holds the committed table to what this run showed.
pub(crate) fn compare(rows: &[Arc<Row>]) -> Result<()> {
    let path = committed();
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let known: Vec<String> =
        text.lines().skip_while(|line| !line.starts_with("| ---")).skip(1).map(lasting).collect();
    let seen: Vec<String> = rows.iter().map(|row| shown(row)).collect();
    let differs = seen.iter().zip(&known).find(|(seen, known)| seen != known);
    ensure!(
        differs.is_none() && seen.len() == known.len() && text.starts_with(HEAD),
        "docs/hostile.md is not what this run showed; write it anew with `cargo xtask hostile`\n  \
         {differs:?}"
    );
    Ok(())
}

/// A line without what was measured.
fn lasting(line: &str) -> String {
    let cells: Vec<&str> = line.trim_end_matches('|').split(" | ").collect();
    let kept = cells.len().saturating_sub(MEASURED);
    let mut text = cells.into_iter().take(kept).collect::<Vec<_>>().join(" | ");
    text.push_str(" |");
    text
}

/// What every run shows of a row.
fn shown(row: &Row) -> String {
    let (contained, message) = match &row.expected {
        Expected::Fault(kind) => {
            (format!("fault `{kind}`"), "comes back, and is dead at its budget")
        }
        Expected::Refused(words) => (
            format!("refused: “… {} …”", words.join(" … ")),
            "is not received; where a version runs, that one goes on",
        ),
        Expected::Harmless(says, _) => ((*says).to_owned(), "is settled as answered"),
        Expected::Either => {
            ("deployed or refused, within the compiler's bounds".to_owned(), "as of any other")
        }
        Expected::Own(says, _) => ((*says).to_owned(), "is acknowledged"),
    };
    let next = match (&row.expected, row.next) {
        (Expected::Fault(_), Next::Swap) => "succeeds after a swap",
        _ => "succeeds",
    };
    format!("| {} | {} | {contained} | {message} | {next} |", row.name, row.does)
}

fn measured(figures: Option<&Figures>) -> String {
    let Some(Figures { contained, ratio, honest }) = figures else {
        return "– | – | – |".into();
    };
    format!("{} | {ratio:.2} | {} |", time(*contained), time(*honest))
}

fn time(time: Duration) -> String {
    let micros = time.as_micros();
    match micros {
        0..10_000 => format!("{:.1} ms", time.as_secs_f64() * 1e3),
        10_000..1_000_000 => format!("{:.0} ms", time.as_secs_f64() * 1e3),
        _ => format!("{:.2} s", time.as_secs_f64()),
    }
}
