//! The compile worker of the tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    pumphouse_sandbox::compile_worker(std::env::args_os().skip(1))
}
