//! `cargo xtask …`: everything that is done with this repository, by one command each.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool that talks to a person")]

mod bench;
mod guests;
mod languages;
mod lint;
mod long;
mod programs;
mod run;
mod test;
mod tour;

use std::process::ExitCode;

use anyhow::Result;

const USAGE: &str = "usage: cargo xtask COMMAND

  quickstart               build the host without the cloud SDKs and take a tour of it
  test [--only embedded]   run every test, with the servers that they need; `--only embedded` needs Rust alone
  lint                     formatting, lints, documentation
  guests [--all]           build the WebAssembly components; `--all` also those in other languages than Rust
  conformance              run the conformance suite and write docs/conformance.md
  bench [NAME]             run the benchmarks and print their ratios
  hostile                  measure the hostile guests and write docs/hostile.md
  soak [--minutes N]       hostile and honest tenants, swaps and kills, for minutes
  fuzz [TARGET] [--seconds N]
                           fuzz with coverage; needs a nightly toolchain and cargo-fuzz
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&arguments) {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
        None => {
            eprint!("{USAGE}");
            ExitCode::from(64)
        }
    }
}

fn dispatch(arguments: &[&str]) -> Option<Result<()>> {
    match arguments {
        ["quickstart"] => Some(tour::tour()),
        ["test"] => Some(test::everything()),
        ["test", "--only", "embedded"] | ["test", "--only=embedded"] => Some(test::embedded()),
        ["lint"] => Some(lint::lint()),
        ["guests"] => Some(guests::build()),
        ["guests", "--all"] => Some(guests::build_all()),
        ["conformance"] => Some(test::write_conformance()),
        ["bench", only @ ..] if only.len() < 2 => Some(bench::run(only.first().copied())),
        ["hostile"] => Some(long::hostile()),
        ["soak", rest @ ..] => Some(long::soak(rest)),
        ["fuzz", rest @ ..] => Some(long::fuzz(rest)),
        _ => None,
    }
}
