//! A running host.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, kill_process, kill_process_group};
use serde_json::Value;

use crate::admin::{Metrics, get};
use crate::log::Log;
use crate::wait::{LONG, poll};

pub use rustix::process::Signal;

/// Becomes the host, beside a watchdog that kills it when our end of its standard input is closed: when the test
/// process has ended, however it ended.
const GUARDED: &str = r#"exec 3<&0; (read -r _ <&3; kill -9 $$) & exec "$@" </dev/null 3<&-"#;
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How much of a log is shown with a failure, in bytes.
const TAIL: usize = 6_000;

/// A process of the host; killed when dropped.
#[derive(Debug)]
pub struct Host {
    child: Child,
    /// What the signals go to: the process itself, or the one within a namespace that it made.
    target: Option<Pid>,
    /// What it logs.
    pub log: Log,
    base: String,
}

impl Host {
    /// Starts `command`, which runs a host that logs there and answers there.
    pub(crate) fn start(command: &Command, log: Log, base: String) -> Self {
        let file = File::create(log.path()).expect("a log");
        let mut guarded = Command::new("sh");
        guarded.args([OsStr::new("-c"), OsStr::new(GUARDED), OsStr::new("sh")]);
        guarded.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => guarded.env(name, value),
                None => guarded.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            guarded.current_dir(folder);
        }
        let child = guarded
            .stdin(Stdio::piped())
            .stdout(file.try_clone().expect("a log"))
            .stderr(file)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} can't be started: {error}"));
        Self { child, target: None, log, base }
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        let own = Pid::from_child(&self.child);
        u32::try_from(self.target.unwrap_or(own).as_raw_nonzero().get()).expect("a process id")
    }

    /// From now on, signals go to the only child of the process: what is process 1 in its namespace.
    ///
    /// # Panics
    /// When there is no child in time.
    pub fn aim_at_child(&mut self) {
        let id = self.child.id();
        let path = format!("/proc/{id}/task/{id}/children");
        let own = std::process::id();
        let child = self.until_some(LONG, "a child", || {
            let text = std::fs::read_to_string(&path).ok()?;
            // The watchdog is a child too, of the shell that it was before.
            let ids = text.split_whitespace().filter_map(|id| id.parse::<i32>().ok());
            ids.filter(|id| *id != own as i32).find(|id| is_first(*id))
        });
        self.target = Pid::from_raw(child);
    }

    /// Sends a signal to the host.
    pub fn signal(&self, signal: Signal) {
        let target = self.target.unwrap_or(Pid::from_child(&self.child));
        kill_process(target, signal).expect("the host runs");
    }

    /// Ends it without warning, and returns when it is gone.
    pub fn kill(mut self) -> Log {
        self.end();
        self.log.clone()
    }

    fn end(&mut self) {
        // Both fail only when there is nothing left to kill.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }

    /// Waits for its end, and gives its exit code; a signal's number beyond 128, as a shell has it.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn wait_exit(&mut self, limit: Duration) -> i32 {
        let status = poll(limit, LOOK_EVERY, || self.child.try_wait().expect("a child"));
        let Some(status) = status else { self.fail(limit, "the end of the host") };
        status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
    }

    /// SIGTERM, and the exit code.
    ///
    /// # Panics
    /// When it does not end within a minute.
    pub fn stop(mut self) -> i32 {
        self.signal(Signal::TERM);
        self.wait_exit(Duration::from_secs(60))
    }

    /// Whether it has not ended.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The status of `/readyz`; 0 where nobody answers.
    #[must_use]
    pub fn readiness(&self) -> u16 {
        get(&format!("{}/readyz", self.base)).map_or(0, |answer| answer.status)
    }

    /// Waits until it is ready.
    ///
    /// # Panics
    /// When it is not in time, or ends before.
    pub fn wait_ready(&mut self) {
        // Components that were not compiled before are, at the lowest priority of a busy machine.
        let limit = Duration::from_secs(180);
        let ready = poll(limit, LOOK_EVERY, || {
            if !self.runs() {
                return Some(false);
            }
            (self.readiness() == 200).then_some(true)
        });
        assert_eq!(ready, Some(true), "the host did not come up; its log ends:\n{}", self.tail());
    }

    /// What `/status` says; `Null` where nobody answers.
    #[must_use]
    pub fn status(&self) -> Value {
        get(&format!("{}/status", self.base)).map(|answer| answer.json()).unwrap_or_default()
    }

    /// One of the subscriptions or handlers in the status.
    #[must_use]
    pub fn status_of(&self, list: &str, name: &str) -> Value {
        let status = self.status();
        let mut list = status[list].as_array().into_iter().flatten();
        list.find(|one| one["name"] == name).cloned().unwrap_or_default()
    }

    /// What `/metrics` says; empty where nobody answers.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        Metrics(get(&format!("{}/metrics", self.base)).map(|a| a.text).unwrap_or_default())
    }

    /// Waits until it is so.
    ///
    /// # Panics
    /// When it is not in time; the end of the log is shown.
    pub fn until(&self, limit: Duration, what: &str, mut so: impl FnMut() -> bool) {
        self.until_some(limit, what, || so().then_some(()));
    }

    /// Waits until there is one.
    ///
    /// # Panics
    /// When there is none in time; the end of the log is shown.
    pub fn until_some<T>(&self, limit: Duration, what: &str, look: impl FnMut() -> Option<T>) -> T {
        poll(limit, LOOK_EVERY, look).unwrap_or_else(|| self.fail(limit, what))
    }

    fn fail(&self, limit: Duration, what: &str) -> ! {
        panic!(
            "not within {} s: {what}\nstatus: {}\nthe log ends:\n{}",
            limit.as_secs_f64(),
            self.status(),
            self.tail()
        )
    }

    fn tail(&self) -> String {
        let text = self.log.text();
        let from = text.len().saturating_sub(TAIL);
        let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text[from..].to_owned()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether it is process 1 in a namespace of its own.
fn is_first(id: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    inner.is_some_and(|ids| {
        ids.split_whitespace().count() > 1 && ids.split_whitespace().last() == Some("1")
    })
}

/// The memory that a process has in use, in bytes.
///
/// # Panics
/// When there is no such process.
#[must_use]
pub fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.expect("its memory") << 10
}
