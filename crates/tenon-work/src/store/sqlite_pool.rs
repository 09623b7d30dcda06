//! A pool of connections to an SQLite file, and the transaction that holds one.
//!
//! Only `acquire` is asynchronous. Transactions block the calling thread; see [`super::Store::allow_blocking`].

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::StoreError;
use super::write_queue::{self, Ticket};
use crate::catalog::Access;

/// Enough for every statement of the crate, so that none is prepared twice on a connection.
const STATEMENTS: usize = 256;

/// How long a process that found the lock busy lets others go first.
const CONTENDED: Duration = Duration::from_secs(2);

/// Connections for reads or for writes. Cheap to clone; clones share the connections.
#[derive(Clone)]
pub(crate) struct SqlitePool(Arc<Inner>);

struct Inner {
    file: PathBuf,
    access: Access,
    /// How many transactions may run at a time.
    size: u32,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
    /// When another process last held the lock.
    contended: Mutex<Option<Instant>>,
    /// The file at the first connection.
    file_id: OnceLock<Option<FileId>>,
    /// How long to wait for other transactions, of this and other processes.
    lock_timeout: Duration,
}

/// Device and inode, where the system has them.
type FileId = (u64, u64);

#[cfg(unix)]
fn file_id(file: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn file_id(_file: &Path) -> Option<FileId> {
    None
}

impl Inner {
    /// Connections outlive their file: writes after it was deleted or replaced would be lost.
    fn is_same_file(&self) -> bool {
        self.file_id.get().is_none_or(|first| *first == file_id(&self.file))
    }

    /// Does not wait for a lock of another process, which would block the thread.
    fn begin(&self, connection: &Connection) -> Result<(), rusqlite::Error> {
        match self.access {
            Access::Read => connection.execute_batch("BEGIN DEFERRED"),
            Access::Write => {
                connection.busy_timeout(Duration::ZERO)?;
                let begun = connection.execute_batch("BEGIN IMMEDIATE");
                connection.busy_timeout(self.lock_timeout)?;
                begun
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SqlitePool {
    /// Connects on first use.
    pub(super) fn new(file: PathBuf, access: Access, size: u32, lock_timeout: Duration) -> Self {
        let permits = Arc::new(Semaphore::new(size as usize));
        let (idle, contended, file_id) = (Mutex::default(), Mutex::default(), OnceLock::new());
        Self(Arc::new(Inner { file, access, size, permits, idle, contended, file_id, lock_timeout }))
    }

    /// Connects at once, to detect a file that cannot be opened.
    pub(super) fn connected(self) -> Result<Self, StoreError> {
        let connection = self.connect()?;
        self.0.idle().push(connection);
        Ok(self)
    }

    /// A connection outside the pool.
    pub(super) fn connect(&self) -> Result<Connection, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.0.file, flags)?;
        self.0.file_id.get_or_init(|| file_id(&self.0.file));
        connection.busy_timeout(self.0.lock_timeout)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")?;
        if self.0.access == Access::Read {
            connection.execute_batch("PRAGMA query_only = 1")?;
        }
        Ok(connection)
    }

    /// Waits until a transaction may begin.
    pub(super) async fn acquire(&self) -> Result<SqlitePermit, StoreError> {
        let permit =
            tokio::time::timeout(self.0.lock_timeout, Arc::clone(&self.0.permits).acquire_owned()).await;
        let permit = permit.map_err(|_| StoreError::Busy)?.map_err(|_| StoreError::Closed)?;
        Ok(SqlitePermit { pool: self.clone(), ticket: None, _permit: permit })
    }

    /// Waits for running transactions, and closes their connections.
    pub(super) async fn close(&self) {
        // If it is closed already, there is nothing to wait for.
        let all = self.0.permits.acquire_many(self.0.size).await;
        self.0.permits.close();
        drop(all);
        self.0.idle().clear();
    }
}

/// Permission to begin a transaction.
pub(crate) struct SqlitePermit {
    pool: SqlitePool,
    /// Of a writer that has its turn among the processes.
    ticket: Option<Ticket>,
    _permit: OwnedSemaphorePermit,
}

impl SqlitePermit {
    /// Waits for the turn of a writer among the processes.
    pub(super) async fn queue(mut self) -> Self {
        if self.pool.0.access == Access::Write {
            self.ticket = write_queue::enter(&self.pool.0.file).await;
        }
        self
    }

    /// Whether to leave the lock to writers that do not queue for a moment. Otherwise a process that has just released it
    /// would take it again before sleeping ones wake up, until one of them times out.
    pub(super) fn is_contended(&self) -> bool {
        let seen = *self.pool.0.contended.lock().unwrap_or_else(PoisonError::into_inner);
        seen.is_some_and(|seen| seen.elapsed() < CONTENDED)
    }

    /// Begins the transaction. A write takes the lock of the file, or fails with `Busy`.
    pub(super) fn begin(self) -> Result<SqliteTransaction, (Self, StoreError)> {
        if !self.pool.0.is_same_file() {
            return Err((self, StoreError::Displaced));
        }
        let idle = self.pool.0.idle().pop();
        let connection = match idle.map_or_else(|| self.pool.connect(), Ok) {
            Ok(connection) => connection,
            Err(error) => return Err((self, error)),
        };
        match self.pool.0.begin(&connection) {
            Ok(()) => Ok(SqliteTransaction { connection: Some(connection), permit: self }),
            Err(error) => {
                self.pool.0.idle().push(connection);
                let error = error.into();
                if matches!(error, StoreError::Busy) {
                    let now = Some(Instant::now());
                    *self.pool.0.contended.lock().unwrap_or_else(PoisonError::into_inner) = now;
                }
                Err((self, error))
            }
        }
    }
}

/// An open transaction. Dropping it before the commit rolls it back.
pub(crate) struct SqliteTransaction {
    /// Present until it is dropped.
    connection: Option<Connection>,
    permit: SqlitePermit,
}

impl SqliteTransaction {
    pub(super) fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("only `drop` takes it")
    }

    pub(super) fn commit(self) -> Result<(), StoreError> {
        Ok(self.connection().execute_batch("COMMIT")?)
    }
}

impl Drop for SqliteTransaction {
    /// Rolls back and returns the connection. On a full disk SQLite may have rolled back itself. A connection that
    /// cannot roll back is closed, which rolls back too.
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok() {
            self.permit.pool.0.idle().push(connection);
        }
        // The lock is free: the next one has its turn.
        self.permit.ticket.take();
    }
}
