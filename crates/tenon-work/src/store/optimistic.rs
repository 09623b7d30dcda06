//! Optimistic writes: on PostgreSQL, a call that reads only what its arguments name takes two round trips (decision 0612).
//!
//! The first reads without a lock. The tool runs, and its writes are collected. The second sends them as one statement,
//! which PostgreSQL commits by itself. It fails if the row of the workspace is not as it was read (`Batch::into_guarded`).
//! Every change of a plan, task or step changes that row, so what the call has read is current when it writes.
//! A call that needs more has written nothing, and runs again in a transaction that locks the workspace.
//! A call that follows another one on the same records knows what it would read, and takes one round trip.
//!
//! There is one connection, apart from the pool, which pings a connection after each use. Other writers lock while it is
//! in use: of two optimistic writers one would fail.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, Connection, Executor};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::{Arg, Row, StoreError, Tx, postgres};

/// Calls that lock after a conflict, so that most calls on a contended workspace do not run twice.
const LOCKING_AFTER_CONFLICT: usize = 32;

/// How long the write waits for another writer. To wait longer, a call locks: its transaction is rolled back if it is
/// cancelled meanwhile. Shorter than the time after which PostgreSQL looks for deadlocks and picks a writer to fail.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// How long the read may take. It does not wait for other writers, so the connection is broken if it takes longer.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// What became of a call that did not read before it wrote.
pub(crate) enum Unread<T> {
    Done(T),
    /// Nothing is stored: what it knew is outdated, or does not suffice.
    Nothing,
    /// The connection broke. The server may have stored everything, or may still do so.
    Unknown(StoreError),
}

/// What became of the writes of a call.
enum Written {
    All,
    /// Nothing, because of another writer.
    Conflict,
    /// Nothing, since they do not fit into one statement.
    TooMany,
    Failed(StoreError),
}

pub(crate) struct OptimisticWriter {
    /// Has the options for the connection.
    pool: PgPool,
    /// Empty while a statement is in flight: a call that is cancelled closes its connection.
    connection: Mutex<Option<PgConnection>>,
    /// How many of the next calls must lock.
    locking: AtomicUsize,
}

impl OptimisticWriter {
    pub(super) fn new(pool: PgPool) -> Self {
        Self { pool, connection: Mutex::new(None), locking: AtomicUsize::new(0) }
    }

    /// Reads a row, passes it to `inside`, and sends the writes. None if the call must lock; then nothing is stored.
    pub(crate) async fn run<T, E: From<StoreError>>(
        &self,
        text: &str,
        args: &[Arg<'_>],
        inside: impl AsyncFnOnce(&mut Tx, Row) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        let next = |left: usize| left.checked_sub(1);
        if self.locking.try_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
            || self.pool.is_closed()
        {
            return None;
        }
        let mut connection = self.connection.try_lock().ok()?;
        let row = self.read(&mut connection, text, args).await?;
        let mut tx = Tx::optimistic();
        match inside(&mut tx, row).await {
            _ if tx.needs_lock() => None,
            Ok(done) => match write(&mut connection, tx).await {
                Written::All => Some(Ok(done)),
                Written::Conflict => {
                    self.locking.store(LOCKING_AFTER_CONFLICT, Ordering::Relaxed);
                    None
                }
                Written::TooMany => None,
                Written::Failed(error) => Some(Err(error.into())),
            },
            Err(failure) => Some(Err(failure)),
        }
    }

    /// Sends the writes of a call that knows the state of the workspace. A failure of `inside` may be wrong, since nothing
    /// proves that the state is current.
    pub(crate) async fn run_unread<T, E>(
        &self,
        inside: impl AsyncFnOnce(&mut Tx) -> Result<T, E>,
    ) -> Unread<T> {
        let Ok(mut connection) = self.connection.try_lock() else { return Unread::Nothing };
        if self.locking.load(Ordering::Relaxed) > 0 || connection.is_none() || self.pool.is_closed() {
            return Unread::Nothing;
        }
        let mut tx = Tx::optimistic();
        match inside(&mut tx).await {
            Ok(done) if !tx.needs_lock() => match write(&mut connection, tx).await {
                Written::All => Unread::Done(done),
                Written::Conflict | Written::TooMany => Unread::Nothing,
                Written::Failed(error @ StoreError::Unknown(_)) => Unread::Unknown(error),
                Written::Failed(_) => Unread::Nothing,
            },
            Ok(_) | Err(_) => Unread::Nothing,
        }
    }

    /// None after a failure, which closes the connection: a transaction waits for the server, or reports the error.
    async fn read(&self, slot: &mut Option<PgConnection>, text: &str, args: &[Arg<'_>]) -> Option<Row> {
        let connection = slot.take();
        // Boxed: connecting with TLS takes much of the stack.
        let read = Box::pin(async {
            let mut connection = match connection {
                Some(connection) => connection,
                None => self.connect().await?,
            };
            let row = postgres::bound(text, args).fetch_optional(&mut connection).await?;
            Ok::<_, sqlx::Error>((connection, row.as_ref().map(postgres::row).transpose()?))
        });
        let timed_out = |_| Err(io::Error::from(io::ErrorKind::TimedOut).into());
        match timeout(READ_TIMEOUT, read).await.unwrap_or_else(timed_out) {
            Ok((connection, row)) => {
                *slot = Some(connection);
                row
            }
            Err(error) => {
                tracing::debug!(%error, "cannot read without a lock");
                None
            }
        }
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = PgConnection::connect_with(&self.pool.connect_options()).await?;
        let settings = format!("SET lock_timeout = {}; {}", LOCK_TIMEOUT.as_millis(), postgres::JIT_OFF);
        connection.execute(AssertSqlSafe(settings)).await?;
        Ok(connection)
    }

    pub(super) async fn close(&self) {
        if let Some(connection) = self.connection.lock().await.take()
            && let Err(error) = connection.close().await
        {
            tracing::debug!(%error, "cannot close a connection");
        }
    }
}

async fn write(slot: &mut Option<PgConnection>, tx: Tx) -> Written {
    let Some((statement, mut connection)) = tx.into_guarded().zip(slot.take()) else {
        return Written::TooMany;
    };
    match postgres::bound(&statement.text, &statement.args).execute(&mut connection).await {
        Ok(_) => {
            *slot = Some(connection);
            Written::All
        }
        Err(error) if is_conflict(&error) => {
            *slot = Some(connection);
            Written::Conflict
        }
        Err(error) => Written::Failed(StoreError::of_commit(error)),
    }
}

/// Whether another writer came between the read and the write, or still holds the lock: the guard divided by zero, a key is
/// taken, serialisation, deadlock, lock not available.
fn is_conflict(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    matches!(code.as_deref(), Some("22012" | "23505" | "40001" | "40P01" | "55P03"))
}
