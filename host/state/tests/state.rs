//! What every store promises (S-5), and what the durable one promises beyond that.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should say so at once")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pumphouse_contract::Timestamp;
use pumphouse_contract::ports::{Commit, MarkKey, State};
use pumphouse_state::{FILE, MemoryState, SqliteState, StateOpenError};
use rusqlite::Connection;

const ORDERS: &str = "acme/orders/acme/orders";

fn mark(scope: &str, key: impl Into<String>) -> MarkKey {
    MarkKey { scope: scope.into(), key: key.into() }
}

fn commit(mark: &MarkKey, until: u64) -> Commit {
    Commit { mark: mark.clone(), until: Timestamp(until) }
}

async fn seen(state: &dyn State, mark: &MarkKey, now: u64) -> bool {
    state.seen(mark, Timestamp(now)).await.unwrap()
}

/// The stores under test; the directory lives as long as they do.
fn every_store() -> (tempfile::TempDir, Vec<Arc<dyn State>>) {
    let directory = tempfile::tempdir().unwrap();
    let durable = SqliteState::open(directory.path()).unwrap();
    (directory, vec![Arc::new(durable), Arc::new(MemoryState::new())])
}

fn other_program(directory: &Path) -> Connection {
    Connection::open(directory.join(FILE)).unwrap()
}

/// S-5, FR-14: only a commit makes a message a duplicate, and only for its time.
#[tokio::test]
async fn s_5_a_message_is_a_duplicate_from_its_commit_until_its_time_is_over() {
    let (_directory, stores) = every_store();
    for state in stores {
        let one = mark(ORDERS, "m-1");
        assert!(!seen(&*state, &one, 1000).await);
        state.commit(commit(&one, 5000)).await.unwrap();
        assert!(seen(&*state, &one, 1000).await);
        assert!(seen(&*state, &one, 4999).await);
        assert!(!seen(&*state, &one, 5000).await);
    }
}

/// S-5: a redelivery that is handled again after its time is remembered anew; a shorter time shortens nothing.
#[tokio::test]
async fn s_5_the_longest_time_counts() {
    let (_directory, stores) = every_store();
    for state in stores {
        let one = mark(ORDERS, "m-1");
        for until in [1000, 9000, 3000] {
            state.commit(commit(&one, until)).await.unwrap();
        }
        assert!(seen(&*state, &one, 8999).await);
    }
}

/// FR-16: what one consumer handled says nothing about another.
#[tokio::test]
async fn fr_16_a_mark_counts_for_its_tenant_subscription_and_leg_alone() {
    let (_directory, stores) = every_store();
    for state in stores {
        state.commit(commit(&mark(ORDERS, "m-1"), 5000)).await.unwrap();
        for other in
            ["acme/orders/acme/audit", "acme/returns/acme/orders", "umbra/orders/acme/orders"]
        {
            assert!(!seen(&*state, &mark(other, "m-1"), 1).await, "{other}");
        }
        assert!(!seen(&*state, &mark(ORDERS, "m-2"), 1).await);
        assert!(seen(&*state, &mark(ORDERS, "m-1"), 1).await);
    }
}

#[tokio::test]
async fn keys_are_compared_byte_for_byte() {
    let (_directory, stores) = every_store();
    for state in stores {
        let odd = ["", "M-1", "m-1 ", "'; DROP TABLE marks; --", "m\u{0}1", "ключ"];
        state.commit(commit(&mark(ORDERS, "m-1"), 5000)).await.unwrap();
        for key in odd {
            assert!(!seen(&*state, &mark(ORDERS, key), 1).await, "{key:?}");
            state.commit(commit(&mark(ORDERS, key), 5000)).await.unwrap();
            assert!(seen(&*state, &mark(ORDERS, key), 1).await, "{key:?}");
        }
    }
}

