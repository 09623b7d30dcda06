//! Who waits for events is woken here: by commits of this process, and by those of others on PostgreSQL.
//!
//! A waker says only "look again"; what is new is always read from the store. On SQLite other processes do not
//! wake anybody: a waiting call sees their events when its time is up.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPool};
use tokio::sync::{OnceCell, watch};
use tokio::task::JoinHandle;

use super::StoreError;
use super::pool::{Connections, Pools};

const CHANNEL: &str = "tenon_work";

/// Sent inside the transaction, so that PostgreSQL delivers it with the commit. SQLite has no such thing.
pub(crate) const NOTIFY: &str = "SELECT pg_notify('tenon_work', $1)";

/// How long the listener pauses before it tries to reach a server that went away.
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);

#[derive(Clone)]
pub(crate) struct News(Arc<Inner>);

struct Inner {
    ticks: watch::Sender<u64>,
    postgres: Option<PgPool>,
    listener: OnceCell<JoinHandle<()>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.get() {
            listener.abort();
        }
    }
}

/// A place in the queue of those who wait.
pub(crate) struct Waiting(watch::Receiver<u64>);

impl Waiting {
    /// Comes back after the next commit since the last call.
    pub(crate) async fn news(&mut self) {
        if self.0.changed().await.is_err() {
            // The store was closed: nothing will ever come, and the caller's deadline ends the wait.
            std::future::pending::<()>().await;
        }
    }
}

impl News {
    pub(crate) fn new(pools: &Pools) -> Self {
        let postgres = match &pools.connections {
            Connections::Sqlite { .. } => None,
            Connections::Postgres(pool) => Some(pool.clone()),
        };
        Self(Arc::new(Inner { ticks: watch::Sender::new(0), postgres, listener: OnceCell::new() }))
    }

    /// Says that something was committed.
    pub(crate) fn publish(&self) {
        self.0.ticks.send_modify(|tick| *tick = tick.wrapping_add(1));
    }

    /// From here on every commit is noticed.
    pub(crate) async fn subscribe(&self) -> Result<Waiting, StoreError> {
        if let Some(pool) = &self.0.postgres {
            let listen = || async {
                let listener = listen(pool).await?;
                Ok::<_, StoreError>(tokio::spawn(forward(listener, pool.clone(), self.0.ticks.clone())))
            };
            self.0.listener.get_or_try_init(listen).await?;
        }
        Ok(Waiting(self.0.ticks.subscribe()))
    }

    pub(crate) fn close(&self) {
        if let Some(listener) = self.0.listener.get() {
            listener.abort();
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
