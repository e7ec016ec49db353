//! Commands that end by themselves.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::wait::poll;

/// What a command of the binary may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command that has ended.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Ran {
    /// Itself, where it ended with 0.
    ///
    /// # Panics
    /// When it did not.
    #[must_use]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:#?}");
        self
    }
}

/// Runs a command to its end, for at most a minute.
///
/// # Panics
/// When it can't be started, or does not end in time.
#[must_use]
pub fn run(command: &mut Command, input: &str) -> Ran {
    run_within(PATIENCE, command, input)
}

/// Runs a command to its end.
///
/// # Panics
/// When it can't be started, or does not end in time.
#[must_use]
pub fn run_within(limit: Duration, command: &mut Command, input: &str) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} can't be started: {error}"));
    let stdout = reading(child.stdout.take().expect("a pipe"));
    let stderr = reading(child.stderr.take().expect("a pipe"));
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_owned();
    // A command that does not read its input ends without it.
    let writing = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let code = ended(&mut child, limit);
    writing.join().expect("the input is written");
    let ran = Ran {
        code: code.unwrap_or(-1),
        stdout: stdout.join().expect("the output is read"),
        stderr: stderr.join().expect("the output is read"),
    };
    assert!(code.is_some(), "{command:?} did not end within {} s: {ran:#?}", limit.as_secs());
    ran
}

/// The exit code; a signal's number beyond 128, as a shell has it. None, and killed, where it did not end in time.
fn ended(child: &mut Child, limit: Duration) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;
    let every = Duration::from_millis(10);
    let status = poll(limit, every, || child.try_wait().expect("a child"));
    if status.is_none() {
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
        let _ = child.wait();
    }
    status.map(|status| status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1))
}

fn reading(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
