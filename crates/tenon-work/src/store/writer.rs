//! The one connection of a process that writes to an SQLite file, and the transaction that holds it.
//!
//! A pool would look after the connection between any two transactions, and a transaction of the driver goes its own way to
//! the thread of the connection to commit. Both are felt beside a commit. So the connection is kept here, `COMMIT` travels
//! with the last writes, and a transaction that ended neither way takes its connection with it: closing takes it back.

use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection, Executor};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Cheap to clone; clones share the connection.
#[derive(Clone)]
pub(crate) struct Writer {
    slot: Arc<Mutex<Slot>>,
    options: Arc<SqliteConnectOptions>,
    patience: Duration,
}

/// Where the connection lies between transactions.
#[derive(Default)]
struct Slot {
    connection: Option<SqliteConnection>,
    closed: bool,
}

impl Writer {
    /// Connects at once, so that a file that cannot be opened is noticed.
    pub(super) async fn open(options: SqliteConnectOptions, patience: Duration) -> Result<Self, sqlx::Error> {
        let connection = Some(SqliteConnection::connect_with(&options).await?);
        let slot = Slot { connection, closed: false };
        Ok(Self { slot: Arc::new(Mutex::new(slot)), options: Arc::new(options), patience })
    }

    /// Begins a transaction once it is its turn. The lock of the file is taken right away.
    pub(super) async fn begin(&self) -> Result<Writing, sqlx::Error> {
        let turn = tokio::time::timeout(self.patience, Arc::clone(&self.slot).lock_owned()).await;
        let mut slot = turn.map_err(|_| sqlx::Error::PoolTimedOut)?;
        if slot.closed {
            return Err(sqlx::Error::PoolClosed);
        }
        let connection = match slot.connection.take() {
            Some(connection) => connection,
            None => SqliteConnection::connect_with(&self.options).await?,
        };
        let mut writing = Writing { slot, connection };
        match writing.connection.execute("BEGIN IMMEDIATE").await {
            Ok(_) => Ok(writing),
            Err(error) => {
                writing.give_back();
                Err(error)
            }
        }
    }

    pub(super) async fn close(&self) {
        let mut slot = self.slot.lock().await;
        slot.closed = true;
        if let Some(connection) = slot.connection.take()
            && let Err(error) = connection.close().await
        {
            tracing::debug!(%error, "cannot close the store");
        }
    }
}

/// An open transaction. Whoever waits for the slot waits for its end.
pub(super) struct Writing {
    slot: OwnedMutexGuard<Slot>,
    connection: SqliteConnection,
}

impl Writing {
    pub(super) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }

    /// Says that the transaction has ended.
    pub(super) fn give_back(self) {
        let Self { mut slot, connection } = self;
        slot.connection = Some(connection);
    }

    /// Takes the transaction back. Where SQLite has done so itself, on a full disk say, it knows of none, and the connection
    /// goes like that of any other transaction that did not end well.
    pub(super) async fn rollback(mut self) -> Result<(), sqlx::Error> {
        self.connection.execute("ROLLBACK").await?;
        self.give_back();
        Ok(())
    }
}
