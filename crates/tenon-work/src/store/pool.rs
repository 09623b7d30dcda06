//! Connections, and how a transaction begins on each backend.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgPool;
use tokio::time::Instant;

use super::optimistic::OptimisticWriter;
use super::sqlite_pool::{SqlitePermit, SqlitePool};
use super::tx::StatementCache;
use super::{Backend, StoreError, StoreLocation, Tx, postgres};
use crate::catalog::Access;

const READERS: u32 = 4;

/// Pause between attempts to lock an SQLite file that a writer outside of the queue has locked.
const BUSY_PAUSE: Duration = Duration::from_millis(2);

#[derive(Clone)]
pub(crate) struct Pools {
    pub connections: Connections,
    /// How long a writer waits for a lock.
    lock_timeout: Duration,
    /// Of connections to PostgreSQL.
    cache: StatementCache,
    /// None on SQLite, and behind a pooler: its connection keeps settings and prepared statements.
    optimistic: Option<Arc<OptimisticWriter>>,
}

#[derive(Clone)]
pub(crate) enum Connections {
    Sqlite { writer: SqlitePool, readers: SqlitePool },
    Postgres(PgPool),
}

impl Pools {
    pub(crate) async fn open(location: &StoreLocation, lock_timeout: Duration) -> Result<Self, StoreError> {
        let cache = match location {
            StoreLocation::Postgres(url) => postgres::statement_cache(url),
            StoreLocation::Sqlite(_) => StatementCache::On,
        };
        let connections = match location {
            StoreLocation::Sqlite(path) => {
                make_file(path)?;
                let pool = |access, size| SqlitePool::new(path.clone(), access, size, lock_timeout);
                let writer = until_free(lock_timeout, (), |()| {
                    pool(Access::Write, 1).connected().map_err(|error| ((), error))
                });
                let readers = pool(Access::Read, READERS);
                writer.await.map(|writer| Connections::Sqlite { writer, readers })
            }
            StoreLocation::Postgres(url) => {
                Box::pin(postgres::open(url, lock_timeout)).await.map(Connections::Postgres)
            }
        };
        match connections {
            Ok(connections) => {
                let optimistic = match (&connections, cache) {
                    (Connections::Postgres(pool), StatementCache::On) => {
                        Some(Arc::new(OptimisticWriter::new(pool.clone())))
                    }
                    _ => None,
                };
                Ok(Self { connections, lock_timeout, cache, optimistic })
            }
            Err(StoreError::Database(error) | StoreError::Unreachable(error)) => Err(StoreError::Open(error)),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn backend(&self) -> Backend {
        match self.connections {
            Connections::Sqlite { .. } => Backend::Sqlite,
            Connections::Postgres(_) => Backend::Postgres,
        }
    }

    pub(crate) fn optimistic(&self) -> Option<&OptimisticWriter> {
        self.optimistic.as_deref()
    }

    /// Waits until a transaction may begin.
    pub(crate) async fn acquire(&self, access: Access) -> Result<TxPermit, StoreError> {
        Ok(match &self.connections {
            Connections::Sqlite { writer, readers } => {
                let pool = match access {
                    Access::Read => readers,
                    Access::Write => writer,
                };
                TxPermit::Sqlite { permit: pool.acquire().await?, lock_timeout: self.lock_timeout }
            }
            Connections::Postgres(pool) => {
                let (lock_timeout, cache) = (self.lock_timeout, self.cache);
                TxPermit::Postgres { pool: pool.clone(), access, lock_timeout, cache }
            }
        })
    }

    pub(crate) async fn close(&self) {
        if let Some(optimistic) = &self.optimistic {
            optimistic.close().await;
        }
        match &self.connections {
            Connections::Sqlite { writer, readers } => {
                readers.close().await;
                writer.close().await;
            }
            Connections::Postgres(pool) => pool.close().await,
        }
    }
}

/// A transaction that may begin.
pub(crate) enum TxPermit {
    Sqlite { permit: SqlitePermit, lock_timeout: Duration },
    Postgres { pool: PgPool, access: Access, lock_timeout: Duration, cache: StatementCache },
}

impl TxPermit {
    pub(crate) async fn begin(self) -> Result<Tx, StoreError> {
        Ok(match self {
            Self::Sqlite { permit, lock_timeout } => {
                let permit = permit.queue().await;
                if permit.is_contended() {
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
                until_free(lock_timeout, permit, SqlitePermit::begin).await?.into()
            }
            Self::Postgres { pool, access, lock_timeout, cache } => {
                // Boxed: connecting with TLS takes much of the stack.
                let begun = Box::pin(postgres::begin(&pool, access, lock_timeout)).await?;
                Tx::postgres(begun, cache)
            }
        })
    }
}

/// Creates the file and its folder, readable by the user alone.
fn make_file(path: &Path) -> Result<(), StoreError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .map_err(|source| StoreError::Folder { path: folder.to_owned(), source })?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // Other problems with the path are reported when the database opens it.
    drop(options.open(path));
    Ok(())
}

/// Retries while the lock is busy; a failed attempt returns its input.
async fn until_free<G, T>(
    lock_timeout: Duration,
    mut given: G,
    attempt: impl Fn(G) -> Result<T, (G, StoreError)>,
) -> Result<T, StoreError> {
    let deadline = Instant::now() + lock_timeout;
    loop {
        match attempt(given) {
            Ok(done) => return Ok(done),
            Err((back, StoreError::Busy)) if Instant::now() < deadline => given = back,
            Err((_, error)) => return Err(error),
        }
        tokio::time::sleep(BUSY_PAUSE).await;
    }
}
