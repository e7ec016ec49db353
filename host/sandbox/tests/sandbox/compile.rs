//! The compile worker: what it makes, what it survives, and that nobody waits for another's component.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pumphouse_contract::Outcome;
use pumphouse_sandbox::{
    CompileWorker, CompilerEnd, Compiling, DeployError, Sandbox, SandboxSettings,
};
use tempfile::TempPath;

use crate::common::{self, call, component, eventually, file, guest, handler_with};

const MIB: u64 = 1024 * 1024;

fn worker() -> CompileWorker {
    CompileWorker {
        program: env!("CARGO_BIN_EXE_pumphouse-compile-worker").into(),
        arguments: Vec::new(),
        ..CompileWorker::this_program("")
    }
}

/// A worker that is a line of shell.
fn shell(line: &str) -> CompileWorker {
    CompileWorker {
        program: "/bin/sh".into(),
        arguments: ["-c", line, "worker"].map(Into::into).into(),
        ..worker()
    }
}

/// Without a cache: every component is compiled.
fn sandbox(worker: CompileWorker) -> Sandbox {
    let compiling = Compiling::Worker(worker);
    let settings = SandboxSettings { pool_slots: 8, cache: None, compiling, ..common::settings() };
    Sandbox::new(settings).unwrap()
}

fn ack() -> TempPath {
    component(&handler_with(&common::text_of("handlers/ack.wat")))
}

/// One function of so many additions: a compiler holds all of a function at once.
fn heavy(additions: usize) -> TempPath {
    let body = "(local.set 1 (i32.add (i32.mul (local.get 1) (local.get 0)) (i32.const 7)))";
    let fields = common::text_of("handlers/ack.wat");
    let (head, tail) = fields.split_once("(memory").expect("a memory in the guest");
    let function = format!(
        "(func (param i32) (result i32) (local i32) {} (local.get 1))",
        body.repeat(additions)
    );
    component(&handler_with(&format!("{head}{function} (memory{tail}")))
}

async fn end(sandbox: &Sandbox, path: &Path) -> CompilerEnd {
    match sandbox.load(common::spec("ended", path)).await {
        Err(DeployError::CompilerEnded { end, path: named }) => {
            assert_eq!(named, path);
            end
        }
        other => panic!("{other:?}"),
    }
}

/// What an engine without a pool compiled runs in the engine that has one.
#[tokio::test]
async fn what_the_worker_compiles_runs_in_the_pool() {
    let sandbox = sandbox(worker());
    let (bench, ack) = (guest("bench"), ack());
    for component in [&*bench, &*ack] {
        let handler = sandbox.load(common::spec("worker", component)).await.unwrap();
        assert_eq!(call(&handler, "").await.result, Ok(Outcome::Ack), "{}", component.display());
    }
}

#[tokio::test]
async fn the_worker_says_what_is_wrong_with_a_component() {
    let whole = fs::read(guest("bench")).unwrap();
    let cut = file(&whole[..whole.len() / 2]);
    let refused = sandbox(worker()).load(common::spec("cut", &cut)).await.unwrap_err();
    assert!(matches!(refused, DeployError::Compile { .. }), "{refused}");
}

/// A component that the compiler has no memory for costs its tenant a refused deploy, and the next one is compiled.
#[tokio::test]
async fn what_is_too_large_for_the_compilers_memory_is_refused() {
    let sandbox = sandbox(CompileWorker { memory: 128 * MIB, ..worker() });
    let heavy = heavy(50_000);
    assert_eq!(end(&sandbox, &heavy).await, CompilerEnd::Memory { limit: 128 * MIB });
    let next = ack();
    let handler = sandbox.load(common::spec("next", &next)).await.unwrap();
    assert_eq!(call(&handler, "").await.result, Ok(Outcome::Ack));
}

#[tokio::test]
async fn what_takes_the_compiler_too_long_is_refused() {
    let second = Duration::from_secs(1);
    let sandbox = sandbox(CompileWorker { time: second, ..worker() });
    let heavy = heavy(150_000);
    assert_eq!(end(&sandbox, &heavy).await, CompilerEnd::Time { limit: second });
    let next = ack();
    let handler = sandbox.load(common::spec("next", &next)).await.unwrap();
    assert_eq!(call(&handler, "").await.result, Ok(Outcome::Ack));
}

/// One that does not even compute is killed, and whoever else waits gets a turn.
#[tokio::test]
async fn a_worker_that_never_answers_is_killed() {
    let home = tempfile::tempdir().unwrap();
    let pid = home.path().join("pid");
    let limit = Duration::from_secs(1);
    let worker = shell(&format!("echo $$ > {}; exec sleep 600", pid.display()));
    let sandbox = sandbox(CompileWorker { patience: limit, ..worker });
    let component = ack();
    assert_eq!(end(&sandbox, &component).await, CompilerEnd::Slow { limit });
    let pid = fs::read_to_string(pid).unwrap();
    assert!(is_gone(pid.trim()), "it was left behind");
}

