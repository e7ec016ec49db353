//! The host of the tour, as a process, and what it is asked.

use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::run::{output, root, target};

/// The longest wait for anything that the tour expects.
const PATIENCE: Duration = Duration::from_secs(30);
const CONFIGURATION: &str = include_str!("tour.toml");

pub(crate) struct Host {
    folder: PathBuf,
    process: Option<Child>,
}

impl Host {
    /// Lays out the folder: the configuration, and the components that it names.
    pub(crate) fn prepare(folder: PathBuf, components: &[&str]) -> Result<Self> {
        let host = Self { folder, process: None };
        components.iter().try_for_each(|file| host.deploy(file, file))?;
        host.deploy("version_one.wasm", "greeter.wasm")?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let configuration = CONFIGURATION.replace("127.0.0.1:9180", &format!("127.0.0.1:{port}"));
        std::fs::write(host.configuration(), configuration)?;
        Ok(host)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn configuration(&self) -> PathBuf {
        self.folder.join("pumphouse.toml")
    }

    pub(crate) fn binary(&self) -> PathBuf {
        target().join("debug/pumphouse")
    }

    /// Puts a built component where the configuration looks for it, as a deployment would: by rename.
    pub(crate) fn deploy(&self, file: &str, name: &str) -> Result<()> {
        let built = root().join("guests/target/wasm32-wasip2/release").join(file);
        let (fresh, there) =
            (self.folder.join("handlers/.new"), self.folder.join("handlers").join(name));
        std::fs::copy(&built, &fresh)
            .with_context(|| format!("{} can't be copied", built.display()))?;
        std::fs::rename(fresh, there)?;
        Ok(())
    }

    /// Starts it and waits until it is ready.
    pub(crate) fn start(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let child = Command::new(self.binary())
            .arg("run")
            .arg(self.configuration())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("the host could not be started")?;
        self.process = Some(child);
        self.wait_for("the host to be ready", |host| {
            let status = host.status()?;
            let subscriptions = status["subscriptions"].as_array().cloned().unwrap_or_default();
            Ok(!subscriptions.is_empty()
                && subscriptions.iter().all(|one| one["condition"] == "running"))
        })
    }

    /// Ends it without a chance to say goodbye.
    pub(crate) fn kill(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    /// Asks it to drain, and waits for its end.
    pub(crate) fn stop(&mut self) -> Result<()> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        output(Command::new("kill").args(["-TERM", &process.id().to_string()]))?;
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = process.try_wait()? {
                if !status.success() {
                    bail!(
                        "the host did not drain cleanly: {status}; its log is {}",
                        self.log().display()
                    );
                }
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        process.kill()?;
        bail!("the host did not end within {PATIENCE:?}; its log is {}", self.log().display())
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("host.log")
    }

    /// A command of the binary about this host.
    fn command(&self, verb: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.binary());
        command.arg(verb).arg(self.configuration()).args(arguments);
        command
    }

    pub(crate) fn publish(&self, subscription: &str, body: &str) -> Result<()> {
        println!("     $ pumphouse publish pumphouse.toml {subscription} --body '{body}'");
        output(&mut self.command("publish", &[subscription, "--body", body])).map(drop)
    }

    /// Many messages, one a line.
    pub(crate) fn publish_lines(&self, subscription: &str, lines: &str) -> Result<()> {
        let mut child = self
            .command("publish", &[subscription, "--lines"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(lines.as_bytes())?;
        }
        if !child.wait()?.success() {
            bail!("publishing to {subscription} failed");
        }
        Ok(())
    }

    /// The messages of a queue.
    pub(crate) fn peek(&self, queue: &str) -> Result<Vec<Value>> {
        let answer = output(&mut self.command("peek", &[queue, "--max", "100", "--json"]))?;
        let answer: Value = serde_json::from_str(&answer)?;
        Ok(answer["messages"].as_array().cloned().unwrap_or_default())
    }

    pub(crate) fn status(&self) -> Result<Value> {
        Ok(serde_json::from_str(&output(&mut self.command("status", &["--json"]))?)?)
    }

    /// What the host logged so far under this constant message.
    pub(crate) fn logged(&self, message: &str) -> Result<Vec<Value>> {
        let text = std::fs::read_to_string(self.log())?;
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(lines.filter(|line| line["message"] == message).collect())
    }

    /// What a handler logged so far.
    pub(crate) fn said_by(&self, handler: &str) -> Result<Vec<String>> {
        let lines = self.logged("guest log")?.into_iter().filter(|line| line["handler"] == handler);
        Ok(lines.map(|line| line["text"].as_str().unwrap_or_default().to_owned()).collect())
    }

    /// Waits until something holds; an error counts as not yet.
    pub(crate) fn wait_for(
        &self,
        what: &str,
        mut holds: impl FnMut(&Self) -> Result<bool>,
    ) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        let mut last = None;
        while Instant::now() < end {
            match holds(self) {
                Ok(true) => return Ok(()),
                Ok(false) => last = None,
                Err(error) => last = Some(error),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let why = last.map(|error| format!(" ({error:#})")).unwrap_or_default();
        bail!("waited {PATIENCE:?} for {what}{why}; the host's log is {}", self.log().display())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // A tour that failed leaves no host behind; its log stays.
        let _ = self.kill();
    }
}
