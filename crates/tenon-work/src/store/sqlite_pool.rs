//! Connections to an SQLite file that are kept between transactions, and the transaction that holds one.
//!
//! Nothing here waits but for a permit: SQLite is called where the call stands, and a transaction goes from its beginning to its
//! end without a pause. So whoever has other things to do on his thread runs it as [`super::Store::apart`] does.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::StoreError;
use crate::catalog::Access;

/// Enough for every statement of the crate, so that none is prepared twice on a connection.
const STATEMENTS: usize = 256;

/// For how long a process that met others at the lock lets them go first.
const CONTENDED: Duration = Duration::from_secs(2);

/// Transactions of one kind. Cheap to clone; clones share the connections.
#[derive(Clone)]
pub(crate) struct SqlitePool(Arc<Inner>);

struct Inner {
    file: PathBuf,
    access: Access,
    /// How many may run at a time, and those that nobody runs now.
    size: u32,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
    /// When another process was last seen to have the lock.
    contended: Mutex<Option<Instant>>,
    /// Which file it was when the first connection was made.
    file_id: OnceLock<Option<FileId>>,
    /// How long to wait for others, inside of the process and outside.
    lock_timeout: Duration,
}

/// What stays the same as long as a file is the same one, where the system has such a thing.
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
    /// Connections outlive their file: what they write after it was deleted or replaced is lost.
    fn is_same_file(&self) -> bool {
        self.file_id.get().is_none_or(|first| *first == file_id(&self.file))
    }

    /// A lock that another process holds is not waited for here, where that would hold up the thread.
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
    /// Connects when it is first used.
    pub(super) fn new(file: PathBuf, access: Access, size: u32, lock_timeout: Duration) -> Self {
        let permits = Arc::new(Semaphore::new(size as usize));
        let (idle, contended, file_id) = (Mutex::default(), Mutex::default(), OnceLock::new());
        Self(Arc::new(Inner { file, access, size, permits, idle, contended, file_id, lock_timeout }))
    }

    /// Connects at once, so that a file that cannot be opened is noticed.
    pub(super) fn connected(self) -> Result<Self, StoreError> {
        let connection = self.connect()?;
        self.0.idle().push(connection);
        Ok(self)
    }

    /// Another connection, which is none of the pool's.
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

    /// Waits for a permit.
    pub(super) async fn acquire(&self) -> Result<SqlitePermit, StoreError> {
        let permit =
            tokio::time::timeout(self.0.lock_timeout, Arc::clone(&self.0.permits).acquire_owned()).await;
        let permit = permit.map_err(|_| StoreError::Busy)?.map_err(|_| StoreError::Closed)?;
        Ok(SqlitePermit { pool: self.clone(), _permit: permit })
    }

    /// Waits for the transactions that run, and closes their connections.
    pub(super) async fn close(&self) {
        // Closed by somebody else, there is nothing left to wait for.
        let all = self.0.permits.acquire_many(self.0.size).await;
        self.0.permits.close();
        drop(all);
        self.0.idle().clear();
    }
}

/// The right to a transaction.
pub(crate) struct SqlitePermit {
    pool: SqlitePool,
    _permit: OwnedSemaphorePermit,
}

impl SqlitePermit {
    /// Whether to leave the lock to others for a moment. A process that has just had it would have it again before those that
    /// sleep for it wake up, and again, until one of them has lost its lock_timeout.
    pub(super) fn is_contended(&self) -> bool {
        let seen = *self.pool.0.contended.lock().unwrap_or_else(PoisonError::into_inner);
        seen.is_some_and(|seen| seen.elapsed() < CONTENDED)
    }

    /// Begins the transaction. One that writes has the lock of the file from here on, or is told that it is busy.
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

/// An open transaction. Dropped before its commit it leaves no trace.
pub(crate) struct SqliteTransaction {
    /// There until it is dropped.
    connection: Option<Connection>,
    permit: SqlitePermit,
}

impl SqliteTransaction {
    pub(super) fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("only the end takes it")
    }

    pub(super) fn commit(self) -> Result<(), StoreError> {
        Ok(self.connection().execute_batch("COMMIT")?)
    }
}

impl Drop for SqliteTransaction {
    /// Takes back what was not committed and gives back the connection. On a full disk SQLite may have done so itself. A
    /// connection that cannot take it back is closed, which does.
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok() {
            self.permit.pool.0.idle().push(connection);
        }
    }
}
