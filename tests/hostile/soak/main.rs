//! The soak: a host with hostile and honest tenants, swapped and killed for minutes, on the durable embedded broker.
//!
//! `soak [MINUTES]`. In the first quarter the host is killed again and again; from then on it stays, and what it holds is
//! compared between that quarter's end and the last minute. In the end no message may be lost: each was handled, or its
//! copy waits at its destination.
#![expect(clippy::print_stdout, reason = "a tool that talks to a person")]

mod books;
mod holdings;
mod plan;
mod script;

use std::process::ExitCode;
use std::time::Duration;

use crate::plan::Plan;
use crate::script::Soak;

fn main() -> ExitCode {
    let minutes = std::env::args().nth(1).map_or(Some(1.0), |text| text.parse::<f64>().ok());
    let Some(minutes) = minutes.filter(|minutes| (0.5..=10_000.0).contains(minutes)) else {
        println!("usage: soak [MINUTES], 0.5 or more");
        return ExitCode::from(64);
    };
    let summary = Soak::new(Plan::new(Duration::from_secs_f64(minutes * 60.0))).run();
    println!("{summary}");
    if summary.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
