//! The database: its schema, its statements and what its errors mean. Everything here blocks.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pumphouse_contract::Timestamp;
use pumphouse_contract::ports::{Commit, MarkKey, StateError};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, ffi, params};

/// The database's file in the state directory.
pub const FILE: &str = "state.db";

/// What this version writes, and the newest that it can read.
const SCHEMA_VERSION: i64 = 1;

/// Tells our database from another program's: "PUMP".
const APPLICATION_ID: i64 = 0x5055_4d50;

/// How long a statement waits for another program, such as a backup, to let go of the database.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// How large the log of writes may stay on disk, in bytes.
const LOG_SIZE_LIMIT: i64 = 16 * 1024 * 1024;

/// The fewest expired marks that one transaction removes, where there are so many.
const PURGE_AT_LEAST: usize = 64;

const CREATE: &str = "
    CREATE TABLE marks (
        scope TEXT NOT NULL,
        key TEXT NOT NULL,
        until INTEGER NOT NULL,
        PRIMARY KEY (scope, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX marks_by_until ON marks (until);";

const SEEN: &str = "SELECT until FROM marks WHERE scope = ?1 AND key = ?2";

const STORE: &str = "
    INSERT INTO marks (scope, key, until) VALUES (?1, ?2, ?3)
    ON CONFLICT (scope, key) DO UPDATE SET until = max(until, excluded.until)";

const PURGE: &str = "
    DELETE FROM marks WHERE (scope, key) IN
        (SELECT scope, key FROM marks WHERE until <= ?1 ORDER BY until LIMIT ?2)";

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum StateOpenError {
    /// The directory can't be made.
    #[error("state directory {} can't be made", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file can't be opened, or is damaged.
    #[error("state store {} can't be opened", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The file belongs to another program.
    #[error("{} is not a state store of pumphouse; name another state directory", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A later version of the host wrote the file.
    #[error(
        "state store {} has schema version {found}, this pumphouse knows versions up to {known}; run the version that wrote it, or name another state directory",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version that is known.
        known: i64,
    },
    /// The thread that writes can't be started.
    #[error("the thread of state store {} can't be started", path.display())]
    Thread {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// The open database. One thread owns it.
#[derive(Debug)]
pub(crate) struct Store {
    connection: Connection,
    path: PathBuf,
    /// The latest time that a caller passed; what expired before it is removed.
    now: Timestamp,
    /// Why nothing is read or written any more.
    broken: Option<String>,
}

impl Store {
    /// Opens the database in `directory` and brings its schema up to date.
    pub(crate) fn open(directory: &Path) -> Result<Self, StateOpenError> {
        make_directory(directory)
            .map_err(|source| StateOpenError::Directory { path: directory.to_owned(), source })?;
        let path = directory.join(FILE);
        let failed = |source| StateOpenError::Database { path: path.clone(), source };
        let mut connection = Connection::open(&path).map_err(failed)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        check(&connection, &path)?;
        configure(&connection).map_err(failed)?;
        migrate(&mut connection).map_err(failed)?;
        Ok(Self { connection, path, now: Timestamp(0), broken: None })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the message is remembered at `now`.
    pub(crate) fn seen(&mut self, key: &MarkKey, now: Timestamp) -> Result<bool, StateError> {
        self.now = now;
        self.usable()?;
        let until = self
            .connection
            .prepare_cached(SEEN)
            .and_then(|mut s| s.query_row(params![&*key.scope, key.key], |r| r.get(0)).optional());
        let until: Option<i64> = self.checked("reading a mark", until)?;
        Ok(until.is_some_and(|until| until > to_sql(now)))
    }

    /// Stores all of them or none, and removes some of what has expired in the same transaction.
    pub(crate) fn commit(&mut self, commits: &[Commit]) -> Result<(), StateError> {
        self.usable()?;
        // More go than come, so what has expired never piles up.
        let purge = commits.len().saturating_mul(2).max(PURGE_AT_LEAST);
        let stored = store(&mut self.connection, commits, self.now, purge);
        self.checked("storing a mark", stored)
    }

    /// Removes some of what has expired; gives how many.
    pub(crate) fn purge(&mut self) -> Result<usize, StateError> {
        self.usable()?;
        let purged = self.connection.prepare_cached(PURGE).and_then(|mut s| {
            s.execute(params![to_sql(self.now), i64::try_from(PURGE_AT_LEAST).unwrap_or(i64::MAX)])
        });
        self.checked("removing expired marks", purged)
    }

    fn usable(&self) -> Result<(), StateError> {
        match &self.broken {
            Some(text) => Err(self.error(format!("stopped after an earlier error: {text}"))),
            None => Ok(()),
        }
    }

    fn checked<T>(
        &mut self,
        doing: &str,
        result: Result<T, rusqlite::Error>,
    ) -> Result<T, StateError> {
        result.map_err(|error| {
            let text = format!("{doing}: {error}");
            if is_lasting(&error) {
                tracing::error!(path = %self.path.display(), error = %text, "state store stopped");
                self.broken = Some(text.clone());
            }
            self.error(text)
        })
    }

    fn error(&self, text: String) -> StateError {
        StateError { path: self.path.display().to_string(), text }
    }

    #[cfg(test)]
    pub(crate) fn limit_pages(&self, pages: i64) {
        self.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    }

    #[cfg(test)]
    pub(crate) fn pages(&self) -> i64 {
        self.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap()
    }

    #[cfg(test)]
    pub(crate) fn marks(&self) -> i64 {
        self.connection.query_row("SELECT count(*) FROM marks", [], |row| row.get(0)).unwrap()
    }
}

/// A new directory is for the host's user alone: keys may say something about messages.
fn make_directory(directory: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Refuses what is not ours or is too new, before anything is written to it.
fn check(connection: &Connection, path: &Path) -> Result<(), StateOpenError> {
    let failed = |source| StateOpenError::Database { path: path.to_owned(), source };
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(failed)?;
    let (application, found) =
        (number("application_id").map_err(failed)?, number("user_version").map_err(failed)?);
    if tables > 0 && application != APPLICATION_ID {
        return Err(StateOpenError::Foreign { path: path.to_owned() });
    }
    if found > SCHEMA_VERSION {
        let path = path.to_owned();
        return Err(StateOpenError::Newer { path, found, known: SCHEMA_VERSION });
    }
    Ok(())
}

fn configure(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_SIZE_LIMIT, |_| Ok(()))?;
    Ok(())
}

fn migrate(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version < 1 {
        transaction.execute_batch(CREATE)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    transaction.commit()
}

fn store(
    connection: &mut Connection,
    commits: &[Commit],
    now: Timestamp,
    purge: usize,
) -> Result<(), rusqlite::Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    insert(&transaction, commits)?;
    transaction
        .prepare_cached(PURGE)?
        .execute(params![to_sql(now), i64::try_from(purge).unwrap_or(i64::MAX)])?;
    transaction.commit()
}

fn insert(transaction: &Transaction<'_>, commits: &[Commit]) -> Result<(), rusqlite::Error> {
    let mut statement = transaction.prepare_cached(STORE)?;
    for Commit { mark, until } in commits {
        statement.execute(params![&*mark.scope, mark.key, to_sql(*until)])?;
    }
    Ok(())
}

/// Whether asking again must not be tried: after a failed sync nobody knows what the disk holds, and a damaged
/// file stays damaged. Everything else was rolled back, and may pass: a full disk, another program's lock.
fn is_lasting(error: &rusqlite::Error) -> bool {
    let Some(error) = error.sqlite_error() else { return false };
    matches!(error.extended_code, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)
        || matches!(error.code, ffi::ErrorCode::DatabaseCorrupt | ffi::ErrorCode::NotADatabase)
}

/// Milliseconds as SQLite has them; what lies beyond is the end of time.
fn to_sql(at: Timestamp) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(n: u64, until: u64) -> Commit {
        let mark = MarkKey { scope: "acme/orders/acme/orders".into(), key: format!("message-{n}") };
        Commit { mark, until: Timestamp(until) }
    }

    /// S-5: a store that fails never acknowledges, and a full disk passes.
    #[test]
    fn s_5_a_full_disk_stores_nothing_and_passes() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        store.limit_pages(store.pages());
        let many: Vec<_> = (0..1000).map(|n| commit(n, 10)).collect();
        let error = store.commit(&many).unwrap_err();
        assert!(error.text.contains("full"), "{error}");
        assert!(error.path.ends_with(FILE), "{error}");
        assert!(!store.seen(&many[0].mark, Timestamp(1)).unwrap());
        store.limit_pages(1 << 20);
        store.commit(&many).unwrap();
        assert!(store.seen(&many[0].mark, Timestamp(1)).unwrap());
    }

    /// S-5: a TTL bounds the store. Ten thousand marks pass through, a few hundred are alive at a time.
    #[test]
    fn s_5_expired_marks_are_removed_as_new_ones_come() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        let mut most = 0;
        for n in 0..10_000 {
            let one = commit(n, n + 300);
            store.seen(&one.mark, Timestamp(n)).unwrap();
            // One sync for each would only make the test slow.
            if n % 20 == 19 {
                let batch: Vec<_> = (n - 19..=n).map(|n| commit(n, n + 300)).collect();
                store.commit(&batch).unwrap();
            }
            most = most.max(store.marks());
        }
        assert!((280..=400).contains(&most), "{most}");
    }

    #[test]
    fn a_purge_takes_a_bounded_number_until_nothing_is_expired() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        let many: Vec<_> = (0..100).map(|n| commit(n, 5)).collect();
        store.commit(&many).unwrap();
        assert_eq!(store.purge().unwrap(), 0);
        store.seen(&many[0].mark, Timestamp(5)).unwrap();
        assert_eq!(store.purge().unwrap(), 64);
        assert_eq!(store.purge().unwrap(), 36);
        assert_eq!(store.purge().unwrap(), 0);
    }

    #[test]
    fn only_what_cannot_pass_is_lasting() {
        let error = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        for code in [
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_IOERR_DIR_FSYNC,
            ffi::SQLITE_CORRUPT,
            ffi::SQLITE_NOTADB,
        ] {
            assert!(is_lasting(&error(code)), "{code}");
        }
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_BUSY, ffi::SQLITE_IOERR_WRITE] {
            assert!(!is_lasting(&error(code)), "{code}");
        }
    }

    #[test]
    fn the_end_of_time_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        let forever = commit(1, u64::MAX);
        store.commit(std::slice::from_ref(&forever)).unwrap();
        assert!(store.seen(&forever.mark, Timestamp(1 << 60)).unwrap());
    }
}
