//! The store: one schema on SQLite or PostgreSQL, one transaction per mutation.
//!
//! Concurrency: SQLite has one writer connection per process, which begins transactions with `IMMEDIATE`, so a writer
//! waits for the lock at the beginning and never fails in the middle; writers of several processes queue (`write_queue`),
//! and readers have their own snapshots (WAL).
//! PostgreSQL writers lock the row of the workspace before they read, so writers of one workspace queue, and what they
//! read is not stale. `read_ahead` reads with the lock, and drops what another writer may have changed. Small writes
//! go without the lock first (`optimistic`).

mod batch;
mod change_notifier;
mod full_text;
mod maintenance;
mod migrate;
mod optimistic;
mod pool;
mod postgres;
mod schema;
mod sqlite;
mod sqlite_pool;
mod store_error;
mod tx;
mod write_queue;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use tokio::runtime::{Handle, RuntimeFlavor};

pub(crate) use change_notifier::ChangeNotifier;
pub use change_notifier::ChangeSubscription;
pub(crate) use full_text::{CandidateSearch, matching_sqlite};
pub(crate) use migrate::SCHEMA_VERSION;
pub(crate) use optimistic::{OptimisticWriter, Unread};
pub use store_error::StoreError;
pub(crate) use tx::{Arg, Row, Sql, Tx, args};

use crate::catalog::Access;
use pool::{Pools, TxPermit};

/// How long a writer waits for a lock before it fails with [`StoreError::Busy`].
const LOCK_TIMEOUT: Duration = Duration::from_secs(45);

/// Where the data lives.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// A file; it and its folder are created if missing.
    Sqlite(PathBuf),
    /// A `postgres://` URL, which may hold a password.
    Postgres(String),
}

impl StoreLocation {
    /// Reads the `store` setting: a `postgres://` URL, or else an absolute path.
    ///
    /// # Errors
    /// For other URLs and for relative paths.
    pub fn parse(text: &str) -> Result<Self, StoreLocationError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        let path = PathBuf::from(text);
        match path.is_absolute() {
            true => Ok(Self::Sqlite(path)),
            false if text.contains("://") => Err(StoreLocationError::Scheme),
            false => Err(StoreLocationError::Relative),
        }
    }
}

/// Why a `store` setting is invalid. It never quotes the setting, which may contain a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StoreLocationError {
    #[error("the `store` setting is a URL of a scheme other than `postgres`")]
    Scheme,
    #[error("the `store` setting is neither an absolute path nor a URL")]
    Relative,
}

/// For people and logs: a URL without password and parameters, which may contain secrets.
impl fmt::Display for StoreLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = match self {
            Self::Sqlite(path) => return write!(formatter, "{}", path.display()),
            Self::Postgres(url) => url.split('?').next().unwrap_or_default(),
        };
        let Ok(options) = url.parse::<PgConnectOptions>() else {
            return formatter.write_str("postgres://…");
        };
        let (user, database) = (options.get_username(), options.get_database().unwrap_or_default());
        match options.get_socket() {
            Some(socket) => write!(formatter, "postgres://{user}@{}/{database}", socket.display()),
            None => {
                let (host, port) = (options.get_host(), options.get_port());
                write!(formatter, "postgres://{user}@{host}:{port}/{database}")
            }
        }
    }
}

impl fmt::Debug for StoreLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The database behind a [`Store`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
}

/// An open store. Cheap to clone; clones share its connections.
#[derive(Clone)]
pub struct Store {
    pools: Pools,
    changes: ChangeNotifier,
    found_version: i64,
}

impl Store {
    /// Opens the store, creates it if missing, and migrates the schema.
    ///
    /// # Errors
    /// When it cannot be reached, or has a newer schema.
    pub async fn open(location: &StoreLocation) -> Result<Self, StoreError> {
        Self::open_with(location, LOCK_TIMEOUT).await
    }

    /// The same with another lock timeout.
    ///
    /// # Errors
    /// Like [`Store::open`].
    pub async fn open_with(location: &StoreLocation, lock_timeout: Duration) -> Result<Self, StoreError> {
        let pools = Pools::open(location, lock_timeout).await?;
        let found_version = allow_blocking(pools.backend(), migrate::run(&pools)).await?;
        let changes = ChangeNotifier::new(&pools);
        Ok(Self { pools, changes, found_version })
    }

    /// `sqlite` or `postgres`.
    pub fn backend_name(&self) -> &'static str {
        match self.pools.backend() {
            Backend::Sqlite => "sqlite",
            Backend::Postgres => "postgres",
        }
    }

    /// The schema version when the store was opened; 0 if it was new.
    pub fn found_version(&self) -> i64 {
        self.found_version
    }

    /// The current schema version.
    pub fn schema_version(&self) -> i64 {
        SCHEMA_VERSION
    }

    /// Waits until a transaction may begin: writers queue.
    pub(crate) async fn acquire(&self, access: Access) -> Result<TxPermit, StoreError> {
        self.pools.acquire(access).await
    }

    /// A consistent snapshot.
    pub(crate) async fn read(&self) -> Result<Tx, StoreError> {
        self.acquire(Access::Read).await?.begin().await
    }

    /// A transaction that may write.
    pub(crate) async fn write(&self) -> Result<Tx, StoreError> {
        self.acquire(Access::Write).await?.begin().await
    }

    /// For writes without a lock, if this store can do them.
    pub(crate) fn optimistic(&self) -> Option<&OptimisticWriter> {
        self.pools.optimistic()
    }

    /// Runs a transaction in a way that lets it block the thread.
    pub(crate) async fn allow_blocking<T>(&self, inside: impl Future<Output = T>) -> T {
        allow_blocking(self.pools.backend(), inside).await
    }

    pub(crate) fn changes(&self) -> &ChangeNotifier {
        &self.changes
    }

    /// Starts to observe commits of this process and of others.
    ///
    /// # Errors
    /// When the database server cannot be reached.
    pub async fn subscribe(&self) -> Result<ChangeSubscription, StoreError> {
        self.changes.subscribe().await
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.changes.close();
        self.pools.close().await;
    }
}

/// SQLite calls block the thread. On a multi-threaded runtime another thread takes over its other tasks.
async fn allow_blocking<T>(backend: Backend, inside: impl Future<Output = T>) -> T {
    let runtime = Handle::current();
    if backend == Backend::Sqlite && runtime.runtime_flavor() == RuntimeFlavor::MultiThread {
        tokio::task::block_in_place(|| runtime.block_on(inside))
    } else {
        inside.await
    }
}
