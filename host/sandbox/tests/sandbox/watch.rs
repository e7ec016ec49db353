//! Files that are replaced while their handler runs.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pumphouse_contract::Outcome;
use pumphouse_contract::ports::{Handler, Handlers};
use pumphouse_sandbox::{HandlerSpec, LoadedHandler, Sandbox, SandboxSettings};
use tempfile::TempDir;

use crate::common::{self, call, description, eventually, handler_with, invocation};

/// A component that rejects each message with its version as the description.
pub(crate) fn version(number: u32) -> Vec<u8> {
    let text = handler_with(&format!(
        r#"(core module $guest
          (memory (export "memory") 1)
          (data (i32.const 16) "\02\00\00\00\00\00\00\00" "\00\00\00\00" "\40\00\00\00" "\04\00\00\00")
          (data (i32.const 64) "{number:04}")
          (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
          (func (export "handle") (param i32) (result i32) (i32.const 16))
          (func (export "post") (param i32)))"#
    ));
    wat::parse_str(text).expect("a component in text")
}

/// A watched handler in a sandbox of its own, at version 1.
struct Scene {
    home: TempDir,
    sandbox: Sandbox,
    handler: Arc<LoadedHandler>,
}

impl Scene {
    async fn new(name: &str, prepare: impl FnOnce(&Path) -> PathBuf) -> Self {
        let home = tempfile::tempdir().unwrap();
        let component = prepare(home.path());
        let settings = SandboxSettings { pool_slots: 8, cache: None, ..common::settings() };
        let sandbox = Sandbox::new(settings).unwrap();
        let spec = HandlerSpec { watch: true, ..common::spec(name, &component) };
        let handler = sandbox.load(spec).await.unwrap();
        Self { home, sandbox, handler }
    }