/// S-5: a crash before the acknowledgement makes the redelivery a no-op.
#[tokio::test]
async fn s_5_marks_outlive_the_host() {
    let directory = tempfile::tempdir().unwrap();
    let one = mark(ORDERS, "m-1");
    let state = SqliteState::open(directory.path()).unwrap();
    state.commit(commit(&one, 5000)).await.unwrap();
    state.close().await;
    let again = SqliteState::open(directory.path()).unwrap();
    assert!(seen(&again, &one, 4999).await);
    assert!(!seen(&again, &one, 5000).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_at_the_same_time_are_all_stored() {
    let directory = tempfile::tempdir().unwrap();
    let state = Arc::new(SqliteState::open(directory.path()).unwrap());
    let tasks: Vec<_> = (0..2000)
        .map(|n| {
            let state = Arc::clone(&state);
            tokio::spawn(async move {
                let one = mark(ORDERS, format!("m-{n}"));
                assert!(!seen(&*state, &one, 1).await);
                state.commit(commit(&one, 5000)).await.unwrap();
                assert!(seen(&*state, &one, 1).await);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    state.close().await;
    let again = SqliteState::open(directory.path()).unwrap();
    for n in 0..2000 {
        assert!(seen(&again, &mark(ORDERS, format!("m-{n}")), 1).await, "{n}");
    }
}

/// S-5: a store that fails never acknowledges. Another program holds the database; it passes.
#[tokio::test]
async fn s_5_a_locked_store_is_an_error_that_passes() {
    let directory = tempfile::tempdir().unwrap();
    let state = SqliteState::open(directory.path()).unwrap();
    let one = mark(ORDERS, "m-1");
    let other = other_program(directory.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = state.commit(commit(&one, 5000)).await.unwrap_err();
    assert!(error.to_string().contains("locked"), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    assert!(!seen(&state, &one, 1).await);
    state.commit(commit(&one, 5000)).await.unwrap();
    assert!(seen(&state, &one, 1).await);
}

/// The one thread of this runtime lets go of the lock that the store waits for.
#[tokio::test(flavor = "current_thread")]
async fn a_store_that_waits_does_not_block_the_runtime() {
    let directory = tempfile::tempdir().unwrap();
    let state = SqliteState::open(directory.path()).unwrap();
    let other = other_program(directory.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let one = mark(ORDERS, "m-1");
    let release = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        other.execute_batch("ROLLBACK").unwrap();
    };
    let (stored, ()) = tokio::join!(state.commit(commit(&one, 5000)), release);
    stored.unwrap();
}

/// S-5: a store that fails never acknowledges, whatever broke it.
#[tokio::test]
async fn s_5_a_broken_store_is_an_error_for_reading_and_writing() {
    let directory = tempfile::tempdir().unwrap();
    let state = SqliteState::open(directory.path()).unwrap();
    other_program(directory.path()).execute_batch("DROP TABLE marks").unwrap();
    let one = mark(ORDERS, "m-1");
    let (read, written) =
        (state.seen(&one, Timestamp(1)).await, state.commit(commit(&one, 9)).await);
    for error in [read.unwrap_err(), written.unwrap_err()] {
        assert!(error.path.ends_with(FILE), "{error}");
        assert!(error.text.contains("marks"), "{error}");
    }
}

#[tokio::test]
async fn a_damaged_file_is_an_error_and_stays_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE);
    let state = SqliteState::open(directory.path()).unwrap();
    for n in 0..500 {
        state.commit(commit(&mark(ORDERS, format!("m-{n}")), 5000)).await.unwrap();
    }
    state.close().await;
    let mut bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() > 8192, "{}", bytes.len());
    bytes[4096..].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let state = SqliteState::open(directory.path()).unwrap();
    let first = state.seen(&mark(ORDERS, "m-1"), Timestamp(1)).await.unwrap_err();
    assert!(first.text.contains("malformed"), "{first}");
    let second = state.commit(commit(&mark(ORDERS, "new"), 5000)).await.unwrap_err();
    assert!(second.text.contains("stopped after an earlier error"), "{second}");
}

#[tokio::test]
async fn a_closed_store_answers_with_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let state = SqliteState::open(directory.path()).unwrap();
    state.close().await;
    state.close().await;
    let error = state.commit(commit(&mark(ORDERS, "m-1"), 5000)).await.unwrap_err();
    assert!(error.text.contains("closed"), "{error}");
    assert!(!directory.path().join(format!("{FILE}-wal")).exists(), "the log of writes was left");
}

#[test]
fn a_store_of_a_later_version_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    drop(SqliteState::open(directory.path()).unwrap());
    other_program(directory.path()).pragma_update(None, "user_version", 7).unwrap();
    let error = SqliteState::open(directory.path()).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, StateOpenError::Newer { found: 7, known: 1, .. }), "{text}");
    assert!(text.contains("schema version 7") && text.contains(FILE), "{text}");
    let version: i64 = other_program(directory.path())
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(version, 7);
}

#[test]
fn what_is_not_a_store_is_refused() {
    let foreign = tempfile::tempdir().unwrap();
    other_program(foreign.path()).execute_batch("CREATE TABLE notes (text)").unwrap();
    let error = SqliteState::open(foreign.path()).unwrap_err();
    assert!(matches!(error, StateOpenError::Foreign { .. }), "{error}");

    let text = tempfile::tempdir().unwrap();
    std::fs::write(
        text.path().join(FILE),
        "not a database, but long enough to be read as one ".repeat(40),
    )
    .unwrap();
    let error = SqliteState::open(text.path()).unwrap_err();
    assert!(matches!(error, StateOpenError::Database { .. }), "{error}");

    let file = tempfile::NamedTempFile::new().unwrap();
    let error = SqliteState::open(&file.path().join("below")).unwrap_err();
    assert!(matches!(error, StateOpenError::Directory { .. }), "{error}");
}
