//! What a killed host, a full, a read-only or a failing disk leave behind. Each test starts this same program again
//! in a role, as a process that is killed, or that has a mount namespace or limits of its own.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails so")]

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use pumphouse_broker::Broker;
use pumphouse_contract::ports::{Action, Ask, Failure, PublishError, ReceiveError};
use support::*;

const ROLE: &str = "PUMPHOUSE_BROKER_TEST_ROLE";
const DIRECTORY: &str = "PUMPHOUSE_BROKER_TEST_DIRECTORY";

fn main() -> ExitCode {
    let Ok(role) = std::env::var(ROLE) else {
        return libtest_mimic::run(&Arguments::from_args(), trials()).exit_code();
    };
    let directory = PathBuf::from(std::env::var(DIRECTORY).expect("a directory"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        match role.as_str() {
            "to-be-killed" => to_be_killed(&directory).await,
            "on-a-full-disk" => on_a_full_disk(&directory).await,
            "on-a-read-only-disk" => on_a_read_only_disk(&directory).await,
            "on-a-failing-disk" => on_a_failing_disk(&directory).await,
            other => panic!("no role {other}"),
        }
    });
    ExitCode::SUCCESS
}

fn trials() -> Vec<Trial> {
    vec![
        Trial::test("a_killed_host_loses_nothing_confirmed_and_keeps_counts", killed),
        Trial::test("a_second_host_is_refused_while_the_first_lives", second_host),
        Trial::test("a_full_disk_refuses_publishes_and_loses_nothing", || {
            in_a_namespace("on-a-full-disk")
        }),
        Trial::test("a_read_only_disk_is_refused_and_named", || {
            in_a_namespace("on-a-read-only-disk")
        }),
        Trial::test("a_failing_disk_stops_the_store_and_loses_nothing", failing_disk),
    ]
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime")
}

fn this_program() -> PathBuf {
    std::env::current_exe().expect("a program")
}

async fn rig(directory: &Path) -> Rig {
    let clock = TestClock::start();
    let broker = Broker::open(directory, clock.clone()).await.expect("it opens");
    Rig::around(broker, clock, None).await
}

/// One line to the parent, at once.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the parent listens");
}

/// Settles some, leaves some, and then publishes without an end.
async fn to_be_killed(directory: &Path) {
    let rig = Arc::new(rig(directory).await);
    for n in 0..40 {
        rig.publish(Some(&format!("key-{}", n % 20)), &format!("old-{n}")).await;
    }
    let mut held = rig.receive(20, NOW, LONG).await;
    rig.release(&held.remove(0), NOW).await;
    held.push(rig.one(LONG).await);
    for (n, delivery) in held.iter().enumerate() {
        let id = &delivery.message.id;
        match n % 4 {
            0 => {
                rig.ack(delivery).await;
                say(&format!("acked {id} 0"));
            }
            1 => {
                rig.release(delivery, NOW).await;
                say(&format!("ready {id} {}", count(delivery)));
            }
            2 => {
                rig.release(delivery, LONG).await;
                say(&format!("delayed {id} {}", count(delivery)));
            }
            _ => say(&format!("leased {id} {}", count(delivery))),
        }
    }
    say("prepared - 0");
    let publishers = (0..8).map(|publisher| {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move {
            for n in 0_u64.. {
                let id = rig.publish(Some(&format!("new-{publisher}")), &n.to_string()).await;
                say(&format!("published {id} {n}"));
            }
        })
    });
    for publisher in publishers.collect::<Vec<_>>() {
        publisher.await.expect("it goes on until it is killed");
    }
}

/// A child in a role, and what it says.
struct Spoken {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Spoken {
    fn start(role: &str, directory: &Path) -> Self {
        let mut child = Command::new(this_program())
            .env(ROLE, role)
            .env(DIRECTORY, directory)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        Self { child, lines }
    }

