use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::Launch;
use crate::server::{Probe, Server};
use crate::{Error, install};

const NAME: &str = "fauxqs";
const NODE_PACKAGE: &str = "Node.js 22.5 or later";

/// A running fauxqs: SQS and SNS on one endpoint, in memory, killed when dropped.
///
/// Queue URLs are `http://127.0.0.1:PORT/000000000000/NAME`. The region of a queue or topic is
/// the one that the request was signed for, else `us-east-1`; signatures are not checked.
#[derive(Debug)]
pub struct Fauxqs {
    server: Server,
}

impl Fauxqs {
    /// Installs it if need be, starts it, and returns when it answers.
    ///
    /// # Errors
    /// When something to install it with is missing, or it does not come up; the error says
    /// which, and shows the end of the server's output.
    pub async fn start() -> Result<Self, Error> {
        let installed = install::fauxqs().await?;
        let node = node(&installed)?;
        let script = installed.join("start.mjs");
        let mut server = Server::prepare(NAME, Probe::ListQueues, |folder, port| {
            Ok(Launch {
                server: NAME,
                program: node,
                arguments: vec![script.into(), port.to_string().into()],
                log: folder.join("output.log"),
                folder,
            })
        })?;
        server.start().await?;
        Ok(Self { server })
    }

    /// `http://127.0.0.1:PORT`, for SQS and for SNS, the same over restarts.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.server.endpoint()
    }

    /// The process id while it runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.server.id()
    }

    /// Kills it with SIGKILL and returns when it is gone. All its queues and messages are lost.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Starts it again on the same port, empty; kills it first if it still runs.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.server.start().await
    }
}

/// The Node that was installed with it, or, where no package has one for this machine, ours.
fn node(installed: &Path) -> Result<PathBuf, Error> {
    let own = installed.join("node_modules/.bin/node");
    if own.exists() {
        return Ok(own);
    }
    let node = install::find("node", NAME, NODE_PACKAGE)?;
    if is_recent(&node) {
        return Ok(node);
    }
    Err(Error::MissingProgram { program: "a recent node", server: NAME, package: NODE_PACKAGE })
}

fn is_recent(node: &Path) -> bool {
    let output = Command::new(node).arg("--version").output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut parts = text.trim().trim_start_matches('v').split('.').map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (22, 5),
        _ => false,
    }
}
