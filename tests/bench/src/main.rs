//! The benchmarks: what the product costs beside the least that the same work can cost, in one run.
//!
//! Run it by `cargo xtask bench [NAME]`; `docs/benchmarks.md` says what is measured and what came out.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool that talks to a person")]

mod compile;
mod cores;
mod counted;
mod fairness;
mod guests;
mod io;
mod machine;
mod many;
mod measure;
mod message;
mod native;
mod options;
mod pubsub;
mod pump;
mod pumping;
mod report;
mod rocketmq;
mod sandbox;
mod sqs;
mod turns;

use std::process::ExitCode;

use anyhow::Result;
use pumphouse_telemetry::{LogFormat, LogSettings, init_logs};

use crate::machine::Machine;
use crate::options::{Group, Options};
use crate::report::{Line, Report};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == compile::WORKER) {
        return pumphouse_sandbox::compile_worker(arguments);
    }
    if let Some(part) = many::part(&std::env::args().skip(1).collect::<Vec<_>>()) {
        return ended(part);
    }
    let Some(options) = Options::parse(std::env::args().skip(1)) else {
        eprint!("{}", options::USAGE);
        return ExitCode::from(64);
    };
    match run(&options) {
        Ok(report) if options.strict && report.missed() => ExitCode::FAILURE,
        run => ended(run.map(drop)),
    }
}

fn ended(run: Result<()>) -> ExitCode {
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Measures under the logs that a host has: a span for each message is a part of what it costs.
fn run(options: &Options) -> Result<Report> {
    init_logs(&LogSettings { format: LogFormat::Json, ..LogSettings::default() })?;
    let mut report = Report::new(Machine::now());
    if !options.json {
        println!("{}\n{}", report.machine(), Line::heading());
    }
    for group in options.groups() {
        for line in measure(group, options)? {
            if !options.json {
                println!("{line}");
            }
            report.add(line);
        }
    }
    report.end();
    if options.json {
        println!("{:#}", report.json());
    } else {
        println!("{}", report.summary());
    }
    Ok(report)
}

fn measure(group: Group, options: &Options) -> Result<Vec<Line>> {
    match group {
        Group::Sandbox => sandbox::run(options),
        Group::Fairness => fairness::run(options),
        Group::Compile => compile::run(options),
        Group::Many => many::run(options),
        Group::Pump => pump::run(options),
        Group::Sqs => sqs::run(options),
        Group::Pubsub => pubsub::run(options),
        Group::Rocketmq => rocketmq::run(options),
    }
}