    /// Word, id and number of the next line.
    fn next(&mut self) -> Option<(String, String, u32)> {
        let line = self.lines.next()?.expect("a line");
        let mut words = line.split(' ').map(str::to_owned);
        let (word, id) = (words.next()?, words.next()?);
        Some((word, id, words.next()?.parse().ok()?))
    }
}

fn killed() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut host = Spoken::start("to-be-killed", directory.path());
    let mut said: BTreeMap<String, (String, u32)> = BTreeMap::new();
    let mut confirmed = 0;
    while confirmed < 500 {
        let (word, id, number) = host.next().expect("it goes on until it is killed");
        confirmed += u32::from(word == "published");
        said.insert(id, (word, number));
    }
    host.child.kill()?;
    // What it had said before it died counts too.
    while let Some((word, id, number)) = host.next() {
        said.insert(id, (word, number));
    }
    host.child.wait()?;
    runtime().block_on(compare(directory.path(), said));
    Ok(())
}

/// Receives everything, in the end also what was leased or delayed, and compares with what the host had said.
async fn compare(directory: &Path, said: BTreeMap<String, (String, u32)>) {
    let before = rig(directory).await;
    let mut found: BTreeMap<String, (String, u32)> = BTreeMap::new();
    let mut orders: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    drain(&before, &mut found, &mut orders).await;
    for (id, (word, _)) in &said {
        let waits = word == "leased" || word == "delayed" || word == "acked" || word == "prepared";
        assert_eq!(found.contains_key(id), !waits, "{word} {id}");
    }
    before.broker.close().await;
    // By the clock, the leases and delays are over.
    let clock = TestClock::start();
    clock.step(2 * i64::try_from(LONG.as_millis()).expect("a short time"));
    let broker = Broker::open(directory, clock.clone()).await.expect("it opens");
    let after = Rig::around(broker, clock, None).await;
    drain(&after, &mut found, &mut orders).await;
    for (id, (word, number)) in &said {
        let expected = match word.as_str() {
            "acked" | "prepared" => None,
            "published" => Some(0),
            _ => Some(number + 1),
        };
        assert_eq!(found.get(id).map(|(_, count)| *count), expected, "{word} {id}");
    }
    for (key, order) in orders {
        assert!(order.is_sorted(), "{key}: {order:?}");
    }
}

async fn drain(
    rig: &Rig,
    found: &mut BTreeMap<String, (String, u32)>,
    orders: &mut BTreeMap<String, Vec<u64>>,
) {
    loop {
        let deliveries = rig.receive(128, SHORT, LONG).await;
        if deliveries.is_empty() {
            return;
        }
        for delivery in deliveries {
            let key = delivery.message.ordering_key.clone().expect("a key");
            let number = body(&delivery).trim_start_matches("old-").parse().expect("a number");
            orders.entry(key.clone()).or_default().push(number);
            let before = found.insert(delivery.message.id.clone(), (key, count(&delivery)));
            assert_eq!(before, None, "it came once");
            rig.ack(&delivery).await;
        }
    }
}

fn second_host() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut host = Spoken::start("to-be-killed", directory.path());
    host.next().expect("it has opened its store");
    let opened = runtime().block_on(Broker::open(directory.path(), TestClock::start()));
    let error = opened.expect_err("it is refused").to_string();
    assert!(error.contains(&format!("process {}", host.child.id())), "{error}");
    host.child.kill()?;
    host.child.wait()?;
    // A lock that outlives its process would shut everyone out.
    let opened = runtime().block_on(Broker::open(directory.path(), TestClock::start()));
    opened.map(drop)?;
    Ok(())
}

/// Runs a role in a mount namespace of its own.
fn in_a_namespace(role: &str) -> Result<(), Failed> {
    let allowed = Command::new("unshare").args(["--mount", "true"]).output()?;
    if !allowed.status.success() {
        return Err("this test mounts a small disk: run it as root, with `unshare`, where mount \
                    namespaces are allowed"
            .into());
    }
    let directory = tempfile::tempdir()?;
    let output = Command::new("unshare")
        .arg("--mount")
        .arg(this_program())
        .env(ROLE, role)
        .env(DIRECTORY, directory.path())
        .output()?;
    succeeded(&output)
}

