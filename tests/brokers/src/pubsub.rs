use std::ffi::OsString;
use std::path::PathBuf;

use crate::process::Launch;
use crate::server::{Probe, Server};
use crate::{Error, install, sdk};

const NAME: &str = "pubsub";

/// As little as it needs, and the quick compiler alone: a test's server lives for seconds.
const JVM: [&str; 4] = ["-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];

/// A running emulator of Google Pub/Sub, in memory, killed when dropped.
///
/// One port serves gRPC and the REST interface. It takes every project name, and no credentials.
#[derive(Debug)]
pub struct PubsubEmulator {
    server: Server,
}

impl PubsubEmulator {
    /// Finds it, starts it, and returns when it answers.
    ///
    /// It is the script that the environment variable `PUMPHOUSE_PUBSUB_EMULATOR` names, else
    /// the one in an SDK in a usual place or beside the `gcloud` on the search path.
    ///
    /// # Errors
    /// When the emulator or Java is missing, or it does not come up; the error says what brings
    /// it, or shows the end of its output.
    pub async fn start() -> Result<Self, Error> {
        Self::with(&JVM).await
    }

    /// Like [`PubsubEmulator::start`], with the memory and the compiler that Google's own script leaves to it: with
    /// little of both it mostly collects garbage, and the more so the more messages are out at once.
    ///
    /// # Errors
    /// As [`PubsubEmulator::start`].
    pub async fn start_as_shipped() -> Result<Self, Error> {
        Self::with(&[]).await
    }

    async fn with(jvm: &'static [&'static str]) -> Result<Self, Error> {
        let script = sdk::pubsub_script()?;
        let java = install::java(NAME)?;
        let mut server = Server::prepare(NAME, Probe::Root, |folder, port| {
            Ok(launch(script, java, jvm, folder, port))
        })?;
        server.start().await?;
        Ok(Self { server })
    }

    /// `http://127.0.0.1:PORT`, the same over restarts.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.server.endpoint()
    }

    /// `127.0.0.1:PORT`, as `PUBSUB_EMULATOR_HOST` takes it.
    #[must_use]
    pub fn host(&self) -> String {
        self.server.host()
    }

    /// The process id while it runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.server.id()
    }

    /// Kills it with SIGKILL and returns when it is gone. Topics, subscriptions and messages are
    /// lost.
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

/// Java itself where its program is found, else the script, which becomes Java.
fn launch(script: PathBuf, java: PathBuf, jvm: &[&str], folder: PathBuf, port: u16) -> Launch {
    let log = folder.join("output.log");
    let address = ["--host=127.0.0.1".into(), format!("--port={port}").into()];
    let Some(jar) = sdk::pubsub_jar(&script) else {
        return Launch { server: NAME, program: script, arguments: address.into(), folder, log };
    };
    let mut arguments: Vec<OsString> = jvm.iter().map(Into::into).collect();
    arguments.extend(["-jar".into(), jar.into()]);
    arguments.extend(address);
    Launch { server: NAME, program: java, arguments, folder, log }
}
