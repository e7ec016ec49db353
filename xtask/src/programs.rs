//! The test programs, with the output of each shown when it has ended and what failed at the end.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::run::{self, cargo};

/// Side by side they are late for what they wait for: with two, the load of two cores was above 15.
const LANES: usize = 1;
/// What takes longest begins first, so that nothing long is left alone at the end.
const LONGEST: [&str; 6] = ["conformance", "rocketmq", "pubsub", "sqs", "hostile", "embedded"];

/// Tests these packages, given as cargo takes them, with something added to the environment.
pub(crate) fn test(packages: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let mut programs = build(packages)?;
    programs.sort_by_key(Program::rank);
    let many = programs.len();
    let queue = Mutex::new(VecDeque::from(programs));
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(program) = lock(&queue).pop_front() {
                    if let Err(error) = program.run(environment) {
                        lock(&failed).push(format!("{error:#}"));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !failed.is_empty() {
        bail!("{} of {many} test programs failed:\n  {}", failed.len(), failed.join("\n  "));
    }
    println!("\n{many} test programs passed");
    let arguments: Vec<&str> = ["test", "--doc"].into_iter().chain(packages.to_vec()).collect();
    run::run(&mut cargo(&arguments))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Builds the programs as `cargo test` does.
fn build(packages: &[&str]) -> Result<Vec<Program>> {
    let mut arguments = vec!["test", "--no-run", "--message-format=json-render-diagnostics"];
    arguments.extend(packages);
    let mut build = cargo(&arguments);
    println!("\n$ cargo {}", arguments.join(" "));
    let output = build.stderr(Stdio::inherit()).output().context("cargo could not be started")?;
    if !output.status.success() {
        bail!("the tests do not build: {}", output.status);
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    let messages = lines.lines().filter_map(|line| serde_json::from_str(line).ok());
    Ok(messages.filter_map(|message: Value| Program::of(&message)).collect())
}

/// A test program that was built.
struct Program {
    executable: PathBuf,
    /// The folder of its package.
    folder: PathBuf,
    package: String,
    version: String,
    target: String,
}

impl Program {
    fn of(message: &Value) -> Option<Self> {
        if !message.pointer("/profile/test")?.as_bool()? {
            return None;
        }
        // `path+file:///…/host/cli#pumphouse@0.1.0`; the name is left out where the folder has it.
        let (place, id) = message["package_id"].as_str()?.rsplit_once('#')?;
        let (package, version) = match id.split_once('@') {
            Some((package, version)) => (package, version),
            None => (place.rsplit('/').next()?, id),
        };
        Some(Self {
            executable: message["executable"].as_str()?.into(),
            folder: Path::new(message["manifest_path"].as_str()?).parent()?.to_owned(),
            package: package.to_owned(),
            version: version.to_owned(),
            target: message.pointer("/target/name")?.as_str()?.to_owned(),
        })
    }

    fn rank(&self) -> usize {
        LONGEST.iter().position(|name| self.target == *name).unwrap_or(LONGEST.len())
    }

    /// Runs it as cargo does, and shows what it printed when it has ended.
    fn run(&self, environment: &[(&str, &str)]) -> Result<()> {
        let name = format!("{}/{}", self.package, self.target);
        let began = Instant::now();
        let folder = run::target().join("tests");
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("{} can't be made", folder.display()))?;
        let log = folder.join(format!("{}.log", name.replace('/', "-")));
        let output = File::create(&log).with_context(|| format!("{}", log.display()))?;
        let status = Command::new(&self.executable)
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO_PKG_NAME", &self.package)
            .env("CARGO_PKG_VERSION", &self.version)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .status()
            .with_context(|| format!("{name} could not be started"))?;
        let text = std::fs::read(&log).unwrap_or_default();
        let seconds = began.elapsed().as_secs();
        println!("\n== {name}: {status} after {seconds} s\n{}", String::from_utf8_lossy(&text));
        if status.success() { Ok(()) } else { bail!("{name}: {status}; see {}", log.display()) }
    }
}