fn succeeded(output: &std::process::Output) -> Result<(), Failed> {
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}

fn mount(arguments: &[&str], directory: &Path) {
    let mounted = Command::new("mount").args(arguments).arg(directory).output().expect("mount");
    assert!(mounted.status.success(), "{}", String::from_utf8_lossy(&mounted.stderr));
}

/// Publishes until it is refused; gives the confirmed ids and the refusal.
async fn publish_until_refused(rig: &Rig, body: &str) -> (Vec<String>, PublishError) {
    let mut confirmed = Vec::new();
    loop {
        match rig.sink.publish(outgoing(None, body)).await {
            Ok(id) => confirmed.push(id),
            Err(error) => return (confirmed, error),
        }
        assert!(confirmed.len() < 10_000, "the disk never fills");
    }
}

/// Everything that is there now, put back.
async fn ids(rig: &Rig) -> Vec<String> {
    let mut ids = Vec::new();
    let mut held = Vec::new();
    loop {
        let deliveries = rig.receive(128, NOW, LONG).await;
        if deliveries.is_empty() {
            break;
        }
        ids.extend(deliveries.iter().map(|one| one.message.id.clone()));
        held.extend(deliveries);
    }
    for delivery in &held {
        rig.release(delivery, NOW).await;
    }
    ids.sort();
    ids
}

/// Fills the disk with the queue itself, then with something else to the last byte.
async fn on_a_full_disk(directory: &Path) {
    mount(&["-t", "tmpfs", "-o", "size=24m", "none"], directory);
    let first = rig(directory).await;
    let (mut confirmed, refusal) = publish_until_refused(&first, &"x".repeat(20_000)).await;
    assert!(confirmed.len() > 50, "{}", confirmed.len());
    assert!(matches!(&refusal, PublishError::Refused(..)), "{refusal}");
    assert!(refusal.to_string().contains("full"), "{refusal}");
    assert!(first.sink.publish(outgoing(None, "x")).await.is_err(), "a small one neither");
    assert_eq!(first.broker.problem(), None, "a full disk is no failed one");

    // What is there goes on, so that the queue itself can make room; also when something else takes all that it can.
    let ballast = directory.join("ballast");
    for n in 0..30 {
        let delivery = first.receive(1, NOW, LONG).await.pop().expect("one is there");
        assert_eq!(count(&delivery), 0);
        confirmed.retain(|id| *id != delivery.message.id);
        first.ack(&delivery).await;
        if n >= 20 {
            fill(&ballast);
        }
    }
    let held = first.receive(1, NOW, LONG).await.pop().expect("one is there");
    assert!(first.sink.publish(outgoing(None, "x")).await.is_err());
    assert_eq!(first.messages(), confirmed.len() as u64, "what was refused is not there");
    first.broker.close().await;

    // A restart on a disk that is full to the last byte, the reserve used up: what can't be booked is not handed out.
    let _ = std::fs::remove_file(directory.join("broker.reserve"));
    fill(&ballast);
    let second = rig(directory).await;
    assert_eq!(second.messages(), confirmed.len() as u64);
    assert!(second.sink.publish(outgoing(None, "x")).await.is_err());
    let refused = second.source.receive(Ask { max: 128, wait: NOW, lease: LONG }).await;
    assert!(matches!(&refused, Err(ReceiveError::Unavailable(_, text)) if text.contains("full")));

    std::fs::remove_file(&ballast).expect("removed");
    confirmed.push(publish_when_there_is_room(&second).await);
    second.broker.close().await;
    let found = everything(directory).await;
    confirmed.sort();
    assert_eq!(found.keys().cloned().collect::<Vec<_>>(), confirmed);
    let again = |(id, count): (&String, &u32)| *count == u32::from(*id == held.message.id);
    assert!(found.iter().all(again), "only what was handed out is counted");
}

