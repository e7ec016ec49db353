//! `pumphouse tenants`: what the tenants of a running host have used, or the handlers of one.

use anyhow::Result;
use serde_json::{Value, json};

use crate::args::Tenants;
use crate::commands::client::Client;
use crate::exit::{Exit, say};

/// How many are asked for at once.
const PAGE: usize = 1_000;

/// The columns after the name.
const COLUMNS: [&str; 10] = [
    "CALLS",
    "FAULTS",
    "CPU s",
    "WAITED s",
    "MEMORY",
    "HOST CALLS",
    "BYTES IN",
    "BYTES OUT",
    "LOG LOST",
    "NOTES",
];

pub(crate) fn tenants(arguments: &Tenants) -> Result<Exit> {
    let client = match Client::found(arguments.admin, arguments.config.as_deref())? {
        Ok(client) => client,
        Err(exit) => return Ok(exit),
    };
    let (list, path) = match &arguments.handlers {
        Some(tenant) => ("handlers", format!("/v1/handlers?limit={PAGE}&tenant={tenant}")),
        None => ("tenants", format!("/v1/tenants?limit={PAGE}")),
    };
    let all = pages(&client, &path, list)?;
    if arguments.json {
        say(json!({ list: all }));
        return Ok(Exit::Done);
    }
    let heading = if list == "handlers" { "HANDLER" } else { "TENANT" };
    let head = std::iter::once(heading).chain(COLUMNS).map(str::to_owned).collect();
    let rows = std::iter::once(head).chain(all.iter().map(row)).collect();
    table(rows).iter().for_each(say);
    Ok(Exit::Done)
}

/// Every page of a list.
fn pages(client: &Client, path: &str, list: &str) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    let mut after = String::new();
    loop {
        let page = client.get(&format!("{path}&after={after}"))?;
        all.extend(page.get(list).and_then(Value::as_array).cloned().unwrap_or_default());
        match page.get("next").and_then(Value::as_str) {
            Some(next) if next > after.as_str() => after = next.to_owned(),
            Some(_) | None => return Ok(all),
        }
    }
}

fn row(one: &Value) -> Vec<String> {
    let account = |name: &str| one.pointer(&format!("/account/{name}"));
    let number = |name: &str| account(name).and_then(Value::as_u64).unwrap_or_default();
    let seconds =
        |name: &str| format!("{:.3}", account(name).and_then(Value::as_f64).unwrap_or_default());
    let faults = account("faults").and_then(Value::as_object).into_iter().flatten();
    let faults: u64 = faults.filter_map(|(_, faults)| faults.as_u64()).sum();
    let name = one.get("name").and_then(Value::as_str).unwrap_or_default();
    vec![
        name.to_owned(),
        number("calls").to_string(),
        faults.to_string(),
        seconds("cpu_seconds"),
        seconds("waited_seconds"),
        size(number("memory_peak_bytes")),
        number("host_calls").to_string(),
        size(number("bytes_in")),
        size(number("bytes_out")),
        number("log_dropped").to_string(),
        notes(one),
    ]
}

/// What is out of the ordinary.
fn notes(one: &Value) -> String {
    let trips = one.pointer("/account/limit_trips").and_then(Value::as_object);
    let trips = trips.into_iter().flatten().map(|(limit, trips)| format!("limits.{limit}={trips}"));
    let slowed = one.get("slowed").and_then(Value::as_bool).unwrap_or_default();
    let problem = one.get("problem").and_then(Value::as_str).map(|_| "file refused".to_owned());
    let problems = one.get("problems").and_then(Value::as_u64).filter(|problems| *problems > 0);
    let problems = problems.map(|problems| format!("files refused={problems}"));
    let slowed = slowed.then(|| "slowed".to_owned());
    let all: Vec<String> = trips.chain(slowed).chain(problem).chain(problems).collect();
    all.join(" ")
}

fn size(bytes: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{}.{}{name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes}B"),
    }
}

/// The names to the left, the figures to the right, the notes as they are.
fn table(rows: Vec<Vec<String>>) -> Vec<String> {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..=COLUMNS.len()).filter_map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
            if at == 0 || at == COLUMNS.len() {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_shows_an_account_and_what_is_out_of_the_ordinary() {
        let one = json!({
            "name": "acme", "slowed": true, "problems": 1,
            "account": {
                "calls": 12, "faults": { "memory": 2, "trap": 1 }, "limit_trips": { "memory": 2 },
                "cpu_seconds": 1.5, "memory_peak_bytes": 1_572_864, "bytes_in": 100,
            },
        });
        let head = std::iter::once("TENANT").chain(COLUMNS).map(str::to_owned).collect();
        let lines = table(vec![head, row(&one)]);
        assert_eq!(
            lines[0],
            "TENANT  CALLS  FAULTS  CPU s  WAITED s  MEMORY  HOST CALLS  BYTES IN  BYTES OUT  LOG LOST  NOTES"
        );
        assert_eq!(
            lines[1],
            "acme       12       3  1.500     0.000  1.5MiB           0      100B         0B         0  limits.memory=2 slowed files refused=1"
        );
    }
}
