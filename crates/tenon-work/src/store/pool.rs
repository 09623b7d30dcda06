//! Connections: how a transaction begins on each engine.

use std::path::Path;
use std::time::Duration;

use sqlx::postgres::PgPool;
use tokio::time::Instant;

use super::lane::{Lane, Turn};
use super::{Engine, Location, StoreError, Tx, postgres};
use crate::catalog::Access;

const READERS: u32 = 4;

/// How long to wait before the lock of an SQLite file is tried again. SQLite has no queue for it, and its own way to wait is to
/// sleep.
const BUSY_PAUSE: Duration = Duration::from_millis(2);

#[derive(Clone)]
pub(crate) struct Pools {
    pub connections: Connections,
    /// How long a writer waits for others.
    patience: Duration,
}

#[derive(Clone)]
pub(crate) enum Connections {
    Sqlite { writer: Lane, readers: Lane },
    Postgres(PgPool),
}

impl Pools {
    pub(crate) async fn open(location: &Location, patience: Duration) -> Result<Self, StoreError> {
        let connections = match location {
            Location::Sqlite(path) => {
                make_file(path)?;
                let lane = |access, width| Lane::new(path.clone(), access, width, patience);
                let writer = until_free(patience, (), |()| {
                    lane(Access::Write, 1).connected().map_err(|error| ((), error))
                });
                let readers = lane(Access::Read, READERS);
                writer.await.map(|writer| Connections::Sqlite { writer, readers })
            }
            Location::Postgres(url) => postgres::open(url, patience).await.map(Connections::Postgres),
        };
        match connections {
            Ok(connections) => Ok(Self { connections, patience }),
            Err(StoreError::Database(error) | StoreError::Unreachable(error)) => Err(StoreError::Open(error)),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn engine(&self) -> Engine {
        match self.connections {
            Connections::Sqlite { .. } => Engine::Sqlite,
            Connections::Postgres(_) => Engine::Postgres,
        }
    }

    /// Waits until a transaction may begin.
    pub(crate) async fn opening(&self, access: Access) -> Result<Opening, StoreError> {
        Ok(match &self.connections {
            Connections::Sqlite { writer, readers } => {
                let lane = match access {
                    Access::Read => readers,
                    Access::Write => writer,
                };
                Opening::Sqlite { turn: lane.turn().await?, patience: self.patience }
            }
            Connections::Postgres(pool) => Opening::Postgres { pool: pool.clone(), access },
        })
    }

    pub(crate) async fn close(&self) {
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
pub(crate) enum Opening {
    Sqlite { turn: Turn, patience: Duration },
    Postgres { pool: PgPool, access: Access },
}

impl Opening {
    pub(crate) async fn begin(self) -> Result<Tx, StoreError> {
        Ok(match self {
            Self::Sqlite { turn, patience } => {
                if turn.is_crowded() {
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
                until_free(patience, turn, Turn::begin).await?.into()
            }
            Self::Postgres { pool, access } => postgres::begin(&pool, access).await?.into(),
        })
    }
}

/// Makes the file and its folder. What is noted there is nobody else's business.
fn make_file(path: &Path) -> Result<(), StoreError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .map_err(|source| StoreError::Folder { path: folder.to_owned(), source })?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // Whatever else is wrong with the path, the database will say.
    drop(options.open(path));
    Ok(())
}

/// Attempts it again as long as others are in the way; a failed attempt hands back what it was given.
async fn until_free<G, T>(
    patience: Duration,
    mut given: G,
    attempt: impl Fn(G) -> Result<T, (G, StoreError)>,
) -> Result<T, StoreError> {
    let deadline = Instant::now() + patience;
    loop {
        match attempt(given) {
            Ok(done) => return Ok(done),
            Err((back, StoreError::Busy)) if Instant::now() < deadline => given = back,
            Err((_, error)) => return Err(error),
        }
        tokio::time::sleep(BUSY_PAUSE).await;
    }
}
