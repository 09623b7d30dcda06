//! Connections: how each engine is opened and how its transactions begin.

use std::path::Path;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use tokio::time::Instant;

use super::{BUSY_TIMEOUT, Engine, Location, StoreError, Tx};

/// Enough for every statement of the crate, so that none is prepared twice on a connection.
const STATEMENTS: usize = 256;

const READERS: u32 = 4;
const POSTGRES_CONNECTIONS: u32 = 8;

/// SQLite answers "busy" without asking its busy handler in a few short states (a database that is just being
/// made, or whose last user is just leaving). Such an answer is asked again after this pause.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

#[derive(Clone)]
pub(crate) enum Pools {
    Sqlite { writer: SqlitePool, readers: SqlitePool },
    Postgres(PgPool),
}

impl Pools {
    pub(crate) async fn open(location: &Location) -> Result<Self, StoreError> {
        match location {
            Location::Sqlite(path) => {
                make_folder(path)?;
                until_free(|| sqlite(path)).await
            }
            Location::Postgres(url) => postgres(url).await,
        }
    }

    pub(crate) fn engine(&self) -> Engine {
        match self {
            Self::Sqlite { .. } => Engine::Sqlite,
            Self::Postgres(_) => Engine::Postgres,
        }
    }

    pub(crate) async fn read(&self) -> Result<Tx, StoreError> {
        Ok(match self {
            Self::Sqlite { readers, .. } => Tx::Sqlite(until_free(|| readers.begin()).await?),
            Self::Postgres(pool) => {
                Tx::Postgres(pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?)
            }
        })
    }

    pub(crate) async fn write(&self) -> Result<Tx, StoreError> {
        Ok(match self {
            Self::Sqlite { writer, .. } => {
                Tx::Sqlite(until_free(|| writer.begin_with("BEGIN IMMEDIATE")).await?)
            }
            Self::Postgres(pool) => Tx::Postgres(pool.begin().await?),
        })
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite { writer, readers } => {
                readers.close().await;
                writer.close().await;
            }
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

fn make_folder(path: &Path) -> Result<(), StoreError> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => std::fs::create_dir_all(folder)
            .map_err(|source| StoreError::Folder { path: folder.to_owned(), source }),
        _ => Ok(()),
    }
}

async fn sqlite(path: &Path) -> Result<Pools, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(STATEMENTS);
    let pool = |size| SqlitePoolOptions::new().max_connections(size).acquire_timeout(BUSY_TIMEOUT);
    let writer = pool(1).connect_with(options.clone()).await?;
    let readers = pool(READERS).connect_lazy_with(options.pragma("query_only", "1"));
    Ok(Pools::Sqlite { writer, readers })
}

async fn postgres(url: &str) -> Result<Pools, StoreError> {
    let options: PgConnectOptions = url.parse().map_err(StoreError::Open)?;
    let pool = PgPoolOptions::new()
        .max_connections(POSTGRES_CONNECTIONS)
        .acquire_timeout(BUSY_TIMEOUT)
        .connect_with(options.statement_cache_capacity(STATEMENTS))
        .await
        .map_err(StoreError::Open)?;
    Ok(Pools::Postgres(pool))
}

async fn until_free<T, F>(attempt: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, sqlx::Error>>,
{
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match attempt().await.map_err(StoreError::from) {
            Err(StoreError::Busy) if Instant::now() < deadline => tokio::time::sleep(BUSY_PAUSE).await,
            Err(StoreError::Database(error)) => return Err(StoreError::Open(error)),
            result => return result,
        }
    }
}
