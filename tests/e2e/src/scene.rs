//! A folder with a configuration, and what is done with it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use serde_json::Value;
use tempfile::TempDir;

use crate::build::{binary, guests, shared_folder};
use crate::cli::{Ran, run};
use crate::host::Host;
use crate::log::{Call, Line, Log};
use crate::port::Port;

/// Where a host runs: a folder with `pumphouse.toml`, the state directory `state`, and a port for its admin side.
#[derive(Debug)]
pub struct Scene {
    folder: TempDir,
    port: Port,
    host: String,
    environment: Vec<(String, String)>,
    logs: Mutex<Vec<Log>>,
}

impl Scene {
    /// With this configuration, which begins after the table `[host]`. `{guests}` stands for the folder of the built
    /// guests, `{here}` for the scene's own.
    ///
    /// # Panics
    /// When there is no room for it.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self::with_host("grace = \"10s\"", text)
    }

    /// As [`Scene::new`], with these lines in the table `[host]`.
    ///
    /// # Panics
    /// When there is no room for it.
    #[must_use]
    pub fn with_host(host: &str, text: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("pumphouse-e2e-").tempdir().expect("a folder");
        let scene = Self {
            folder,
            port: Port::reserve(),
            host: host.to_owned(),
            environment: Vec::new(),
            logs: Mutex::default(),
        };
        scene.keep_compiled();
        scene.configure(text);
        scene
    }

    /// Compiled guests are kept from one test to the next: compiling is not what is tested here.
    fn keep_compiled(&self) {
        let state = self.path("state");
        let compiled = shared_folder(binary()).join("compiled");
        for folder in [&state, &compiled] {
            fs::create_dir_all(folder).expect("a folder");
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).expect("ours alone");
        }
        symlink(compiled, state.join("cache")).expect("a link");
        // One key for all: what one test's host has sealed is good for the next one's.
        let key = state.join("cache.key");
        fs::write(&key, [7; 64]).expect("a key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("ours alone");
    }

    /// Writes the configuration, in one step.
    ///
    /// # Panics
    /// When it can't be written.
    pub fn configure(&self, text: &str) {
        let new = self.path("pumphouse.toml.new");
        fs::write(&new, self.text(text)).expect("a configuration");
        fs::rename(new, self.config()).expect("a configuration");
    }

    /// The whole text of a configuration.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let head = format!(
            "[host]\nstate = \"{{here}}/state\"\nadmin.listen = \"127.0.0.1:{}\"\npool_slots = 64\n{}\n\n",
            self.port.number, self.host
        );
        (head + text)
            .replace("{guests}", &guests().display().to_string())
            .replace("{here}", &self.folder.path().display().to_string())
    }

    /// Sets a variable for all that is run from now on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// A path in the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The configuration file.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.path("pumphouse.toml")
    }

    /// Where the host answers.
    #[must_use]
    pub fn admin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port.number)
    }

    /// The port of the admin side.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// A command of the binary, with nothing of the tests' own environment that could change what it does.
    #[must_use]
    pub fn pumphouse<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).current_dir(self.folder.path());
        self.clean(&mut command);
        command
    }

    fn clean(&self, command: &mut Command) {
        let clouds = ["AWS_", "PUBSUB_", "GOOGLE_", "CLOUDSDK_", "ROCKETMQ_"];
        let ours =
            |name: &str| name == "RUST_LOG" || clouds.iter().any(|prefix| name.starts_with(prefix));
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(ours) {
                command.env_remove(name);
            }
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
    }

    /// `pumphouse COMMAND CONFIG …`, to its end.
    ///
    /// # Panics
    /// When it does not end.
    #[must_use]
    pub fn command(&self, name: &str, rest: &[&str]) -> Ran {
        let config = self.config();
        let config = config.to_str().expect("a path in text");
        let mut command = self.pumphouse(&[&[name, config], rest].concat());
        run(&mut command, "")
    }

    /// Starts a host and waits until it is ready.
    ///
    /// # Panics
    /// When it does not come up.
    #[must_use]
    pub fn start(&self) -> Host {
        let mut host = self.spawn();
        host.wait_ready();
        host
    }

    /// Starts a host.
    #[must_use]
    pub fn spawn(&self) -> Host {
        self.spawn_through::<&str>(&[])
    }

    /// Starts a host through another program, as in `nsenter … pumphouse run …`.
    #[must_use]
    pub fn spawn_through<S: AsRef<std::ffi::OsStr>>(&self, program: &[S]) -> Host {
        let own = self.pumphouse(&["run".as_ref(), self.config().as_os_str()]);
        let Some((first, rest)) = program.split_first() else { return self.spawn_as(&own) };
        let mut command = Command::new(first);
        command.args(rest).arg(own.get_program()).args(own.get_args());
        command.current_dir(self.folder.path());
        self.clean(&mut command);
        self.spawn_as(&command)
    }

    /// Starts this command as a host of the scene.
    #[must_use]
    pub fn spawn_as(&self, command: &Command) -> Host {
        let mut logs = self.logs.lock().expect("the logs");
        let log = Log::at(self.path(&format!("host-{}.log", logs.len() + 1)));
        logs.push(log.clone());
        Host::start(command, log, self.admin())
    }

    /// The logs of all hosts so far, in the order of their starts.
    #[must_use]
    pub fn logs(&self) -> Vec<Log> {
        self.logs.lock().expect("the logs").clone()
    }

    /// All their lines.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        self.logs().iter().flat_map(Log::lines).collect()
    }

    /// All calls of the conformance guest.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.logs().iter().flat_map(Log::calls).collect()
    }

    /// The messages of which a guest of any of them logged exactly this text.
    #[must_use]
    pub fn guest_said(&self, text: &str) -> Vec<String> {
        self.logs().iter().flat_map(|log| log.guest_said(text)).collect()
    }

    /// Publishes one message; its id.
    ///
    /// # Panics
    /// When it is refused.
    pub fn publish(&self, subscription: &str, body: &Value) -> String {
        self.publish_keyed(subscription, &[], body)
    }

    /// Publishes one message with these arguments; its id.
    ///
    /// # Panics
    /// When it is refused.
    pub fn publish_keyed(&self, subscription: &str, arguments: &[&str], body: &Value) -> String {
        let mut ids = self.publish_all(subscription, arguments, std::slice::from_ref(body));
        ids.pop().expect("an id")
    }

    /// Publishes messages one after another; their ids.
    ///
    /// # Panics
    /// When one is refused.
    pub fn publish_all(&self, subscription: &str, rest: &[&str], bodies: &[Value]) -> Vec<String> {
        let ran = self.try_publish(subscription, rest, bodies).ok();
        let ids = published(&ran);
        assert_eq!(ids.len(), bodies.len(), "{ran:#?}");
        ids
    }

    /// As [`Scene::publish_all`], however it ends.
    pub fn try_publish(&self, subscription: &str, rest: &[&str], bodies: &[Value]) -> Ran {
        let config = self.config();
        let config = config.to_str().expect("a path in text");
        let first = ["publish", config, subscription, "--lines", "--json"];
        let lines: String = bodies.iter().map(|body| format!("{}\n", text_of(body))).collect();
        run(&mut self.pumphouse(&[&first, rest].concat()), &lines)
    }

    /// What waits in an embedded queue, at most 100 messages.
    ///
    /// # Panics
    /// When the host does not answer.
    #[must_use]
    pub fn peek(&self, queue: &str) -> Vec<Value> {
        let ran = self.command("peek", &[queue, "--max", "100", "--json"]).ok();
        let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        answer["messages"].as_array().expect("messages").clone()
    }

    /// Puts a guest's component into the folder under this name, in one step.
    ///
    /// # Panics
    /// When it can't.
    pub fn deploy(&self, name: &str, component: &Path) {
        let new = self.path(&format!("{name}.new"));
        fs::copy(component, &new).expect("a copy");
        fs::rename(new, self.path(name)).expect("a component in its place");
    }
}

/// The ids that `publish --json` printed.
#[must_use]
pub(crate) fn published(ran: &Ran) -> Vec<String> {
    let lines = ran.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter_map(|line| line["id"].as_str().map(str::to_owned)).collect()
}

/// Text as it is, anything else as JSON.
fn text_of(body: &Value) -> String {
    body.as_str().map_or_else(|| body.to_string(), str::to_owned)
}
