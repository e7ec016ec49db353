//! `pumphouse`: the binary. It wires what the other crates offer, and gives each way to end its exit code.

mod args;
mod commands;
mod exit;
mod host;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Command};
use crate::exit::Exit;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    host::choose_crypto();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // What can't be printed can't be reported either.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    let done = match arguments.command {
        Command::Run(run) => commands::run(&run),
        Command::Check(check) => commands::check(&check),
        Command::Invoke(invoke) => commands::invoke(&invoke),
        Command::Publish(publish) => commands::publish(&publish),
        Command::Peek(peek) => commands::peek(&peek),
        Command::Status(status) => commands::status(&status),
        Command::Tenants(tenants) => commands::tenants(&tenants),
        Command::New(new) => commands::new(&new),
        Command::Wrap(wrap) => commands::wrap(&wrap),
        Command::Version(version) => commands::version(&version),
        Command::Completions(completions) => commands::completions(&completions),
        Command::CompileWorker(worker) => return pumphouse_sandbox::compile_worker(worker.orders),
    };
    match done {
        Ok(_) if !exit::all_said() => {
            exit::warn("error: standard output could not be written");
            Exit::Failed.into()
        }
        Ok(exit) => exit.into(),
        Err(error) => {
            exit::complain(&error);
            Exit::Failed.into()
        }
    }
}
