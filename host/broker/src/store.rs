//! What is on the disk, in SQLite. One thread uses it at a time; each call blocks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pumphouse_contract::{Message, Timestamp};
use rusqlite::config::DbConfig;
use rusqlite::{
    Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params,
};

use crate::codec;
use crate::error::BrokerError;
use crate::ledger::Sequence;
use crate::limits::DEDUPLICATION;

pub(crate) const FILE: &str = "broker.sqlite";

/// The schema that this version writes.
const SCHEMA: i64 = 1;

const CREATE: &str = include_str!("schema.sql");

/// Beyond so many pages in the log (of 4 KiB each) they are carried over into the database.
const LONGEST_LOG_PAGES: i64 = 1_000;

/// How long to wait for another program that has the database open.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The statements that are kept prepared.
const STATEMENTS: usize = 32;

/// A lease or a delay as the store keeps it: by the wall clock, with its length, so that a clock that steps back
/// while the host is down can't stretch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Since when.
    pub(crate) from: Timestamp,
    /// For how long.
    pub(crate) length: Duration,
}

impl Span {
    fn until_millis(self) -> i64 {
        integer(self.from.0).saturating_add(millis(self.length))
    }
}

/// What the store knows of a message, but for the message itself.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) sequence: Sequence,
    pub(crate) queue: i64,
    pub(crate) key: Option<String>,
    pub(crate) published_at: Timestamp,
    pub(crate) count: u32,
    pub(crate) first_received_at: Option<Timestamp>,
    /// What is left of its lease or delay.
    pub(crate) left: Option<Duration>,
}

/// The database.
#[derive(Debug)]
pub(crate) struct Store {
    connection: Connection,
    path: PathBuf,
    next: Sequence,
}

impl Store {
    /// Opens or makes the database in a directory that is ours.
    pub(crate) fn open(directory: &Path) -> Result<Self, BrokerError> {
        let path = directory.join(FILE);
        match prepare(&path) {
            Ok((connection, next)) => Ok(Self { connection, path, next }),
            Err(Unopened::Newer(found)) => Err(BrokerError::Newer { path, found, known: SCHEMA }),
            Err(Unopened::Sqlite(source)) => Err(BrokerError::Open { path, source }),
        }
    }

    /// The database's file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Every queue: its number and its name.
    pub(crate) fn queues(&self) -> rusqlite::Result<Vec<(i64, String)>> {
        let mut statement = self.connection.prepare("SELECT id, name FROM queue")?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }

    /// Every message in the order of their sequence.
    pub(crate) fn messages(
        &self,
        now: Timestamp,
        mut each: impl FnMut(Stored),
    ) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare(
            "SELECT m.seq, m.queue, m.ordering_key, m.published_at,
                    d.count, d.first_received_at, d.until, d.length
             FROM message AS m LEFT JOIN delivery AS d ON d.seq = m.seq ORDER BY m.seq",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            each(stored(row, now)?);
        }
        Ok(())
    }

    /// Writes in one transaction, on the disk when it returns. After an error none of it is there.
    pub(crate) fn transaction(
        &mut self,
        write: impl FnOnce(&mut Writing<'_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let transaction =
            Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        write(&mut Writing { connection: &transaction, next: &mut self.next })?;
        transaction.commit()
    }

    /// Carries the log over into the database where it has grown long, and forgets old deduplication ids.
    ///
    /// SQLite would do so by itself at a commit, but swallow an error of the disk.
    pub(crate) fn tidy(&mut self, now: Timestamp) -> rusqlite::Result<()> {
        if self.log_pages()? < LONGEST_LOG_PAGES {
            return Ok(());
        }
        self.transaction(|writing| writing.forget(now))?;
        self.checkpoint("PRAGMA wal_checkpoint(PASSIVE)")
    }

    fn log_pages(&self) -> rusqlite::Result<i64> {
        let mut statement = self.connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?;
        statement.query_row([], |row| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?))
    }

    /// Empties the log, so that its room on the disk is free.
    pub(crate) fn empty_log(&mut self) -> rusqlite::Result<()> {
        self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    fn checkpoint(&self, pragma: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(pragma)?.query_row([], |_| Ok(()))
    }
}

/// A transaction under way.
pub(crate) struct Writing<'a> {
    connection: &'a Connection,
    next: &'a mut Sequence,
}

