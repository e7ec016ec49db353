//! One server process that never outlives the test process.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::time::{Instant, sleep};

use crate::Error;

/// Becomes the server, beside a watchdog that waits for the end of our standard input and then
/// kills. The end comes with our process, however that ends. A signal tied to the parent would
/// come when the thread that started the server ends, which for a test is too early.
const GUARDED: &str = r#"exec 3<&0; (read -r _ <&3; kill -9 $$) & exec "$@" </dev/null 3<&-"#;

const END_POLL: Duration = Duration::from_millis(50);

/// How much of a server's output an error shows, in bytes.
const LOG_TAIL: usize = 2_000;

/// How a server is started, kept so that it can be started again.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) server: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) folder: PathBuf,
    pub(crate) log: PathBuf,
}

/// A running server; killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

impl Process {
    pub(crate) fn spawn(launch: &Launch) -> Result<Self, Error> {
        let log = File::options().create(true).append(true).open(&launch.log);
        let log = log.map_err(Error::path("opening", &launch.log))?;
        let errors = log.try_clone().map_err(Error::path("opening", &launch.log))?;
        let child = Command::new("sh")
            .args([OsStr::new("-c"), OsStr::new(GUARDED), OsStr::new("sh")])
            .arg(&launch.program)
            .args(&launch.arguments)
            .current_dir(&launch.folder)
            .stdin(Stdio::piped())
            .stdout(log)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(Error::path("starting", &launch.program))?;
        Ok(Self { child })
    }

    /// The process id of the server itself.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks the server to end, and returns when it did or the time is over.
    pub(crate) async fn terminate(&mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        // Fails only when it has ended.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        while !self.has_ended() && Instant::now() < deadline {
            sleep(END_POLL).await;
        }
    }

    /// Kills without warning, and returns when the process is gone with its ports and locks.
    pub(crate) fn kill(&mut self) {
        // Both fail only when there is nothing left to kill.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The end of a server's output, for errors.
pub(crate) fn log_tail(path: &Path) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let tail = text.get(text.len().saturating_sub(LOG_TAIL)..).unwrap_or(&text);
    String::from_utf8_lossy(tail).into_owned()
}
