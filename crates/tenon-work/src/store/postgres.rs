//! PostgreSQL: connecting, statements and rows.

use std::io;
use std::pin::pin;
use std::time::Duration;

use futures::TryFutureExt;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgRow, PgSslMode};
use sqlx::query::Query;
use sqlx::{
    AssertSqlSafe, Column, Connection, Decode, Executor, Postgres, Row as _, Transaction, TypeInfo, ValueRef,
};
use tokio::time::{Instant, sleep, timeout};

use super::StoreError;
use super::tx::{Arg, Cell, Row, StatementCache};
use crate::catalog::Access;

/// Enough for every statement of the crate, so that none is prepared twice on a connection.
const STATEMENTS: usize = 256;

const CONNECTIONS: u32 = 8;

/// How long a server may be unreachable before a call fails. A restart takes less.
const AWAY: Duration = Duration::from_secs(5);

/// A server that is silent for this long counts as unreachable.
const SILENCE: Duration = Duration::from_secs(10);

const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

/// Parameters allowed in a URL.
const PARAMETERS: [&str; 13] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    CACHE_PARAMETER,
    "user",
];

/// Zero for a pooler that gives every transaction another connection: then no statement outlives its transaction.
const CACHE_PARAMETER: &str = "statement-cache-capacity";

pub(super) fn statement_cache(url: &str) -> StatementCache {
    let (_, parameters) = url.split_once('?').unwrap_or_default();
    let is_off = |pair: &str| pair.split_once('=') == Some((CACHE_PARAMETER, "0"));
    if parameters.split('&').any(is_off) { StatementCache::Off } else { StatementCache::On }
}

/// Rejects unknown parameters. The driver would log them with their values, and a misspelt `password` is one.
fn check_parameters(url: &str) -> Result<(), StoreError> {
    match parameters(url).find(|name| !PARAMETERS.contains(name)) {
        Some(unknown) => Err(StoreError::Parameter(unknown.chars().take(60).collect())),
        None => Ok(()),
    }
}

/// The names of the parameters of a URL.
fn parameters(url: &str) -> impl Iterator<Item = &str> {
    let (_, parameters) = url.split_once('?').unwrap_or_default();
    parameters.split('&').filter_map(|pair| pair.split('=').next()).filter(|name| !name.is_empty())
}

/// A certificate in the URL is there to be used: with `require` a root is checked as with `verify-ca`, as `libpq` does, and
/// a mode that may go on without TLS is an error.
fn with_tls(url: &str, options: PgConnectOptions) -> Result<PgConnectOptions, StoreError> {
    let names_a_root = parameters(url).any(|name| name == "sslrootcert");
    let names_any = names_a_root || parameters(url).any(|name| ["sslcert", "sslkey"].contains(&name));
    match options.get_ssl_mode() {
        PgSslMode::Require if names_a_root => Ok(options.ssl_mode(PgSslMode::VerifyCa)),
        PgSslMode::Require | PgSslMode::VerifyCa | PgSslMode::VerifyFull => Ok(options),
        PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Prefer if names_any => Err(StoreError::TlsMode),
        PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Prefer => Ok(options),
    }
}

/// JIT compilation takes longer than any of our statements. Servers that only speak the protocol may not know the setting.
pub(super) const JIT_OFF: &str = "SELECT set_config('jit', 'off', false) FROM pg_settings WHERE name = 'jit'";

/// Connects once, to check that there is a server.
pub(super) async fn open(url: &str, patience: Duration) -> Result<PgPool, StoreError> {
    check_parameters(url)?;
    let mut options: PgConnectOptions = with_tls(url, url.parse()?)?;
    if !parameters(url).any(|name| name == CACHE_PARAMETER) {
        options = options.statement_cache_capacity(STATEMENTS);
    }
    // A server that is unreachable from the start is a configuration error and fails at once.
    reach(&options).await?;
    // No round trip to test a connection: `begin` takes another one if it is broken.
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(patience)
        .test_before_acquire(false);
    let pool = pool.after_connect(|connection, _| Box::pin(connection.execute(JIT_OFF).map_ok(drop)));
    Ok(pool.connect_lazy_with(options))
}

/// Connects and disconnects.
async fn reach(options: &PgConnectOptions) -> Result<(), sqlx::Error> {
    let connected = timeout(SILENCE, PgConnection::connect_with(options)).await;
    connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??.close().await
}

/// Begins a transaction, and waits a moment for a server that restarts.
///
/// The lock timeout is set in the same message: a pooler may give every transaction another connection.
pub(super) async fn begin(
    pool: &PgPool,
    access: Access,
    lock_timeout: Duration,
) -> Result<Transaction<'static, Postgres>, StoreError> {
    let deadline = Instant::now() + AWAY;
    loop {
        let begun = match access {
            Access::Read => {
                let begin = pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
                while_there(pool, begin).await
            }
            Access::Write => {
                let begin = format!("BEGIN; SET LOCAL lock_timeout = {}", lock_timeout.as_millis());
                while_there(pool, pool.begin_with(AssertSqlSafe(begin))).await
            }
        };
        match begun {
            Err(StoreError::Unreachable(_)) if Instant::now() < deadline => sleep(RECONNECT_PAUSE).await,
            done => return done,
        }
    }
}

/// Waits for something that needs a connection of the pool. The pool cannot tell a busy pool from an unreachable server,
/// so this checks the server meanwhile.
pub(super) async fn while_there<T>(
    pool: &PgPool,
    wanted: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, StoreError> {
    let mut wanted = pin!(wanted);
    let options = pool.connect_options();
    loop {
        let look = async {
            sleep(AWAY).await;
            reach(&options).await
        };
        tokio::select! {
            done = &mut wanted => return match done {
                Err(sqlx::Error::PoolTimedOut) => {
                    Err(reach(&options).await.map_or_else(StoreError::from, |()| StoreError::Busy))
                }
                done => Ok(done?),
            },
            // Any reply means that the server is reachable; if it is starting, the pool waits for it.
            looked = look => match looked {
                Ok(()) | Err(sqlx::Error::Database(_)) => {}
                Err(error) => return Err(error.into()),
            },
        }
    }
}

pub(super) fn bound<'a>(text: &str, args: &'a [Arg<'_>]) -> Query<'a, Postgres, PgArguments> {
    let query = sqlx::query(AssertSqlSafe(text));
    args.iter().fold(query, |query, arg| match arg {
        Arg::Int(value) => query.bind(*value),
        Arg::Text(value) => query.bind(value.as_deref()),
        Arg::PerBackend { postgres, .. } => query.bind(postgres.as_ref()),
    })
}

pub(super) fn row(row: &PgRow) -> Result<Row, sqlx::Error> {
    let cell = |index: usize| {
        let value = row.try_get_raw(index)?;
        if value.is_null() {
            return Ok(Cell::Null);
        }
        let decoded = match row.column(index).type_info().name() {
            "INT8" => <i64 as Decode<Postgres>>::decode(value).map(Cell::Int),
            "INT4" => <i32 as Decode<Postgres>>::decode(value).map(|value| Cell::Int(value.into())),
            _ => <String as Decode<Postgres>>::decode(value).map(Cell::Text),
        };
        decoded.map_err(sqlx::Error::Decode)
    };
    (0..row.len()).map(cell).collect::<Result<_, _>>().map(Row)
}
