use std::ffi::OsString;
use std::path::Path;

use serde_json::json;

use super::NAME;
use super::node::Node;
use crate::java::Login;
use crate::port::Port;
use crate::process::Launch;
use crate::{Certificate, Error, install};

const NAMESRV: &str = include_str!("../../rocketmq/namesrv.conf");
const BROKER: &str = include_str!("../../rocketmq/broker.conf");
const LOGIN: &str = include_str!("../../rocketmq/login.conf");

/// The quick compiler alone: a test's server lives for seconds. Without TLS, for which a broker
/// makes keys for three seconds at its start.
const JVM: [&str; 3] =
    ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dtls.server.mode=disabled"];
const NAMESRV_MEMORY: [&str; 2] = ["-Xms32m", "-Xmx128m"];
const BROKER_MEMORY: [&str; 3] = ["-Xms64m", "-Xmx384m", "-XX:MaxDirectMemorySize=1g"];

/// What the broker's own script passes.
const BROKER_ACCESS: [&str; 5] = [
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
];

/// A broker also listens two below its port.
const SECOND_PORT_BELOW: u16 = 2;

/// How RocketMQ is started. By default: one broker, no authentication, and neither topics nor
/// groups that come by themselves.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    has_two: bool,
    makes_topics: bool,
    makes_groups: bool,
    pub(super) login: Option<Login>,
    settings: Vec<(String, String)>,
    properties: Vec<(String, String)>,
}

impl Setup {
    /// Two brokers instead of one, so that a topic can have queues on both.
    #[must_use]
    pub fn two_brokers(mut self) -> Self {
        self.has_two = true;
        self
    }

    /// A topic comes with the first message for it (`autoCreateTopicEnable`).
    #[must_use]
    pub fn auto_create_topics(mut self) -> Self {
        self.makes_topics = true;
        self
    }

    /// A group comes with its first reader (`autoCreateSubscriptionGroup`).
    #[must_use]
    pub fn auto_create_groups(mut self) -> Self {
        self.makes_groups = true;
        self
    }

    /// Brokers take requests alone that are signed with these (`authenticationEnabled`). The name
    /// server takes all.
    #[must_use]
    pub fn login(mut self, access_key: &str, secret_key: &str) -> Self {
        self.login = Some((access_key.to_owned(), secret_key.to_owned()));
        self
    }

    /// A line `name=value` of every broker's configuration, such as `reviveInterval`; it wins
    /// over those that are there.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A property `-Dname=value` of every process, such as `tls.server.mode`, which has to let the
    /// tests speak without TLS, too; it wins over those that are there.
    #[must_use]
    pub fn property(mut self, name: &str, value: &str) -> Self {
        self.properties.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Whoever speaks TLS must show this certificate, and is shown it. The tests themselves speak without.
    #[must_use]
    pub fn mutual_tls(self, certificate: &Certificate) -> Self {
        let Certificate { certificate, key } = certificate;
        self.property("tls.server.mode", "permissive")
            .property("tls.test.mode.enable", "false")
            .property("tls.server.certPath", certificate)
            .property("tls.server.keyPath", key)
            .property("tls.server.need.client.auth", "require")
            .property("tls.server.authClient", "true")
            .property("tls.server.trustCertPath", certificate)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        (0..=usize::from(self.has_two)).map(|number| format!("broker-{number}"))
    }

    pub(super) fn namesrv(&self, java: &Path, jars: &Path, folder: &Path) -> Result<Node, Error> {
        let port = Port::reserve()?;
        let file = folder.join("namesrv.conf");
        let text = NAMESRV.replace("@PORT@", &port.number.to_string());
        std::fs::write(&file, text).map_err(Error::path("writing", &file))?;
        let mut arguments: Vec<OsString> = NAMESRV_MEMORY.iter().map(Into::into).collect();
        arguments.extend(self.common(jars, folder));
        arguments.push("org.apache.rocketmq.namesrv.NamesrvStartup".into());
        arguments.extend(["-c".into(), file.into()]);
        Ok(node("namesrv", port, java, arguments, folder))
    }

    pub(super) fn broker(
        &self,
        java: &Path,
        jars: &Path,
        folder: &Path,
        name: &str,
        namesrv: &str,
    ) -> Result<Node, Error> {
        let port = Port::reserve_with(SECOND_PORT_BELOW)?;
        std::fs::create_dir_all(folder).map_err(Error::path("creating", folder))?;
        let file = folder.join("broker.conf");
        let text = self.configuration(port.number, folder, name, namesrv);
        std::fs::write(&file, text).map_err(Error::path("writing", &file))?;
        let mut arguments: Vec<OsString> = BROKER_MEMORY.iter().map(Into::into).collect();
        arguments.extend(BROKER_ACCESS.iter().map(Into::into));
        arguments.extend(self.common(jars, folder));
        arguments.push("org.apache.rocketmq.broker.BrokerStartup".into());
        arguments.extend(["-c".into(), file.into()]);
        Ok(node(name, port, java, arguments, folder))
    }

    fn configuration(&self, port: u16, folder: &Path, name: &str, namesrv: &str) -> String {
        let mut text = BROKER
            .replace("@NAME@", name)
            .replace("@PORT@", &port.to_string())
            .replace("@NAMESRV@", namesrv)
            .replace("@DIR@", &folder.display().to_string())
            .replace("@AUTO_TOPICS@", &self.makes_topics.to_string())
            .replace("@AUTO_GROUPS@", &self.makes_groups.to_string());
        if let Some((access_key, secret_key)) = &self.login {
            let user = json!({ "username": access_key, "password": secret_key }).to_string();
            let inner = json!({ "accessKey": access_key, "secretKey": secret_key }).to_string();
            text += &LOGIN.replace("@USER@", &user).replace("@INNER@", &inner);
        }
        for (name, value) in &self.settings {
            text += &format!("{name}={value}\n");
        }
        text
    }

    fn common(&self, jars: &Path, folder: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = JVM.iter().map(Into::into).collect();
        // Where they would write logs, and look for what an installation from an archive has.
        arguments.push(format!("-Duser.home={}", folder.display()).into());
        arguments.push(format!("-Drocketmq.home.dir={}", folder.display()).into());
        arguments
            .extend(self.properties.iter().map(|(name, value)| format!("-D{name}={value}").into()));
        arguments.extend(["-cp".into(), install::class_path(jars)]);
        arguments
    }
}

fn node(name: &str, port: Port, java: &Path, arguments: Vec<OsString>, folder: &Path) -> Node {
    let launch = Launch {
        server: NAME,
        program: java.to_path_buf(),
        arguments,
        folder: folder.to_path_buf(),
        log: folder.join("output.log"),
    };
    Node { launch, port, name: name.to_owned(), process: None }
}
