//! RocketMQ's own client, for what other programs send and receive.

mod message;

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::{Error, install};
pub use message::{JavaMessage, Received, Sent};

const JVM: [&str; 4] = ["-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];

/// What a run may take beyond what it is asked to wait; a busy machine starts Java slowly.
const RUN_TIMEOUT: Duration = Duration::from_secs(60);

/// How much of the program's words an error shows, in bytes.
const ERROR_TAIL: usize = 2_000;

/// A user and the key that requests are signed with.
pub(crate) type Login = (String, String);

/// RocketMQ's own Java client. Each call is a Java program that takes about a second to start,
/// so one call should do many messages.
#[derive(Debug, Clone)]
pub struct JavaClient {
    namesrv: String,
    login: Option<Login>,
}

impl JavaClient {
    /// A client of this name server, `HOST:PORT`, which may be a proxy's.
    #[must_use]
    pub fn new(namesrv: &str) -> Self {
        Self { namesrv: namesrv.to_owned(), login: None }
    }

    /// Signs its requests.
    #[must_use]
    pub fn login(mut self, access_key: &str, secret_key: &str) -> Self {
        self.login = Some((access_key.to_owned(), secret_key.to_owned()));
        self
    }

    /// Sends messages one after the other; each is confirmed when this returns. Those of a group
    /// go to one queue.
    ///
    /// # Errors
    /// When one is not confirmed: those before it may be sent.
    pub async fn send(&self, topic: &str, messages: &[JavaMessage]) -> Result<Vec<Sent>, Error> {
        let messages: Vec<Value> = messages.iter().map(JavaMessage::to_json).collect();
        let input = json!({ "do": "send", "topic": topic, "messages": messages });
        self.lines(input, RUN_TIMEOUT)
            .await?
            .iter()
            .map(|line| self.read(Sent::read(line)))
            .collect()
    }

    /// Receives for a group that is there, until it has this many or the time is over; they
    /// count as consumed. A second call goes on behind them. It is a push consumer, not POP: a
    /// group is read in one of the two ways.
    ///
    /// # Errors
    /// When the client can't start.
    pub async fn receive(
        &self,
        topic: &str,
        group: &str,
        count: u32,
        limit: Duration,
    ) -> Result<Vec<Received>, Error> {
        let milliseconds = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let input = json!({
            "do": "receive", "topic": topic, "group": group, "count": count, "limitMs": milliseconds,
        });
        let lines = self.lines(input, limit.saturating_add(RUN_TIMEOUT)).await?;
        lines.iter().map(|line| self.read(Received::read(line))).collect()
    }

    /// Does what prints nothing.
    pub(crate) async fn manage(&self, input: Value) -> Result<(), Error> {
        self.lines(input, RUN_TIMEOUT).await.map(|_| ())
    }

    async fn lines(&self, mut input: Value, limit: Duration) -> Result<Vec<Value>, Error> {
        if let Some(input) = input.as_object_mut() {
            input.insert("namesrv".to_owned(), json!(self.namesrv));
            if let Some((access_key, secret_key)) = &self.login {
                input.insert("accessKey".to_owned(), json!(access_key));
                input.insert("secretKey".to_owned(), json!(secret_key));
            }
        }
        let child = spawn().await?;
        let running = run(child, input.to_string());
        let output = timeout(limit, running)
            .await
            .map_err(|_| self.failed(format!("no end after {} s", limit.as_secs())))?
            .map_err(|error| self.failed(error.to_string()))?;
        if !output.status.success() {
            let end = output.stderr.len().saturating_sub(ERROR_TAIL);
            let words = output.stderr.get(end..).unwrap_or_default();
            return Err(self.failed(String::from_utf8_lossy(words).into_owned()));
        }
        let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| self.read(serde_json::from_slice(line).ok())).collect()
    }

    fn read<T>(&self, read: Option<T>) -> Result<T, Error> {
        read.ok_or_else(|| self.failed("a line of its output has another form".to_owned()))
    }

    fn failed(&self, detail: String) -> Error {
        Error::Call { endpoint: self.namesrv.clone(), detail: format!("java client: {detail}") }
    }
}

async fn spawn() -> Result<Child, Error> {
    let folder = install::rocketmq().await?;
    let java = install::java("rocketmq")?;
    Command::new(&java)
        .args(JVM)
        .arg("-cp")
        .arg(install::class_path(&folder))
        .arg("Client")
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(Error::path("starting", &java))
}

/// The program writes nothing before its input has ended.
async fn run(mut child: Child, input: String) -> std::io::Result<std::process::Output> {
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(input.as_bytes()).await?;
    }
    child.wait_with_output().await
}