#[tokio::test]
async fn what_a_broken_worker_says_is_not_believed() {
    for (line, part) in [
        ("kill -SEGV $$", "signal 11"),
        ("cat > /dev/null; echo garbage of some length", "no worker says"),
        ("cat > /dev/null", "failed on it"),
        ("echo 'thread panicked' >&2; exit 101", "thread panicked"),
        ("echo 'memory allocation of 8 bytes failed' >&2; kill -ABRT $$", "host.compile.memory"),
    ] {
        let component = ack();
        let ended = end(&sandbox(shell(line)), &component).await.to_string();
        assert!(ended.contains(part), "{line}: {ended}");
    }
    let none = CompileWorker { program: "/nowhere/worker".into(), ..worker() };
    let component = ack();
    let refused = sandbox(none).load(common::spec("none", &component)).await.unwrap_err();
    assert!(refused.to_string().contains("no compile worker could be started"), "{refused}");
}

/// FR-24: nothing of the host's environment or files is passed on.
#[tokio::test]
async fn fr_24_a_worker_inherits_nothing() {
    let home = tempfile::tempdir().unwrap();
    let secret = home.path().join("secret");
    let _open = fs::File::create(&secret).unwrap();
    let seen = home.path().join("seen");
    let line =
        format!("cat /proc/$$/environ > {0}; ls -l /proc/$$/fd >> {0}; exit 1", seen.display());
    let component = ack();
    end(&sandbox(shell(&line)), &component).await;
    let seen = fs::read_to_string(seen).unwrap();
    assert!(!seen.contains("secret") && !seen.contains('='), "{seen}");
    assert!(seen.contains("pipe:"), "{seen}");
}

/// It is killed when its host dies, and does nothing for a host that is dead already.
#[tokio::test]
async fn a_worker_does_not_outlive_its_host() {
    let program = env!("CARGO_BIN_EXE_pumphouse-compile-worker");
    let orphan = Command::new(program).args(["1", "4294967296", "60", "9", "1"]).output().unwrap();
    assert_eq!(orphan.status.code(), Some(64));
    let said = String::from_utf8(orphan.stderr).unwrap();
    assert!(said.contains("is gone"), "{said}");

    // In the background a shell gives a program nothing to read, unless it is told to.
    let line = format!("exec 3<&0; {program} $$ 4294967296 60 9 1 <&3 & echo $!; wait");
    let mut host = Command::new("/bin/sh");
    let host = host.args(["-c", &line]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut host = host.spawn().unwrap();
    let mut pid = String::new();
    BufReader::new(host.stdout.take().unwrap()).read_line(&mut pid).unwrap();
    let pid = pid.trim().to_owned();
    eventually("it is confined", || limits_of(&pid).contains("4294967296")).await;
    assert!(!is_gone(&pid));
    host.kill().unwrap();
    eventually("it is gone", || is_gone(&pid)).await;
    host.wait().unwrap();
}

fn limits_of(pid: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default()
}

/// Also where nobody has asked how it ended.
fn is_gone(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.is_empty() || status.contains("State:\tZ")
}

/// FR-20: one tenant's queue of components does not hold up another's.
#[tokio::test]
async fn fr_20_a_tenant_with_many_components_holds_up_nobody() {
    const MANY: usize = 12;
    let sandbox = sandbox(worker());
    let done = Arc::new(AtomicUsize::new(0));
    let mut loads = tokio::task::JoinSet::new();
    for n in 0..MANY {
        let (sandbox, done, component) = (sandbox.clone(), done.clone(), heavy(500 + n));
        loads.spawn(async move {
            let mut spec = common::spec("many", &component);
            spec.name = format!("many/{n}");
            let handler = sandbox.load(spec).await.unwrap();
            done.fetch_add(1, Ordering::SeqCst);
            handler
        });
    }
    eventually("the first", || done.load(Ordering::SeqCst) > 0).await;
    let component = ack();
    let mut spec = common::spec("one", &component);
    spec.name = "one/handler".to_owned();
    sandbox.load(spec).await.unwrap();
    assert!(done.load(Ordering::SeqCst) < MANY - 1, "it waited for all of the other tenant's");
    assert_eq!(loads.join_all().await.len(), MANY);
}

/// Calls are answered while a component is compiled.
#[tokio::test]
async fn calls_go_on_while_components_are_compiled() {
    let sandbox = sandbox(worker());
    let honest = ack();
    let handler = sandbox.load(common::spec("calls", &honest)).await.unwrap();
    let (slow, component) = (sandbox.clone(), heavy(20_000));
    let spec = common::spec("slow", &component);
    let load = tokio::spawn(async move { slow.load(spec).await.map(drop) });
    let mut answered = 0;
    while !load.is_finished() {
        assert_eq!(call(&handler, "").await.result, Ok(Outcome::Ack));
        answered += 1;
    }
    load.await.unwrap().unwrap();
    assert!(answered > 20, "{answered}");
}

/// A sandbox that goes takes its worker with it.
#[tokio::test]
async fn a_worker_goes_with_its_sandbox() {
    let home = tempfile::tempdir().unwrap();
    let pid = home.path().join("pid");
    let worker = shell(&format!("echo $$ > {}; exec sleep 600", pid.display()));
    let sandbox = sandbox(worker);
    let component = ack();
    let (loading, spec) = (sandbox.clone(), common::spec("cut-off", &component));
    let load = tokio::spawn(async move { loading.load(spec).await.map(drop) });
    eventually("it runs", || fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n'))).await;
    sandbox.shutdown();
    let refused = load.await.unwrap().unwrap_err();
    assert!(refused.to_string().contains("shut down"), "{refused}");
    let pid = fs::read_to_string(pid).unwrap();
    eventually("it is gone", || is_gone(pid.trim())).await;
}
