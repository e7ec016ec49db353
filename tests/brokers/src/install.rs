//! Fetches the servers, once, into a folder that all tests share.
//!
//! The folder is `test-servers` in the workspace's target folder, or the one that the
//! environment variable `PUMPHOUSE_TEST_CACHE` names. Versions are pinned by the files beside
//! this crate's `Cargo.toml`; when those change, the server is fetched anew.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use crate::{Error, cache};

/// A fetch that takes longer is given up.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Another process may be fetching the same server; a bit longer than its own bound.
const LOCK_TIMEOUT: Duration = Duration::from_secs(11 * 60);
const LOCK_POLL: Duration = Duration::from_millis(200);

/// How much of an installer's output an error shows, in bytes.
const OUTPUT_TAIL: usize = 2_000;

struct Recipe {
    server: &'static str,
    files: &'static [(&'static str, &'static str)],
    steps: &'static [Step],
}

struct Step {
    program: &'static str,
    package: &'static str,
    arguments: &'static [&'static str],
}

/// Fetches what a `pom.xml` names.
const MAVEN: Step = Step {
    program: "mvn",
    package: "maven",
    arguments: &[
        "-q",
        "-B",
        "dependency:copy-dependencies",
        "-DincludeScope=runtime",
        "-DoutputDirectory=lib",
    ],
};

/// Compiles the programs that go with RocketMQ.
const JAVAC: Step = Step {
    program: "javac",
    package: "openjdk-17-jdk-headless",
    arguments: &["-cp", "lib/*", "-d", "classes", "NoReplication.java", "Client.java"],
};

const FAUXQS: Recipe = Recipe {
    server: "fauxqs",
    files: &[
        ("package.json", include_str!("../fauxqs/package.json")),
        ("package-lock.json", include_str!("../fauxqs/package-lock.json")),
        ("start.mjs", include_str!("../fauxqs/start.mjs")),
    ],
    steps: &[Step {
        program: "npm",
        package: "npm (it comes with Node.js)",
        // Node itself is a package with a binary: no script has to run.
        arguments: &["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
    }],
};

const ELASTICMQ: Recipe = Recipe {
    server: "elasticmq",
    files: &[("pom.xml", include_str!("../elasticmq/pom.xml"))],
    steps: &[MAVEN],
};

const ROCKETMQ: Recipe = Recipe {
    server: "rocketmq",
    files: &[
        ("pom.xml", include_str!("../rocketmq/pom.xml")),
        ("Client.java", include_str!("../rocketmq/Client.java")),
        ("NoReplication.java", include_str!("../rocketmq/NoReplication.java")),
        (
            "classes/META-INF/service/org.apache.rocketmq.store.ha.HAService",
            include_str!("../rocketmq/ha-service"),
        ),
        ("classes/rmq.logback.xml", include_str!("../rocketmq/rmq.logback.xml")),
    ],
    steps: &[MAVEN, JAVAC],
};

/// Fetches fauxqs and Node unless they are there, and returns their folder.
///
/// # Errors
/// When npm is missing or fails, or the folder can't be written.
pub async fn fauxqs() -> Result<PathBuf, Error> {
    ensure(&FAUXQS).await
}

/// Fetches ElasticMQ unless it is there, and returns its folder.
///
/// # Errors
/// When Maven or Java is missing or Maven fails, or the folder can't be written.
pub async fn elasticmq() -> Result<PathBuf, Error> {
    java(ELASTICMQ.server)?;
    ensure(&ELASTICMQ).await
}

/// Fetches RocketMQ and its Java client unless they are there, and returns their folder.
///
/// # Errors
/// When Maven, Java or its compiler is missing or fails, or the folder can't be written.
pub async fn rocketmq() -> Result<PathBuf, Error> {
    // Before Maven: whoever has no Java at all installs this one, which brings the rest.
    find(JAVAC.program, ROCKETMQ.server, JAVAC.package)?;
    ensure(&ROCKETMQ).await
}

/// Where Java finds the programs of a folder with jars and classes.
pub(crate) fn class_path(folder: &Path) -> OsString {
    let mut path = folder.join("classes").into_os_string();
    path.push(":");
    path.push(folder.join("lib").join("*"));
    path
}

/// The Java that runs a server.
pub(crate) fn java(server: &'static str) -> Result<PathBuf, Error> {
    find("java", server, "openjdk-17-jre-headless")
}

/// Looks a program up on the search path.
pub(crate) fn find(
    program: &'static str,
    server: &'static str,
    package: &'static str,
) -> Result<PathBuf, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
        .ok_or(Error::MissingProgram { program, server, package })
}

async fn ensure(recipe: &Recipe) -> Result<PathBuf, Error> {
    let root = cache::root();
    let folder = root.join(recipe.server);
    if is_installed(recipe, &folder) {
        return Ok(folder);
    }
    let programs = recipe.steps.iter().map(|step| find(step.program, recipe.server, step.package));
    let programs: Vec<PathBuf> = programs.collect::<Result<_, _>>()?;
    std::fs::create_dir_all(&root).map_err(Error::path("creating", &root))?;
    let _lock = lock(&root.join(format!("{}.lock", recipe.server))).await?;
    if !is_installed(recipe, &folder) {
        fetch(recipe, &programs, &folder).await?;
    }
    Ok(folder)
}

/// What is written last, and only after all else succeeded.
fn stamp(recipe: &Recipe) -> String {
    recipe.files.iter().map(|(_, content)| *content).collect()
}

fn is_installed(recipe: &Recipe, folder: &Path) -> bool {
    std::fs::read_to_string(folder.join(".installed")).is_ok_and(|found| found == stamp(recipe))
}

async fn lock(path: &Path) -> Result<File, Error> {
    let file = File::create(path).map_err(Error::path("creating", path))?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(LOCK_POLL).await,
            Err(error) => return Err(Error::path("locking", path)(error.into())),
        }
    }
}

async fn fetch(recipe: &Recipe, programs: &[PathBuf], folder: &Path) -> Result<(), Error> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(Error::path("removing", folder))?;
    }
    std::fs::create_dir_all(folder).map_err(Error::path("creating", folder))?;
    for (name, content) in recipe.files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(Error::path("creating", parent))?;
        std::fs::write(&path, content).map_err(Error::path("writing", &path))?;
    }
    for (step, program) in recipe.steps.iter().zip(programs) {
        run(recipe.server, step, program, folder).await?;
    }
    let mark = folder.join(".installed");
    std::fs::write(&mark, stamp(recipe)).map_err(Error::path("writing", &mark))
}

async fn run(
    server: &'static str,
    step: &Step,
    program: &Path,
    folder: &Path,
) -> Result<(), Error> {
    let mut command = Command::new(program);
    command.args(step.arguments).current_dir(folder).kill_on_drop(true);
    let failed = |detail| Error::Install { server, detail };
    let output = timeout(FETCH_TIMEOUT, command.output())
        .await
        .map_err(|_| failed(format!("no end after {} s", FETCH_TIMEOUT.as_secs())))?
        .map_err(Error::path("running", program))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(format!("{}: {}", output.status, tail(&output.stdout, &output.stderr))))
}

fn tail(stdout: &[u8], stderr: &[u8]) -> String {
    let all = [stdout, stderr].concat();
    let end = all.get(all.len().saturating_sub(OUTPUT_TAIL)..).unwrap_or(&all);
    String::from_utf8_lossy(end).into_owned()
}
