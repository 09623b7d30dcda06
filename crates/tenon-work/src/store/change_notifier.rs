//! Wakes calls that wait for events after commits of this process and of others.
//!
//! A notification only means "look again"; events are always read from the store. PostgreSQL sends notifications. SQLite
//! has none: waiting calls poll its counter of foreign commits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPool};
use tokio::sync::{OnceCell, watch};
use tokio::task::JoinHandle;

use super::pool::{Connections, Pools};
use super::sqlite_pool::SqlitePool;
use super::{Backend, StoreError, Tx, args, postgres};

const CHANNEL: &str = "tenon_work";

/// Sent inside the transaction, so that PostgreSQL delivers it with the commit.
const NOTIFY: &str = "SELECT pg_notify('tenon_work', $1)";

/// Pause before the listener reconnects.
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);

/// Interval of polling SQLite for commits of other processes. A poll reads a number in shared memory.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub(crate) struct ChangeNotifier(Arc<Inner>);

struct Inner {
    ticks: watch::Sender<u64>,
    others: Others,
}

/// How commits of other processes are detected.
enum Others {
    Sqlite(CommitPoller),
    Postgres { pool: PgPool, listener: OnceCell<JoinHandle<()>> },
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Inner {
    fn stop(&self) {
        if let Others::Postgres { listener, .. } = &self.others
            && let Some(listener) = listener.get()
        {
            listener.abort();
        }
    }

    fn publish(&self) {
        self.ticks.send_modify(|tick| *tick = tick.wrapping_add(1));
    }
}

/// Polls the counter that SQLite keeps for each connection: commits of all other connections.
struct CommitPoller {
    readers: SqlitePool,
    /// Shared by all waiting calls: the first to see a change notifies the others.
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Opened by the first wait, and kept, since the counter belongs to a connection.
    connection: Option<rusqlite::Connection>,
    commits: Option<i64>,
}

impl CommitPoller {
    /// Whether there was a commit since the last poll; false if the store cannot be read.
    fn has_changed(&self) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match self.look(&mut seen) {
            Ok(now) => seen.commits.replace(now) != Some(now),
            Err(error) => {
                tracing::debug!(%error, "cannot poll for commits");
                false
            }
        }
    }

    fn look(&self, seen: &mut Seen) -> Result<i64, StoreError> {
        let connection = match &mut seen.connection {
            Some(connection) => connection,
            none => none.insert(self.readers.connect()?),
        };
        Ok(connection.query_row("PRAGMA data_version", [], |row| row.get(0))?)
    }
}

/// A subscription to commits.
pub struct ChangeSubscription {
    ticks: watch::Receiver<u64>,
    news: ChangeNotifier,
}

impl ChangeSubscription {
    /// Returns after the next commit since the last call.
    pub async fn next(&mut self) {
        let Self { ticks, news } = self;
        let mut heard = async || ticks.changed().await.expect("the notifier holds the sender");
        let Others::Sqlite(poller) = &news.0.others else { return heard().await };
        while tokio::time::timeout(POLL_INTERVAL, heard()).await.is_err() {
            if poller.has_changed() {
                news.publish();
            }
        }
    }
}

impl Tx {
    /// Notifies other processes with the commit. SQLite needs nothing: they poll its commit counter.
    pub(crate) async fn notify(&mut self, workspace: &str) -> Result<(), StoreError> {
        match self.backend() {
            Backend::Sqlite => Ok(()),
            Backend::Postgres => self.write(NOTIFY, args![workspace]).await,
        }
    }
}

impl ChangeNotifier {
    pub(crate) fn new(pools: &Pools) -> Self {
        let others = match &pools.connections {
            Connections::Sqlite { readers, .. } => {
                Others::Sqlite(CommitPoller { readers: readers.clone(), seen: Mutex::default() })
            }
            Connections::Postgres(pool) => Others::Postgres { pool: pool.clone(), listener: OnceCell::new() },
        };
        Self(Arc::new(Inner { ticks: watch::Sender::new(0), others }))
    }

    /// Reports a commit of this process.
    pub(crate) fn publish(&self) {
        self.0.publish();
    }

    /// Starts to observe commits.
    pub(crate) async fn subscribe(&self) -> Result<ChangeSubscription, StoreError> {
        match &self.0.others {
            // Other waiting calls may not have polled yet.
            Others::Sqlite(poller) => {
                if poller.has_changed() {
                    self.publish();
                }
            }
            Others::Postgres { pool, listener } => {
                let listen = || async {
                    let listener = Box::pin(postgres::while_there(pool, listen(pool))).await?;
                    Ok::<_, StoreError>(tokio::spawn(forward(listener, pool.clone(), self.0.ticks.clone())))
                };
                listener.get_or_try_init(listen).await?;
            }
        }
        Ok(ChangeSubscription { ticks: self.0.ticks.subscribe(), news: self.clone() })
    }

    pub(crate) fn close(&self) {
        self.0.stop();
        if let Others::Sqlite(poller) = &self.0.others {
            *poller.seen.lock().unwrap_or_else(PoisonError::into_inner) = Seen::default();
        }
    }
}

async fn listen(pool: &PgPool) -> Result<PgListener, sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    Ok(listener)
}

/// Forwards notifications. A lost connection counts as one: events in between are in the store.
async fn forward(mut listener: PgListener, pool: PgPool, ticks: watch::Sender<u64>) {
    loop {
        let received = listener.try_recv().await;
        ticks.send_modify(|tick| *tick = tick.wrapping_add(1));
        if let Err(error) = received {
            tracing::warn!(%error, "lost the connection for notifications");
            listener = loop {
                if pool.is_closed() {
                    return;
                }
                tokio::time::sleep(RECONNECT_PAUSE).await;
                if let Ok(listener) = listen(&pool).await {
                    break listener;
                }
            };
        }
    }
}
