//! The short run: every target over its corpus, then over mutations of it from known seeds.
//!
//! | variable | |
//! |---|---|
//! | `PUMPHOUSE_FUZZ_SECONDS` | how long each target's mutations go on; 3 by default |
//!
//! An input that fails is left in `target/tmp/fuzz/TARGET`; put it into `fuzz/corpus/TARGET` to have it tried for ever.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says how far it came"
)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pumphouse_fuzzing::mutation::{Roll, mutated};
use pumphouse_fuzzing::{TARGETS, Target};

fn run(name: &str) {
    let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
        eprintln!("{name} is not in this build");
        return;
    };
    let corpus = corpus(target);
    for input in &corpus {
        try_one(target, input);
    }
    let (began, limit) = (Instant::now(), seconds());
    let mut seeds = 0..;
    let tried = seeds.by_ref().take_while(|seed: &u64| {
        try_one(target, &mutated(&corpus, &mut Roll::new(*seed), target.longest));
        began.elapsed() < limit
    });
    eprintln!("{name}: {} inputs of the corpus, {} mutations", corpus.len(), tried.count());
}

fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target.name);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let corpus: Vec<_> = paths.iter().map(|path| std::fs::read(path).expect("an input")).collect();
    assert!(!corpus.is_empty(), "{} is empty", folder.display());
    corpus
}

fn seconds() -> Duration {
    let asked = std::env::var("PUMPHOUSE_FUZZ_SECONDS").ok();
    Duration::from_secs(asked.map_or(3, |text| text.parse().expect("a number of seconds")))
}

fn try_one(target: &Target, input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz").join(target.name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("failing");
        std::fs::write(&path, input).expect("room for it");
        eprintln!("the input that fails is in {}", path.display());
        resume_unwind(panic);
    }
}

macro_rules! targets {
    ($($name:ident)*) => { $( #[test] fn $name() { run(stringify!($name)); } )* };
}

targets! { config sqs pubsub rocketmq guest component artefact }
