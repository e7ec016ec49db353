//! The host's side of a compile worker: one process for one component.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::compiler::CompileError;
use crate::errors::CompilerEnd;
use crate::frame;
use crate::settings::CompileWorker;
use crate::worker::Orders;

/// An artefact is three times its component, or ten times a small one.
const ARTIFACT_LEAST: u64 = 64 * 1024 * 1024;
const ARTIFACT_PER_BYTE: u64 = 32;

/// What is read of what a worker says before it dies.
const LONGEST_COMPLAINT: u64 = 8 * 1024;
const LONGEST_TEXT: usize = 300;
/// How long a worker takes to end that has answered or died, and how long its last words take.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Compiles in a process of its own, which is gone when this returns.
///
/// It gives way to everything else where that is asked.
///
/// # Errors
/// The component is none, or was too much for the worker; or `stop` rang.
pub(crate) async fn compile(
    worker: &CompileWorker,
    component: &[u8],
    gives_way: bool,
    stop: &Notify,
) -> Result<Vec<u8>, CompileError> {
    let size = component.len() as u64;
    let orders = Orders {
        host: i32::try_from(std::process::id()).unwrap_or_default(),
        memory: worker.memory,
        seconds: worker.time.as_secs().max(1),
        component: size,
        gives_way,
    };
    let mut child = start(worker, orders).map_err(CompileError::NoWorker)?;
    let most = size.saturating_mul(ARTIFACT_PER_BYTE).max(ARTIFACT_LEAST);
    let answered = tokio::select! {
        answered = timeout(worker.patience, converse(&mut child, component, most)) => answered,
        () = stop.notified() => {
            kill(child).await;
            return Err(CompileError::Stopped);
        }
    };
    match answered {
        Ok(Ok(answer)) => {
            drop(end(child).await);
            answer.map_err(CompileError::Invalid)
        }
        Ok(Err(error)) => {
            let Death { status, complaint } = end(child).await;
            Err(CompileError::Ended(cause(&error, status, &complaint, worker)))
        }
        Err(_) => {
            kill(child).await;
            Err(CompileError::Ended(CompilerEnd::Slow { limit: worker.patience }))
        }
    }
}

fn start(worker: &CompileWorker, orders: Orders) -> io::Result<Child> {
    Command::new(&worker.program)
        .args(&worker.arguments)
        .args(orders.arguments())
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
}

/// An error of the answer, not of the question: a worker that refuses to read says why in its end.
async fn converse(
    child: &mut Child,
    component: &[u8],
    most: u64,
) -> io::Result<Result<Vec<u8>, String>> {
    let missing = || io::Error::other("it has no pipe");
    let to = child.stdin.take().ok_or_else(missing)?;
    let from = child.stdout.take().ok_or_else(missing)?;
    let asked = frame::write_component(to, component).await;
    let answered = frame::read_answer(from, most).await;
    asked.and(answered)
}

/// How a worker ended.
struct Death {
    status: Option<ExitStatus>,
    /// What it said on standard error.
    complaint: String,
}

/// Waits for the end of a worker that has said what it will say. One that goes on is killed.
async fn end(mut child: Child) -> Death {
    let stderr = child.stderr.take();
    let ended = async {
        match timeout(LAST_WORDS, child.wait()).await {
            Ok(status) => status.ok(),
            Err(_) => {
                let _ = child.kill().await;
                child.wait().await.ok()
            }
        }
    };
    let (status, complaint) = tokio::join!(ended, complaint(stderr));
    Death { status, complaint }
}

async fn kill(mut child: Child) {
    // It is dead already where that fails.
    let _ = child.kill().await;
}

async fn complaint(stderr: Option<ChildStderr>) -> String {
    let mut bytes = Vec::new();
    if let Some(stderr) = stderr {
        // What could not be read is not said.
        let mut last = stderr.take(LONGEST_COMPLAINT);
        let _ = timeout(LAST_WORDS, last.read_to_end(&mut bytes)).await;
    }
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

/// Why a worker gave no answer.
fn cause(
    error: &io::Error,
    status: Option<ExitStatus>,
    complaint: &str,
    worker: &CompileWorker,
) -> CompilerEnd {
    let signal = status.and_then(|status| status.signal());
    if signal == Some(Signal::XCPU.as_raw()) {
        return CompilerEnd::Time { limit: worker.time };
    }
    if complaint.contains("memory allocation of") || complaint.contains("os error 12") {
        return CompilerEnd::Memory { limit: worker.memory };
    }
    let last = complaint.lines().last().unwrap_or_default();
    let last = crate::text::escaped(last, LONGEST_TEXT);
    let text = match (signal, last.is_empty()) {
        (Some(signal), true) => format!("signal {signal}"),
        (Some(signal), false) => format!("signal {signal}: {last}"),
        (None, true) => error.to_string(),
        (None, false) => last,
    };
    CompilerEnd::Crashed { text }
}
