//! What all servers have in common: a port, a folder, a process, and waiting until it answers.

use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

use crate::port::Port;
use crate::process::{Launch, Process, log_tail};
use crate::{Error, cache, raw};

/// A Java server on a busy machine takes some seconds; this is far beyond.
const START_TIMEOUT: Duration = Duration::from_secs(90);
const START_POLL: Duration = Duration::from_millis(30);
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The question that a server answers once it is up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Probe {
    ListQueues,
    Root,
}

#[derive(Debug)]
pub(crate) struct Server {
    launch: Launch,
    probe: Probe,
    port: Port,
    // Before the folder: the process ends before its files go.
    process: Option<Process>,
    _folder: TempDir,
}

impl Server {
    /// A server that is not started yet. `launch` gets the folder for its files and its port.
    pub(crate) fn prepare(
        name: &'static str,
        probe: Probe,
        launch: impl FnOnce(PathBuf, u16) -> Result<Launch, Error>,
    ) -> Result<Self, Error> {
        let port = Port::reserve()?;
        let folder = cache::run_directory(name)?;
        let launch = launch(folder.path().to_path_buf(), port.number)?;
        Ok(Self { launch, probe, port, process: None, _folder: folder })
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.host())
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port.number)
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it, after a kill if it still runs, and waits until it answers.
    pub(crate) async fn start(&mut self) -> Result<(), Error> {
        self.kill();
        let mut process = Process::spawn(&self.launch)?;
        self.wait(&mut process).await?;
        self.process = Some(process);
        Ok(())
    }

    async fn wait(&self, process: &mut Process) -> Result<(), Error> {
        let deadline = Instant::now() + START_TIMEOUT;
        while !self.answers().await {
            if process.has_ended() {
                return Err(self.failed("it ended"));
            }
            if Instant::now() > deadline {
                return Err(self.failed(&format!("no answer in {} s", START_TIMEOUT.as_secs())));
            }
            sleep(START_POLL).await;
        }
        Ok(())
    }

    async fn answers(&self) -> bool {
        matches!(timeout(PROBE_TIMEOUT, self.ask()).await, Ok(Ok(200)))
    }

    async fn ask(&self) -> Result<u16, Error> {
        let endpoint = self.endpoint();
        match self.probe {
            Probe::ListQueues => {
                let nothing = serde_json::json!({});
                Ok(raw::sqs(&endpoint, "ListQueues", &nothing).await?.status)
            }
            Probe::Root => raw::root(&endpoint).await,
        }
    }

    fn failed(&self, what: &str) -> Error {
        let detail = format!("{what}; its output ends with: {}", log_tail(&self.launch.log));
        Error::Start { server: self.launch.server, detail }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