    async fn plain(name: &str) -> Self {
        Self::new(name, |home| {
            let path = home.join("handler.wasm");
            fs::write(&path, version(1)).unwrap();
            path
        })
        .await
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn problem(&self) -> Option<String> {
        self.sandbox.list()[0].problem.clone()
    }

    async fn runs(&self, number: u32) -> bool {
        description(&call(&self.handler, "").await) == format!("{number:04}")
    }

    async fn becomes(&self, number: u32) {
        let digest = pumphouse_digest(&version(number));
        eventually(&format!("version {number}"), || self.sandbox.list()[0].digest == digest).await;
        assert!(self.runs(number).await);
    }

    /// Several scans go by.
    async fn rest(&self) {
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
}

pub(crate) fn pumphouse_digest(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// FR-25: the file is a link through a `..data` link, which is swapped to a new folder; the old one is removed.
#[tokio::test]
async fn fr_25_symlink_swaps_are_seen_ten_times_in_a_row() {
    let log = common::log();
    let scene = Scene::new("fr-25", |home| {
        fs::create_dir(home.join("..v1")).unwrap();
        fs::write(home.join("..v1/handler.wasm"), version(1)).unwrap();
        symlink("..v1", home.join("..data")).unwrap();
        symlink("..data/handler.wasm", home.join("handler.wasm")).unwrap();
        home.join("handler.wasm")
    })
    .await;
    for round in 2..12 {
        let folder = format!("..v{round}");
        fs::create_dir(scene.path(&folder)).unwrap();
        fs::write(scene.path(&folder).join("handler.wasm"), version(round)).unwrap();
        symlink(&folder, scene.path("..data_tmp")).unwrap();
        fs::rename(scene.path("..data_tmp"), scene.path("..data")).unwrap();
        fs::remove_dir_all(scene.path(&format!("..v{}", round - 1))).unwrap();
        scene.becomes(round).await;
    }
    let swaps = log.lines_with("handler swapped");
    assert_eq!(swaps.iter().filter(|line| line.contains("test/fr-25")).count(), 10);
}

/// FR-26: four ways to save a file, each twice in a row.
#[tokio::test]
async fn fr_26_every_way_to_save_is_seen_twice() {
    let scene = Scene::plain("fr-26").await;
    let path = scene.path("handler.wasm");
    let mut number = 1;
    for _ in 0..2 {
        number += 1;
        fs::write(scene.path("new"), version(number)).unwrap();
        fs::rename(scene.path("new"), &path).unwrap();
        scene.becomes(number).await;

        number += 1;
        fs::rename(&path, scene.path("old")).unwrap();
        fs::write(&path, version(number)).unwrap();
        scene.becomes(number).await;

        number += 1;
        fs::write(&path, version(number)).unwrap();
        scene.becomes(number).await;

        number += 1;
        fs::remove_file(&path).unwrap();
        scene.rest().await;
        assert!(scene.runs(number - 1).await, "in the gap the old one serves");
        assert!(scene.problem().unwrap().contains("can't be read"));
        fs::write(&path, version(number)).unwrap();
        scene.becomes(number).await;
        assert_eq!(scene.problem(), None);
    }
}

/// FR-27 a: while messages flow, every call begun after the switch is the new version, and none fails.
#[tokio::test(flavor = "multi_thread")]
async fn fr_27_a_swap_under_load_mixes_and_fails_nothing() {
    let scene = Scene::plain("fr-27-a").await;
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let handler = scene.handler.clone();
        workers.spawn(async move {
            let mut seen = Vec::new();
            while seen.last().is_none_or(|last| last != "0002") || seen.len() < 200 {
                let begun = handler.begin();
                let digest = begun.digest().to_owned();
                let ended = begun.call(invocation("m", "")).await;
                assert!(matches!(ended.result, Ok(Outcome::Reject(_))), "{ended:?}");
                seen.push(description(&ended).to_owned());
                let number = if seen.last().unwrap() == "0001" { 1 } else { 2 };
                assert_eq!(
                    digest,
                    pumphouse_digest(&version(number)),
                    "what is logged is what ran"
                );
            }
            seen
        });
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    fs::write(scene.path("new"), version(2)).unwrap();
    fs::rename(scene.path("new"), scene.path("handler.wasm")).unwrap();
    while let Some(seen) = workers.join_next().await {
        let seen = seen.unwrap();
        assert!(seen.is_sorted(), "v1…v1 v2…v2");
        assert_eq!(
            (seen.first().unwrap().as_str(), seen.last().unwrap().as_str()),
            ("0001", "0002")
        );
    }
}

/// FR-27 a: a call that runs at the switch ends in the version that it began with.
#[tokio::test(flavor = "multi_thread")]
async fn fr_27_a_running_call_ends_in_its_own_version() {
    let scene = Scene::new("fr-27-running", |home| {
        let path = home.join("handler.wasm");
        fs::copy(common::guest("conformance"), &path).unwrap();
        path
    })
    .await;
    let begun = scene.handler.begin();
    let body = r#"{"do":"sleep","ms":1500,"then":{"do":"reject","text":"the old one"}}"#;
    let running = tokio::spawn(async move { begun.call(invocation("m", body)).await });
    fs::write(scene.path("new"), version(2)).unwrap();
    fs::rename(scene.path("new"), scene.path("handler.wasm")).unwrap();
    scene.becomes(2).await;
    assert!(!running.is_finished());
    assert_eq!(description(&running.await.unwrap()), "the old one");
}

/// FR-27 b: a file that grows in 20 pieces is not taken before it is whole; at most one warning.
#[tokio::test]
async fn fr_27_b_a_half_written_file_is_not_taken() {
    let log = common::log();
    let scene = Scene::plain("fr-27-b").await;
    let bytes = version(2);
    let mut file = fs::File::create(scene.path("handler.wasm")).unwrap();
    for piece in bytes.chunks(bytes.len().div_ceil(20)) {
        file.write_all(piece).unwrap();
        // Every other pause is longer than two scans: what is there then is looked at, and refused.
        tokio::time::sleep(Duration::from_millis(75)).await;
        assert!(scene.runs(1).await || scene.sandbox.list()[0].digest == pumphouse_digest(&bytes));
    }
    scene.becomes(2).await;
    assert_eq!(scene.problem(), None);
    let refused = log.lines_with("new component refused");
    assert!(refused.iter().filter(|line| line.contains("test/fr-27-b")).count() <= 1);
}

/// A misfit keeps the old version, says why in one warning and in the status, and is forgotten with the next good one.
#[tokio::test]
async fn fr_28_a_misfit_keeps_the_old_version() {
    let log = common::log();
    let scene = Scene::plain("misfit").await;
    let misfit = wat::parse_str(common::text_of("misfits/version-2.wat")).unwrap();
    fs::write(scene.path("handler.wasm"), misfit).unwrap();
    eventually("a problem", || scene.problem().is_some()).await;
    assert!(scene.problem().unwrap().contains("incoming-handler@2.0.0"));
    assert!(scene.runs(1).await);
    scene.rest().await;
    let warnings = || {
        let refused = log.lines_with("new component refused");
        refused.iter().filter(|line| line.contains("test/misfit")).count()
    };
    assert_eq!(warnings(), 1);
    fs::write(scene.path("handler.wasm"), version(3)).unwrap();
    scene.becomes(3).await;
    assert_eq!(scene.problem(), None);
}

/// What is touched or saved with the same content is no new version.
#[tokio::test]
async fn the_same_content_is_no_swap() {
    let log = common::log();
    let scene = Scene::plain("same").await;
    fs::write(scene.path("handler.wasm"), b"broken").unwrap();
    eventually("a problem", || scene.problem().is_some()).await;
    fs::write(scene.path("handler.wasm"), version(1)).unwrap();
    eventually("no problem", || scene.problem().is_none()).await;
    let swaps = log.lines_with("handler swapped");
    assert!(!swaps.iter().any(|line| line.contains("test/same")));
}
