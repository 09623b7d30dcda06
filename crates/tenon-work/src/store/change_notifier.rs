//! Who waits for events is woken here: by commits of this process and by those of others.
//!
//! A waker says only "look again"; what is new is always read from the store. PostgreSQL sends notifications. SQLite has
//! nothing to send: whoever waits looks at its count of foreign commits at intervals, and nobody looks when nobody waits.

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

/// How long the listener pauses before it tries to reach a server that went away.
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);

/// How often a waiting call looks for commits of other processes in an SQLite file. A look reads a number in shared memory.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub(crate) struct ChangeNotifier(Arc<Inner>);

struct Inner {
    ticks: watch::Sender<u64>,
    others: Others,
}

/// How commits of other processes are noticed.
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

/// Looks at the count of commits that SQLite keeps for each connection: those of all other connections.
struct CommitPoller {
    readers: SqlitePool,
    /// All who wait share it: whoever sees a change tells the others.
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// There once somebody has waited. Each connection counts for itself, so this one is kept.
    connection: Option<rusqlite::Connection>,
    commits: Option<i64>,
}

impl CommitPoller {
    /// Whether anybody has committed since the last look. A store that cannot be looked at has no news.
    fn has_changed(&self) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match self.look(&mut seen) {
            Ok(now) => seen.commits.replace(now) != Some(now),
            Err(error) => {
                tracing::debug!(%error, "cannot look for commits of others");
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

/// A place in the queue of those who wait.
pub(crate) struct ChangeSubscription {
    ticks: watch::Receiver<u64>,
    news: ChangeNotifier,
}

impl ChangeSubscription {
    /// Comes back after the next commit since the last call.
    pub(crate) async fn next(&mut self) {
        let Self { ticks, news } = self;
        let mut heard = async || ticks.changed().await.expect("the sender is part of the news we hold");
        let Others::Sqlite(lookout) = &news.0.others else { return heard().await };
        while tokio::time::timeout(LOOK, heard()).await.is_err() {
            if lookout.has_changed() {
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

    /// Says that something was committed.
    pub(crate) fn publish(&self) {
        self.0.publish();
    }

    /// From here on every commit is noticed.
    pub(crate) async fn subscribe(&self) -> Result<ChangeSubscription, StoreError> {
        match &self.0.others {
            // Others who wait already may not have looked yet.
            Others::Sqlite(lookout) => {
                if lookout.has_changed() {
                    self.publish();
                }
            }
            Others::Postgres { pool, listener } => {
                let listen = || async {
                    let listener = postgres::while_there(pool, listen(pool)).await?;
                    Ok::<_, StoreError>(tokio::spawn(forward(listener, pool.clone(), self.0.ticks.clone())))
                };
                listener.get_or_try_init(listen).await?;
            }
        }
        Ok(ChangeSubscription { ticks: self.0.ticks.subscribe(), news: self.clone() })
    }

    pub(crate) fn close(&self) {
        self.0.stop();
        if let Others::Sqlite(lookout) = &self.0.others {
            *lookout.seen.lock().unwrap_or_else(PoisonError::into_inner) = Seen::default();
        }
    }
}

async fn listen(pool: &PgPool) -> Result<PgListener, sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    Ok(listener)
}

/// Turns notifications into ticks. A lost connection is a tick too: what came meanwhile is in the store.
async fn forward(mut listener: PgListener, pool: PgPool, ticks: watch::Sender<u64>) {
    loop {
        let received = listener.try_recv().await;
        ticks.send_modify(|tick| *tick = tick.wrapping_add(1));
        if let Err(error) = received {
            tracing::warn!(%error, "lost the notification channel of the store");
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
