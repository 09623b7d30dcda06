//! Connections to an SQLite file that are kept between transactions, and the transaction that holds one.
//!
//! Nothing here waits but for a turn: SQLite is called where the call stands, and a transaction goes from its beginning to its
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
const CROWDED: Duration = Duration::from_secs(2);

/// Transactions of one kind. Cheap to clone; clones share the connections.
#[derive(Clone)]
pub(crate) struct Lane(Arc<Inner>);

struct Inner {
    file: PathBuf,
    access: Access,
    /// How many may run at a time, and those that nobody runs now.
    width: u32,
    turns: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
    /// When another process was last seen to have the lock.
    crowded: Mutex<Option<Instant>>,
    /// Which file it was when the first connection was made.
    identity: OnceLock<Option<Identity>>,
    /// How long to wait for others, inside of the process and outside.
    patience: Duration,
}

/// What stays the same as long as a file is the same one, where the system has such a thing.
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(file: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_file: &Path) -> Option<Identity> {
    None
}

impl Inner {
    /// Connections outlive their file: what they write after it was deleted or replaced is lost.
    fn is_in_place(&self) -> bool {
        self.identity.get().is_none_or(|first| *first == identity(&self.file))
    }

    /// A lock that another process holds is not waited for here, where that would hold up the thread.
    fn begin(&self, connection: &Connection) -> Result<(), rusqlite::Error> {
        match self.access {
            Access::Read => connection.execute_batch("BEGIN DEFERRED"),
            Access::Write => {
                connection.busy_timeout(Duration::ZERO)?;
                let begun = connection.execute_batch("BEGIN IMMEDIATE");
                connection.busy_timeout(self.patience)?;
                begun
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    /// Connects when it is first used.
    pub(super) fn new(file: PathBuf, access: Access, width: u32, patience: Duration) -> Self {
        let turns = Arc::new(Semaphore::new(width as usize));
        let (idle, crowded, identity) = (Mutex::default(), Mutex::default(), OnceLock::new());
        Self(Arc::new(Inner { file, access, width, turns, idle, crowded, identity, patience }))
    }

    /// Connects at once, so that a file that cannot be opened is noticed.
    pub(super) fn connected(self) -> Result<Self, StoreError> {
        let connection = self.connect()?;
        self.0.idle().push(connection);
        Ok(self)
    }

    /// Another connection, which is none of the lane's.
    pub(super) fn connect(&self) -> Result<Connection, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.0.file, flags)?;
        self.0.identity.get_or_init(|| identity(&self.0.file));
        connection.busy_timeout(self.0.patience)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")?;
        if self.0.access == Access::Read {
            connection.execute_batch("PRAGMA query_only = 1")?;
        }
        Ok(connection)
    }

    /// Waits for a turn.
    pub(super) async fn turn(&self) -> Result<Turn, StoreError> {
        let turn = tokio::time::timeout(self.0.patience, Arc::clone(&self.0.turns).acquire_owned()).await;
        let turn = turn.map_err(|_| StoreError::Busy)?.map_err(|_| StoreError::Closed)?;
        Ok(Turn { lane: self.clone(), _turn: turn })
    }

    /// Waits for the transactions that run, and closes their connections.
    pub(super) async fn close(&self) {
        // Closed by somebody else, there is nothing left to wait for.
        let all = self.0.turns.acquire_many(self.0.width).await;
        self.0.turns.close();
        drop(all);
        self.0.idle().clear();
    }
}

/// The right to a transaction.
pub(crate) struct Turn {
    lane: Lane,
    _turn: OwnedSemaphorePermit,
}

impl Turn {
    /// Whether to leave the lock to others for a moment. A process that has just had it would have it again before those that
    /// sleep for it wake up, and again, until one of them has lost its patience.
    pub(super) fn is_crowded(&self) -> bool {
        let seen = *self.lane.0.crowded.lock().unwrap_or_else(PoisonError::into_inner);
        seen.is_some_and(|seen| seen.elapsed() < CROWDED)
    }

    /// Begins the transaction. One that writes has the lock of the file from here on, or is told that it is busy.
    pub(super) fn begin(self) -> Result<Held, (Self, StoreError)> {
        if !self.lane.0.is_in_place() {
            return Err((self, StoreError::Displaced));
        }
        let idle = self.lane.0.idle().pop();
        let connection = match idle.map_or_else(|| self.lane.connect(), Ok) {
            Ok(connection) => connection,
            Err(error) => return Err((self, error)),
        };
        match self.lane.0.begin(&connection) {
            Ok(()) => Ok(Held { connection: Some(connection), turn: self }),
            Err(error) => {
                self.lane.0.idle().push(connection);
                let error = error.into();
                if matches!(error, StoreError::Busy) {
                    let now = Some(Instant::now());
                    *self.lane.0.crowded.lock().unwrap_or_else(PoisonError::into_inner) = now;
                }
                Err((self, error))
            }
        }
    }
}

/// An open transaction. Dropped before its commit it leaves no trace.
pub(crate) struct Held {
    /// There until it is dropped.
    connection: Option<Connection>,
    turn: Turn,
}

impl Held {
    pub(super) fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("only the end takes it")
    }

    pub(super) fn commit(self) -> Result<(), StoreError> {
        Ok(self.connection().execute_batch("COMMIT")?)
    }
}

impl Drop for Held {
    /// Takes back what was not committed and gives back the connection. On a full disk SQLite may have done so itself. A
    /// connection that cannot take it back is closed, which does.
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok() {
            self.turn.lane.0.idle().push(connection);
        }
    }
}
