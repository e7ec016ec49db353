//! One of the processes: a name server or a broker.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::NAME;
use crate::Error;
use crate::port::Port;
use crate::process::{Launch, Process, log_tail};
use crate::remoting::{call, code};

/// A Java server on a busy machine takes some seconds; this is far beyond.
const START_TIMEOUT: Duration = Duration::from_secs(90);
const START_POLL: Duration = Duration::from_millis(50);
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Node {
    pub(super) launch: Launch,
    pub(super) port: Port,
    /// The name of a broker, also of a topic that it brings.
    pub(super) name: String,
    pub(super) process: Option<Process>,
}

impl Node {
    pub(super) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port.number)
    }

    pub(super) fn id(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    pub(super) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    pub(super) fn spawn(&mut self) -> Result<(), Error> {
        self.process = Some(Process::spawn(&self.launch)?);
        Ok(())
    }

    pub(super) fn kill(&mut self) {
        self.process = None;
    }

    /// Asks it to end, and kills it when it did not within the limit.
    pub(super) async fn stop(&mut self, limit: Duration) {
        if let Some(process) = &mut self.process {
            process.terminate(limit).await;
        }
        self.kill();
    }

    /// Any answer does: with authentication, it is a refusal.
    pub(super) async fn wait_for_answer(&mut self) -> Result<(), Error> {
        let host = self.host();
        let ask = async || call(&host, code::GET_BROKER_RUNTIME_INFO, &[], &[]).await.is_ok();
        self.wait(ask, "no answer").await
    }

    /// Waits until the name server leads to this broker.
    pub(super) async fn wait_for_route(&mut self, namesrv: &str) -> Result<(), Error> {
        let (name, host) = (self.name.clone(), format!("\"{}\"", self.host()));
        let ask = async || {
            let topic = [("topic", name.as_str())];
            let answer = call(namesrv, code::GET_ROUTEINFO_BY_TOPIC, &topic, &[]).await;
            answer.is_ok_and(|answer| {
                answer.body.windows(host.len()).any(|window| window == host.as_bytes())
            })
        };
        self.wait(ask, "no route to it").await
    }

    async fn wait(&mut self, ask: impl AsyncFn() -> bool, missing: &str) -> Result<(), Error> {
        let deadline = Instant::now() + START_TIMEOUT;
        while !matches!(timeout(PROBE_TIMEOUT, ask()).await, Ok(true)) {
            if self.process.as_mut().is_none_or(Process::has_ended) {
                return Err(self.failed("it ended"));
            }
            if Instant::now() > deadline {
                let seconds = START_TIMEOUT.as_secs();
                return Err(self.failed(&format!("{missing} in {seconds} s")));
            }
            sleep(START_POLL).await;
        }
        Ok(())
    }

    fn failed(&self, what: &str) -> Error {
        let (name, output) = (&self.name, log_tail(&self.launch.log));
        let detail = format!("{name}: {what}; its output ends with: {output}");
        Error::Start { server: NAME, detail }
    }
}
