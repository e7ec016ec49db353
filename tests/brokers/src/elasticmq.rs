use std::path::{Path, PathBuf};

use crate::process::Launch;
use crate::server::{Probe, Server};
use crate::{Error, install};

const NAME: &str = "elasticmq";
const CONFIGURATION: &str = include_str!("../elasticmq/server.conf");
const DURABLE: &str = include_str!("../elasticmq/durable.conf");

/// Little memory, and the quick compiler alone: a test's server lives for seconds.
const JVM: [&str; 4] = ["-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];

/// What becomes of messages when the server is killed.
#[derive(Debug, Clone)]
pub enum Storage {
    /// They are lost.
    Memory,
    /// They are in this folder, each on disk before its sending is confirmed.
    Durable(PathBuf),
}

/// A running ElasticMQ: SQS alone, killed when dropped.
///
/// Queue URLs are `http://127.0.0.1:PORT/000000000000/NAME`; the region in ARNs is `us-east-1`.
#[derive(Debug)]
pub struct ElasticMq {
    server: Server,
}

impl ElasticMq {
    /// Installs it if need be, starts it, and returns when it answers.
    ///
    /// # Errors
    /// When something to install or run it with is missing, or it does not come up; the error
    /// says which, and shows the end of the server's output.
    pub async fn start(storage: Storage) -> Result<Self, Error> {
        let jars = install::elasticmq().await?.join("lib").join("*");
        let java = install::java(NAME)?;
        let mut server = Server::prepare(NAME, Probe::ListQueues, |folder, port| {
            let configuration = folder.join("server.conf");
            write_configuration(&configuration, port, &storage)?;
            Ok(launch(java, &jars, &configuration, folder))
        })?;
        server.start().await?;
        Ok(Self { server })
    }

    /// `http://127.0.0.1:PORT`, the same over restarts.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.server.endpoint()
    }

    /// The process id while it runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.server.id()
    }

    /// Kills it with SIGKILL and returns when it is gone.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Starts it again on the same port with the same storage; kills it first if it still runs.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.server.start().await
    }
}

fn launch(java: PathBuf, jars: &Path, configuration: &Path, folder: PathBuf) -> Launch {
    let mut arguments: Vec<_> = JVM.iter().map(Into::into).collect();
    arguments.push(format!("-Dconfig.file={}", configuration.display()).into());
    arguments.push("-cp".into());
    arguments.push(jars.into());
    arguments.push("org.elasticmq.server.Main".into());
    Launch { server: NAME, program: java, arguments, log: folder.join("output.log"), folder }
}

fn write_configuration(path: &Path, port: u16, storage: &Storage) -> Result<(), Error> {
    let mut text = CONFIGURATION.replace("@PORT@", &port.to_string());
    if let Storage::Durable(folder) = storage {
        let folder = std::path::absolute(folder).map_err(Error::path("finding", folder))?;
        std::fs::create_dir_all(&folder).map_err(Error::path("creating", &folder))?;
        text += &DURABLE.replace("@DIR@", &folder.display().to_string());
    }
    std::fs::write(path, text).map_err(Error::path("writing", path))
}