/// Everything that a directory's store has, with its count, once leases are over.
async fn everything(directory: &Path) -> BTreeMap<String, u32> {
    let clock = TestClock::start();
    clock.step(2 * i64::try_from(LONG.as_millis()).expect("a short time"));
    let broker = Broker::open(directory, clock.clone()).await.expect("it opens");
    let rig = Rig::around(broker, clock, None).await;
    let mut found = BTreeMap::new();
    loop {
        let deliveries = rig.receive(128, NOW, LONG).await;
        if deliveries.is_empty() {
            return found;
        }
        found.extend(deliveries.iter().map(|one| (one.message.id.clone(), count(one))));
    }
}

async fn publish_when_there_is_room(rig: &Rig) -> String {
    for _ in 0..100 {
        match rig.sink.publish(outgoing(None, "there is room again")).await {
            Ok(id) => return id,
            Err(error) => assert!(matches!(error, PublishError::Refused(..)), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the disk is still taken for full");
}

/// Fills what is left of a disk.
fn fill(ballast: &Path) {
    let mut file =
        std::fs::OpenOptions::new().create(true).append(true).open(ballast).expect("a file");
    while file.write_all(&[0; 512]).is_ok() {}
}

async fn on_a_read_only_disk(directory: &Path) {
    mount(&["-t", "tmpfs", "-o", "size=24m", "none"], directory);
    let first = rig(directory).await;
    let id = first.publish(None, "a").await;
    first.broker.close().await;
    mount(&["-o", "remount,ro"], directory);
    let error = Broker::open(directory, TestClock::start()).await.expect_err("it is refused");
    let text = format!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string));
    assert!(text.contains(&directory.display().to_string()), "{text}");
    assert!(text.to_lowercase().contains("read-only"), "{text}");
    mount(&["-o", "remount,rw"], directory);
    assert_eq!(ids(&rig(directory).await).await, [id]);
}

/// A limit on the size of files makes the disk fail, other than for want of room, when the log has grown.
fn failing_disk() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 20000; exec \"$0\""])
        .arg(this_program())
        .env(ROLE, "on-a-failing-disk")
        .env(DIRECTORY, directory.path())
        .output()?;
    succeeded(&output)?;
    let confirmed: Vec<String> =
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    assert!(confirmed.len() > 20, "{}", confirmed.len());
    let found = runtime().block_on(async { ids(&rig(directory.path()).await).await });
    for id in &confirmed {
        assert!(found.contains(id), "{id} is lost");
    }
    Ok(())
}

async fn on_a_failing_disk(directory: &Path) {
    let rig = rig(directory).await;
    rig.publish(None, "to be received").await;
    let held = rig.one(Duration::from_millis(1)).await;
    let again = rig.soon(LONG).await;
    assert_eq!(held.message.id, again.message.id);
    let (confirmed, error) = publish_until_refused(&rig, &"x".repeat(20_000)).await;
    confirmed.iter().for_each(|id| say(id));
    assert!(matches!(&error, PublishError::Unavailable(..)), "{error}");
    assert!(error.to_string().contains("until the host is restarted"), "{error}");
    assert!(rig.broker.problem().is_some());
    // Nothing is tried again, small as it may be.
    assert!(matches!(
        rig.sink.publish(outgoing(None, "x")).await,
        Err(PublishError::Unavailable(..))
    ));
    let received = rig.source.receive(Ask { max: 1, wait: NOW, lease: LONG }).await;
    assert!(matches!(received, Err(ReceiveError::Unavailable(..))));
    assert_eq!(rig.settle(&again, Action::Ack).await, Err(Failure::Refused));
    assert!(rig.broker.create("other").await.is_err());
    rig.broker.close().await;
}
