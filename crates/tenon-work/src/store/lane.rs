//! Connections to an SQLite file that are kept between transactions, and the transaction that holds one.
//!
//! A pool would look after a connection between any two transactions, and a transaction of the driver goes its own way to
//! the thread of the connection to begin and to commit. All three are felt beside a commit. So the connections are kept
//! here, the beginning travels with the first reads and `COMMIT` with the last writes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::TryStreamExt;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection, Either, Executor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ahead::{Ahead, Question};
use super::batch::Packet;
use super::tx::{bound, sqlite_row};

/// Transactions of one kind. Cheap to clone; clones share the connections.
#[derive(Clone)]
pub(crate) struct Lane(Arc<Inner>);

struct Inner {
    /// The statement that begins a transaction.
    begin: &'static str,
    /// How many may run at a time, and those that nobody runs now.
    width: u32,
    turns: Arc<Semaphore>,
    idle: Mutex<Vec<SqliteConnection>>,
    options: SqliteConnectOptions,
    patience: Duration,
}

impl Inner {
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<SqliteConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    /// Connects when it is first used.
    pub(super) fn new(
        begin: &'static str,
        width: u32,
        options: SqliteConnectOptions,
        patience: Duration,
    ) -> Self {
        let turns = Arc::new(Semaphore::new(width as usize));
        Self(Arc::new(Inner { begin, width, turns, idle: Mutex::default(), options, patience }))
    }

    /// Connects at once, so that a file that cannot be opened is noticed.
    pub(super) async fn connected(self) -> Result<Self, sqlx::Error> {
        let connection = self.connect().await?;
        self.0.idle().push(connection);
        Ok(self)
    }

    /// Another connection, which is none of the lane's.
    pub(super) async fn connect(&self) -> Result<SqliteConnection, sqlx::Error> {
        SqliteConnection::connect_with(&self.0.options).await
    }

    /// Begins a transaction once it is its turn, and asks these questions in it.
    pub(super) async fn begin(&self, questions: Vec<Question>) -> Result<(Held, Ahead), sqlx::Error> {
        let turn = tokio::time::timeout(self.0.patience, Arc::clone(&self.0.turns).acquire_owned()).await;
        let turn = turn.map_err(|_| sqlx::Error::PoolTimedOut)?.map_err(|_| sqlx::Error::PoolClosed)?;
        let idle = self.0.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let mut held = Held(Some(Open { connection, lane: Arc::clone(&self.0), turn }));
        let mut answers = Vec::with_capacity(questions.len() + 1);
        match held.begin(Packet::ahead(self.0.begin, &questions), &mut answers).await {
            // The first answer is that of the beginning.
            Ok(()) => Ok((held, Ahead::new(questions, answers.into_iter().skip(1)))),
            Err(error) => {
                // What did not begin need not be taken back.
                if answers.is_empty() {
                    held.give_back();
                }
                Err(error)
            }
        }
    }

    /// Waits for the transactions that run, and closes their connections.
    pub(super) async fn close(&self) {
        // Closed by somebody else, there is nothing left to wait for.
        let all = self.0.turns.acquire_many(self.0.width).await;
        self.0.turns.close();
        drop(all);
        let idle = std::mem::take(&mut *self.0.idle());
        for connection in idle {
            if let Err(error) = connection.close().await {
                tracing::debug!(%error, "cannot close the store");
            }
        }
    }
}

/// A transaction. Dropped before its end it is taken back, and whoever waits for its turn waits for that.
pub(super) struct Held(Option<Open>);

struct Open {
    connection: SqliteConnection,
    lane: Arc<Inner>,
    turn: OwnedSemaphorePermit,
}

impl Held {
    pub(super) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.0.as_mut().expect("there until the end").connection
    }

    /// Begins the transaction, and adds the first row of each statement that ran.
    async fn begin(
        &mut self,
        packet: Packet,
        answers: &mut Vec<Option<super::Row>>,
    ) -> Result<(), sqlx::Error> {
        let text = sqlx::AssertSqlSafe(packet.text);
        let mut events = self.connection().fetch_many(bound!(text, &packet.args));
        let mut first = None;
        while let Some(event) = events.try_next().await? {
            match event {
                Either::Left(_) => answers.push(first.take()),
                Either::Right(row) if first.is_none() => first = Some(sqlite_row(&row)?),
                Either::Right(_) => {}
            }
        }
        Ok(())
    }

    /// Says that the transaction has ended.
    pub(super) fn give_back(mut self) {
        if let Some(open) = self.0.take() {
            open.give_back();
        }
    }

    /// Takes the transaction back.
    pub(super) async fn rollback(mut self) {
        if let Some(open) = self.0.take() {
            open.rollback().await;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Without a runtime the connection is closed here and now, which takes the transaction back too.
        if let Some(open) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(open.rollback());
        }
    }
}

impl Open {
    fn give_back(self) {
        let Self { connection, lane, turn } = self;
        lane.idle().push(connection);
        drop(turn);
    }

    /// Where SQLite has taken the transaction back itself, on a full disk say, it knows of none, and the connection goes.
    async fn rollback(mut self) {
        match self.connection.execute("ROLLBACK").await {
            Ok(_) => self.give_back(),
            Err(error) => tracing::debug!(%error, "cannot take a transaction back"),
        }
    }
}
