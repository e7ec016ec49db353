mod admin;
mod node;
mod setup;

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::java::{JavaClient, Login};
use crate::{Error, cache, install};
pub use admin::TopicKind;
use node::Node;
pub use setup::Setup;

const NAME: &str = "rocketmq";

/// A broker ends its threads one after the other, which takes it 12 to 18 s.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// A running RocketMQ: a name server and one or two brokers, killed when dropped.
///
/// Brokers are numbered from 0; broker N has the name `broker-N`, its cluster the name `test`.
#[derive(Debug)]
pub struct RocketMq {
    namesrv: Node,
    brokers: Vec<Node>,
    login: Option<Login>,
    // After the processes: they end before their files go.
    _folder: TempDir,
}

impl RocketMq {
    /// Installs it if need be, starts it, and returns when every broker answers and the name
    /// server gives a route to it.
    ///
    /// # Errors
    /// When something to install or run it with is missing, or it does not come up; the error
    /// says which, and shows the end of the server's output.
    pub async fn start(setup: Setup) -> Result<Self, Error> {
        let jars = install::rocketmq().await?;
        let folder = cache::roomy_directory(NAME)?;
        let mut servers = Self::prepare(&setup, &jars, folder)?;
        servers.namesrv.spawn()?;
        for broker in &mut servers.brokers {
            broker.spawn()?;
        }
        servers.namesrv.wait_for_answer().await?;
        servers.wait_for_routes().await?;
        Ok(servers)
    }

    fn prepare(setup: &Setup, jars: &Path, folder: TempDir) -> Result<Self, Error> {
        let java = install::java(NAME)?;
        let namesrv = setup.namesrv(&java, jars, folder.path())?;
        let address = namesrv.host();
        let brokers = setup.names().map(|name| {
            let folder = folder.path().join(&name);
            setup.broker(&java, jars, &folder, &name, &address)
        });
        let brokers = brokers.collect::<Result<_, _>>()?;
        Ok(Self { namesrv, brokers, login: setup.login.clone(), _folder: folder })
    }

    /// `127.0.0.1:PORT` of the name server, the same over restarts.
    #[must_use]
    pub fn namesrv(&self) -> String {
        self.namesrv.host()
    }

    /// `127.0.0.1:PORT` of every broker, the same over restarts.
    #[must_use]
    pub fn brokers(&self) -> Vec<String> {
        self.brokers.iter().map(Node::host).collect()
    }

    /// RocketMQ's own client of these servers, one that may do all.
    #[must_use]
    pub fn java_client(&self) -> JavaClient {
        let client = JavaClient::new(&self.namesrv());
        match &self.login {
            Some((access_key, secret_key)) => client.login(access_key, secret_key),
            None => client,
        }
    }

    /// The process ids of those that run: the name server's, then the brokers'.
    #[must_use]
    pub fn ids(&self) -> Vec<u32> {
        let nodes = std::iter::once(&self.namesrv).chain(&self.brokers);
        nodes.filter_map(Node::id).collect()
    }

    /// Kills a broker with SIGKILL and returns when it is gone. What it confirmed stays.
    pub fn kill_broker(&mut self, number: usize) {
        if let Some(broker) = self.brokers.get_mut(number) {
            broker.kill();
        }
    }

    /// Ends a broker with SIGTERM, which takes it 12 to 18 seconds, and returns when it is gone;
    /// after 60 seconds it is killed.
    ///
    /// # Errors
    /// When there is no such broker.
    pub async fn stop_broker(&mut self, number: usize) -> Result<(), Error> {
        self.broker(number)?.stop(STOP_TIMEOUT).await;
        Ok(())
    }

    /// Starts a broker again on the same port with the same messages, after a kill if it still
    /// runs. Returns when it answers and, if the name server runs, a route leads to it.
    ///
    /// # Errors
    /// When there is no such broker, or it does not come up.
    pub async fn restart_broker(&mut self, number: usize) -> Result<(), Error> {
        let namesrv = self.namesrv.is_running().then(|| self.namesrv.host());
        let broker = self.broker(number)?;
        broker.kill();
        broker.spawn()?;
        broker.wait_for_answer().await?;
        match namesrv {
            Some(namesrv) => broker.wait_for_route(&namesrv).await,
            None => Ok(()),
        }
    }

    /// Kills the name server with SIGKILL and returns when it is gone. It keeps nothing:
    /// brokers go on, and tell the next one of themselves.
    pub fn kill_namesrv(&mut self) {
        self.namesrv.kill();
    }

    /// Starts the name server again on the same port, after a kill if it still runs. Returns
    /// when the brokers that run told it of themselves, which takes up to ten seconds.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn restart_namesrv(&mut self) -> Result<(), Error> {
        self.namesrv.kill();
        self.namesrv.spawn()?;
        self.namesrv.wait_for_answer().await?;
        self.wait_for_routes().await
    }

    async fn wait_for_routes(&mut self) -> Result<(), Error> {
        let namesrv = self.namesrv.host();
        for broker in self.brokers.iter_mut().filter(|broker| broker.is_running()) {
            broker.wait_for_answer().await?;
            broker.wait_for_route(&namesrv).await?;
        }
        Ok(())
    }

    fn broker(&mut self, number: usize) -> Result<&mut Node, Error> {
        let count = self.brokers.len();
        let detail = format!("no broker {number}, there are {count} and the first is 0");
        self.brokers.get_mut(number).ok_or(Error::Start { server: NAME, detail })
    }
}
