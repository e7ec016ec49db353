//! The ledger: what the trials showed, as the table in `docs/conformance.md`.
//!
//! Nothing in it depends on when or in which order trials ran, so two runs write the same bytes.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};

use crate::cases::{Case, Shown};
use crate::cell::{Cell, Configuration, Variant};

const HEAD: &str = include_str!("texts/head.md");
const CALLS: &str = include_str!("texts/calls.md");
const TAIL: &str = include_str!("texts/tail.md");

/// What the cells hold by the title of their case. A trial that failed is there as none.
type Pages = BTreeMap<(String, Cell), Option<Shown>>;

static PAGES: Mutex<Pages> = Mutex::new(BTreeMap::new());

/// Calls of one operation of a configuration.
static CALLED: Mutex<BTreeMap<(&'static str, Configuration), String>> = Mutex::new(BTreeMap::new());

/// Takes note of a trial's end.
pub(crate) fn note(case: &Case, cell: Cell, shown: Option<Shown>) {
    let mut pages = PAGES.lock().unwrap_or_else(PoisonError::into_inner);
    pages.insert((case.title(), cell), shown);
}

/// Takes note of the calls that an operation made. Both variants and all servers must agree.
pub(crate) fn measured(
    configuration: Configuration,
    operation: &'static str,
    calls: &str,
) -> Result<()> {
    let mut called = CALLED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = called.entry((operation, configuration)).or_insert_with(|| calls.to_owned());
    ensure!(known == calls, "{operation} made {known} in one trial and {calls} in another");
    Ok(())
}

/// The table of everything that ran.
pub(crate) fn table(cases: &[Case]) -> String {
    let pages = PAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = HEAD.to_owned();
    line(&mut text, "rule", "what is shown", Configuration::ALL.map(|one| one.name().to_owned()));
    line(&mut text, "---", "---", Configuration::ALL.map(|_| ":-:".to_owned()));
    for case in cases {
        let cells = Configuration::ALL.map(|configuration| marks(&pages, case, configuration));
        line(&mut text, &case.title(), case.says, cells);
    }
    text.push_str(CALLS);
    text.push_str(&calls());
    text.push_str(TAIL);
    text
}

fn line<const N: usize>(text: &mut String, rule: &str, says: &str, cells: [String; N]) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "| {rule} | {says} | {} |", cells.join(" | "));
}

/// One mark for each variant.
fn marks(pages: &Pages, case: &Case, configuration: Configuration) -> String {
    Variant::BOTH.map(|variant| mark(pages, case, configuration, variant)).join(" ")
}

/// The mark of all servers together: the worst of them.
fn mark(
    pages: &Pages,
    case: &Case,
    configuration: Configuration,
    variant: Variant,
) -> &'static str {
    let mut worst = "✓";
    for server in configuration.servers() {
        let cell = Cell { configuration, variant, server: *server };
        match pages.get(&(case.title(), cell)) {
            Some(Some(Shown::Present)) => {}
            Some(Some(Shown::Absent)) => worst = "✓°",
            Some(None) => return "✗",
            None => return "–",
        }
    }
    worst
}

fn calls() -> String {
    let called = CALLED.lock().unwrap_or_else(PoisonError::into_inner);
    let configurations = Configuration::ALL.map(|one| one.name().to_owned());
    let mut text = format!("| operation | {} |\n", configurations.join(" | "));
    let _ = writeln!(text, "| --- | {} |", Configuration::ALL.map(|_| "---").join(" | "));
    let operations =
        ["delivery", "release", "acknowledgement", "rejection", "rejection whose publish fails"];
    for operation in operations {
        let cells = Configuration::ALL.map(|configuration| {
            if configuration.is_embedded() {
                return "none".to_owned();
            }
            called.get(&(operation, configuration)).cloned().unwrap_or_else(|| "–".to_owned())
        });
        let _ = writeln!(text, "| {operation} | {} |", cells.join(" | "));
    }
    text
}

/// The committed table.
pub(crate) fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md")
}

/// Where a run leaves its own.
pub(crate) fn left() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("../conformance.md")
}

/// Compares a run's table with the committed one: all of it, or the embedded columns alone.
pub(crate) fn compare(table: &str, embedded_only: bool) -> Result<()> {
    let path = committed();
    let known =
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let (seen, known) =
        if embedded_only { (embedded(table), embedded(&known)) } else { (table.to_owned(), known) };
    if seen == known {
        return Ok(());
    }
    let differs = seen.lines().zip(known.lines()).find(|(seen, known)| seen != known);
    let (seen, known) = differs.unwrap_or(("more or fewer lines", "than are committed"));
    bail!(
        "docs/conformance.md is not what this run showed; write it anew with PUMPHOUSE_WRITE_CONFORMANCE=1\n  committed: {known}\n  this run:  {seen}"
    )
}

/// The lines of the matrix, with the columns of the embedded broker alone.
fn embedded(table: &str) -> String {
    let matrix = table
        .lines()
        .skip_while(|line| !line.starts_with("| rule"))
        .take_while(|line| line.starts_with('|'));
    let mut text = String::new();
    for row in matrix {
        let cells: Vec<&str> = row.split(" | ").collect();
        let from = cells.len().saturating_sub(2);
        let kept = cells.iter().take(2).chain(cells.iter().skip(from));
        let _ = writeln!(text, "{}", kept.copied().collect::<Vec<_>>().join(" | "));
    }
    text
}