impl Writing<'_> {
    /// Makes a queue, or finds it.
    pub(crate) fn queue(&self, name: &str) -> rusqlite::Result<i64> {
        let find = "SELECT id FROM queue WHERE name = ?1";
        let found = self.connection.query_row(find, [name], |row| row.get(0)).optional()?;
        if let Some(id) = found {
            return Ok(id);
        }
        self.connection.execute("INSERT INTO queue (name) VALUES (?1)", [name])?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Notes that the message is published under this deduplication id. Gives the id of the one that was there
    /// before, where there is one; nothing is noted then.
    pub(crate) fn recall(
        &self,
        queue: i64,
        deduplication_id: &str,
        message_id: &str,
        now: Timestamp,
    ) -> rusqlite::Result<Option<String>> {
        // An id is also too old where a clock that stepped back makes it seem to last too long.
        let noted = self
            .connection
            .prepare_cached(
                "INSERT INTO recent (queue, deduplication_id, message_id, until) VALUES (?1, ?2, ?3, ?5)
                 ON CONFLICT DO UPDATE SET message_id = ?3, until = ?5 WHERE until <= ?4 OR until > ?5",
            )?
            .execute(params![
                queue,
                deduplication_id,
                message_id,
                integer(now.0),
                integer(now.0).saturating_add(millis(DEDUPLICATION)),
            ])?;
        if noted > 0 {
            return Ok(None);
        }
        self.connection
            .prepare_cached(
                "SELECT message_id FROM recent WHERE queue = ?1 AND deduplication_id = ?2",
            )?
            .query_row(params![queue, deduplication_id], |row| row.get(0))
            .optional()
    }

    fn forget(&self, now: Timestamp) -> rusqlite::Result<()> {
        let latest = integer(now.0).saturating_add(millis(DEDUPLICATION));
        self.connection
            .prepare_cached("DELETE FROM recent WHERE until <= ?1 OR until > ?2")?
            .execute(params![integer(now.0), latest])
            .map(|_| ())
    }

    /// Adds a message at the end.
    pub(crate) fn insert(&mut self, queue: i64, message: &Message) -> rusqlite::Result<Sequence> {
        let sequence = *self.next;
        self.connection
            .prepare_cached(
                "INSERT INTO message
                    (seq, queue, published_at, ordering_key, id, content_type, headers, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                integer(sequence),
                queue,
                integer(message.published_at.unwrap_or(Timestamp(0)).0),
                message.ordering_key,
                message.id,
                message.content_type,
                codec::encode(&message.headers),
                message.body.as_ref(),
            ])?;
        *self.next = sequence.saturating_add(1);
        Ok(sequence)
    }

    /// The message, and what is wrong with it as it is on the disk.
    pub(crate) fn fetch(
        &self,
        sequence: Sequence,
    ) -> rusqlite::Result<(Arc<Message>, Option<String>)> {
        self.connection
            .prepare_cached(
                "SELECT published_at, ordering_key, id, content_type, headers, body
                 FROM message WHERE seq = ?1",
            )?
            .query_row([integer(sequence)], |row| {
                let headers = codec::decode(row.get_ref(4)?.as_blob()?);
                let undecodable =
                    headers.is_none().then(|| "its headers in the store are damaged".to_owned());
                let message = Message {
                    published_at: Some(Timestamp(number(row.get(0)?))),
                    ordering_key: row.get(1)?,
                    id: row.get(2)?,
                    content_type: row.get(3)?,
                    headers: headers.unwrap_or_default(),
                    body: Bytes::copy_from_slice(row.get_ref(5)?.as_blob()?),
                };
                Ok((Arc::new(message), undecodable))
            })
    }

    /// Books a delivery.
    pub(crate) fn lease(
        &self,
        sequence: Sequence,
        count: u32,
        first_received_at: Timestamp,
        lease: Span,
    ) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO delivery (seq, count, first_received_at, until, length)
                 VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET count = ?2, until = ?4, length = ?5",
            )?
            .execute(params![
                integer(sequence),
                count,
                integer(first_received_at.0),
                lease.until_millis(),
                millis(lease.length),
            ])
            .map(|_| ())
    }

    /// Books a release.
    pub(crate) fn release(&self, sequence: Sequence, delay: Span) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("UPDATE delivery SET until = ?2, length = ?3 WHERE seq = ?1")?
            .execute(params![integer(sequence), delay.until_millis(), millis(delay.length)])
            .map(|_| ())
    }

    /// Removes a message.
    pub(crate) fn remove(&self, sequence: Sequence) -> rusqlite::Result<()> {
        for delete in ["DELETE FROM message WHERE seq = ?1", "DELETE FROM delivery WHERE seq = ?1"]
        {
            self.connection.prepare_cached(delete)?.execute([integer(sequence)])?;
        }
        Ok(())
    }
}

/// Why the database could not be opened.
enum Unopened {
    Newer(i64),
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Unopened {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// A connection with everything set, and the sequence of the next message.
fn prepare(path: &Path) -> Result<(Connection, Sequence), Unopened> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Exclusive, the log's index is in memory: no mapped file that a full disk could break under our feet.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // What is carried over when is ours to say, so that an error of the disk is seen.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    create(&connection)?;
    let last: Option<i64> =
        connection.query_row("SELECT max(seq) FROM message", [], |row| row.get(0))?;
    let next = last.and_then(|last| u64::try_from(last).ok()).map_or(1, |last| last + 1);
    Ok((connection, next))
}

/// Makes the tables in a new database; refuses one that a later version made.
fn create(connection: &Connection) -> Result<(), Unopened> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match found {
        SCHEMA => Ok(()),
        0 => {
            let transaction =
                Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
            transaction.execute_batch(CREATE)?;
            transaction.pragma_update(None, "user_version", SCHEMA)?;
            Ok(transaction.commit()?)
        }
        newer => Err(Unopened::Newer(newer)),
    }
}

fn stored(row: &rusqlite::Row<'_>, now: Timestamp) -> rusqlite::Result<Stored> {
    let first: Option<i64> = row.get(5)?;
    let until: Option<i64> = row.get(6)?;
    let length: Option<i64> = row.get(7)?;
    Ok(Stored {
        sequence: number(row.get(0)?),
        queue: row.get(1)?,
        key: row.get(2)?,
        published_at: Timestamp(number(row.get(3)?)),
        count: row.get::<_, Option<u32>>(4)?.unwrap_or(0),
        first_received_at: first.map(number).map(Timestamp),
        left: until.zip(length).map(|(until, length)| {
            Duration::from_millis(number(until).saturating_sub(now.0).min(number(length)))
        }),
    })
}

/// SQLite's integers have a sign. None of ours comes near the last bit.
fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// And back. None that is stored is negative.
fn number(integer: i64) -> u64 {
    u64::try_from(integer).unwrap_or_default()
}

/// Whole milliseconds, rounded up: nothing comes back too early.
fn millis(length: Duration) -> i64 {
    i64::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
