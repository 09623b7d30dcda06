//! Connections: how each engine is opened and how its transactions begin.

use std::path::Path;
use std::time::Duration;

use futures::TryFutureExt;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgSslMode};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection, Executor};
use tokio::time::Instant;

use super::ahead::Question;
use super::lane::Lane;
use super::{Engine, Location, StoreError, Tx};

/// Enough for every statement of the crate, so that none is prepared twice on a connection.
const STATEMENTS: usize = 256;

const READERS: u32 = 4;
const POSTGRES_CONNECTIONS: u32 = 8;

/// SQLite answers "busy" without asking its busy handler in a few short states (a database that is just being
/// made, or whose last user is just leaving). Such an answer is asked again after this pause.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

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
                until_free(patience, || sqlite(path, patience)).await
            }
            Location::Postgres(url) => {
                check_parameters(url)?;
                postgres(url, patience).await
            }
        };
        match connections {
            Ok(connections) => Ok(Self { connections, patience }),
            Err(StoreError::Database(error)) => Err(StoreError::Open(error)),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn engine(&self) -> Engine {
        match self.connections {
            Connections::Sqlite { .. } => Engine::Sqlite,
            Connections::Postgres(_) => Engine::Postgres,
        }
    }

    pub(crate) async fn read(&self, ahead: &[Question]) -> Result<Tx, StoreError> {
        Ok(match &self.connections {
            Connections::Sqlite { readers, .. } => {
                until_free(self.patience, || readers.begin(ahead.to_vec())).await?.into()
            }
            Connections::Postgres(pool) => {
                pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?.into()
            }
        })
    }

    pub(crate) async fn write(&self, ahead: &[Question]) -> Result<Tx, StoreError> {
        Ok(match &self.connections {
            Connections::Sqlite { writer, .. } => {
                until_free(self.patience, || writer.begin(ahead.to_vec())).await?.into()
            }
            Connections::Postgres(pool) => pool.begin().await?.into(),
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

async fn sqlite(path: &Path, patience: Duration) -> Result<Connections, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(patience)
        .statement_cache_capacity(STATEMENTS);
    let writer = Lane::new("BEGIN IMMEDIATE", 1, options.clone(), patience).connected().await?;
    let reading = options.pragma("query_only", "1");
    let readers = Lane::new("BEGIN DEFERRED", READERS, reading, patience);
    Ok(Connections::Sqlite { writer, readers })
}

/// What may stand behind the `?` of a URL.
const PARAMETERS: [&str; 9] =
    ["application_name", "dbname", "host", "hostaddr", "options", "password", "port", "sslmode", "user"];

/// What only makes sense with TLS. The driver would take them and speak in the clear.
const TLS_PARAMETERS: [&str; 3] = ["sslcert", "sslkey", "sslrootcert"];

/// Refuses parameters that nobody knows. The driver would log them with their values, and a misspelt `password` is one.
fn check_parameters(url: &str) -> Result<(), StoreError> {
    let (_, parameters) = url.split_once('?').unwrap_or_default();
    let names = parameters.split('&').filter_map(|pair| pair.split('=').next());
    match names.filter(|name| !name.is_empty()).find(|name| !PARAMETERS.contains(name)) {
        Some(name) if TLS_PARAMETERS.contains(&name) => Err(StoreError::Tls),
        Some(unknown) => Err(StoreError::Parameter(unknown.chars().take(60).collect())),
        None => Ok(()),
    }
}

/// Refuses what asks for TLS, be it the URL or the environment, before anything is said to the server.
fn check_tls(options: &PgConnectOptions) -> Result<(), StoreError> {
    match options.get_ssl_mode() {
        PgSslMode::Require | PgSslMode::VerifyCa | PgSslMode::VerifyFull => Err(StoreError::Tls),
        PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Prefer => Ok(()),
    }
}

/// Compiling a statement takes longer than any of ours runs. Engines that only speak the protocol may not know the setting.
const NOT_COMPILED: &str = "SELECT set_config('jit', 'off', false) FROM pg_settings WHERE name = 'jit'";

async fn postgres(url: &str, patience: Duration) -> Result<Connections, StoreError> {
    let options: PgConnectOptions = url.parse()?;
    check_tls(&options)?;
    let lock_timeout = format!("{}ms", patience.as_millis());
    let options = options.statement_cache_capacity(STATEMENTS).options([("lock_timeout", lock_timeout)]);
    // The pool waits for a server that is not there, which is right for one that is being restarted. One that was never
    // there is a mistake, and is told at once.
    let first = tokio::time::timeout(patience, PgConnection::connect_with(&options)).await;
    first.map_err(|_| sqlx::Error::PoolTimedOut)??.close().await?;
    let pool = PgPoolOptions::new().max_connections(POSTGRES_CONNECTIONS).acquire_timeout(patience);
    let pool = pool.after_connect(|connection, _| Box::pin(connection.execute(NOT_COMPILED).map_ok(drop)));
    Ok(Connections::Postgres(pool.connect_lazy_with(options)))
}

async fn until_free<T, F>(patience: Duration, attempt: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, sqlx::Error>>,
{
    let deadline = Instant::now() + patience;
    loop {
        match attempt().await.map_err(StoreError::from) {
            Err(StoreError::Busy) if Instant::now() < deadline => tokio::time::sleep(BUSY_PAUSE).await,
            result => return result,
        }
    }
}
