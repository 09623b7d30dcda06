//! A transaction on either backend, with the few kinds of values the schema uses: integers and text.
//!
//! Most SQL is one text for both. Where the dialects differ, [`Sql`] holds a text for each and [`Arg::PerBackend`] a
//! value for each; nothing outside of `store` asks which backend it is.

use std::borrow::Cow;

use futures::TryStreamExt;
use sqlx::{Executor, Postgres, Transaction};

use super::batch::{Batch, Statement};
use super::sqlite_pool::SqliteTransaction;
use super::{Backend, StoreError, postgres, sqlite};

/// A statement in the dialect of each backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sql {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

impl Sql {
    /// The same text in both dialects.
    pub(crate) const fn same(text: &'static str) -> Self {
        Self { sqlite: text, postgres: text }
    }

    pub(super) fn text(self, backend: Backend) -> &'static str {
        match backend {
            Backend::Sqlite => self.sqlite,
            Backend::Postgres => self.postgres,
        }
    }
}

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Self {
        Self::same(text)
    }
}

/// A value given to a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Arg<'a> {
    Int(Option<i64>),
    Text(Option<Cow<'a, str>>),
    /// A text in the syntax of each backend.
    PerBackend {
        sqlite: Cow<'a, str>,
        postgres: Cow<'a, str>,
    },
}

impl From<i64> for Arg<'_> {
    fn from(value: i64) -> Self {
        Self::Int(Some(value))
    }
}

impl From<Option<i64>> for Arg<'_> {
    fn from(value: Option<i64>) -> Self {
        Self::Int(value)
    }
}

impl From<bool> for Arg<'_> {
    fn from(value: bool) -> Self {
        Self::Int(Some(i64::from(value)))
    }
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(Some(Cow::Borrowed(value)))
    }
}

impl<'a> From<&'a String> for Arg<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(Some(Cow::Borrowed(value)))
    }
}

impl From<String> for Arg<'_> {
    fn from(value: String) -> Self {
        Self::Text(Some(Cow::Owned(value)))
    }
}

impl<'a> From<Option<&'a str>> for Arg<'a> {
    fn from(value: Option<&'a str>) -> Self {
        Self::Text(value.map(Cow::Borrowed))
    }
}

impl From<Option<String>> for Arg<'_> {
    fn from(value: Option<String>) -> Self {
        Self::Text(value.map(Cow::Owned))
    }
}

impl Arg<'_> {
    pub(super) fn to_owned(&self) -> Arg<'static> {
        match self {
            Self::Int(value) => Arg::Int(*value),
            Self::Text(value) => Arg::Text(value.as_deref().map(|text| Cow::Owned(text.to_owned()))),
            Self::PerBackend { sqlite, postgres } => Arg::PerBackend {
                sqlite: Cow::Owned(sqlite.clone().into_owned()),
                postgres: Cow::Owned(postgres.clone().into_owned()),
            },
        }
    }

    /// About the size in bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Int(_) => size_of::<i64>(),
            Self::Text(value) => value.as_ref().map_or(0, |text| text.len()),
            Self::PerBackend { sqlite, postgres } => sqlite.len().max(postgres.len()),
        }
    }
}

/// The arguments of a statement: `$1`, `$2`, ….
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        &[$($crate::store::Arg::from($value)),*]
    };
}
pub(crate) use args;

/// A value of a result row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell {
    Null,
    Int(i64),
    Text(String),
}

/// A result row. A column of another type means a damaged store, not a panic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row(pub(super) Vec<Cell>);

impl Row {
    pub(crate) fn int(&self, column: usize) -> Result<i64, StoreError> {
        match self.0.get(column) {
            Some(Cell::Int(value)) => Ok(*value),
            _ => Err(damaged(column)),
        }
    }

    /// Removes the columns from this one on and returns them; none if the row ends before it.
    pub(crate) fn split_off(&mut self, column: usize) -> Self {
        Self(self.0.split_off(column.min(self.0.len())))
    }

    pub(crate) fn count(&self, column: usize) -> Result<u64, StoreError> {
        u64::try_from(self.int(column)?).map_err(|_| damaged(column))
    }

    pub(crate) fn flag(&self, column: usize) -> Result<bool, StoreError> {
        Ok(self.int(column)? != 0)
    }

    pub(crate) fn opt_int(&self, column: usize) -> Result<Option<i64>, StoreError> {
        match self.0.get(column) {
            Some(Cell::Int(value)) => Ok(Some(*value)),
            Some(Cell::Null) => Ok(None),
            _ => Err(damaged(column)),
        }
    }

    pub(crate) fn text(&self, column: usize) -> Result<String, StoreError> {
        self.opt_text(column)?.ok_or_else(|| damaged(column))
    }

    pub(crate) fn opt_text(&self, column: usize) -> Result<Option<String>, StoreError> {
        match self.0.get(column) {
            Some(Cell::Text(value)) => Ok(Some(value.clone())),
            Some(Cell::Null) => Ok(None),
            _ => Err(damaged(column)),
        }
    }

    /// The column as JSON: a number, a string or null.
    pub(crate) fn json(&self, column: usize) -> serde_json::Value {
        match self.0.get(column) {
            Some(Cell::Int(value)) => (*value).into(),
            Some(Cell::Text(value)) => value.as_str().into(),
            Some(Cell::Null) | None => serde_json::Value::Null,
        }
    }
}

pub(super) fn damaged(column: usize) -> StoreError {
    StoreError::Damaged(format!("column {column} does not have the type of the schema"))
}

/// An open transaction, or the writes of an optimistic call. Dropping it without [`Tx::commit`] rolls it back.
pub(crate) struct Tx {
    inner: Inner,
    /// Writes that have not been sent yet.
    waiting: Batch,
}

enum Inner {
    Sqlite(SqliteTransaction),
    Postgres(Transaction<'static, Postgres>, StatementCache),
    /// Only collects writes (`optimistic`). A call that needs more runs again in a transaction.
    Optimistic {
        needs_lock: bool,
    },
}

/// Records that an optimistic call needs a lock. The error ends the call; clients do not see it.
fn refuse(needs_lock: &mut bool) -> StoreError {
    *needs_lock = true;
    StoreError::Busy
}

impl From<SqliteTransaction> for Tx {
    fn from(tx: SqliteTransaction) -> Self {
        Self { inner: Inner::Sqlite(tx), waiting: Batch::default() }
    }
}

impl Tx {
    pub(super) fn postgres(tx: Transaction<'static, Postgres>, cache: StatementCache) -> Self {
        Self { inner: Inner::Postgres(tx, cache), waiting: Batch::default() }
    }

    /// Collects the writes of a call without a lock.
    pub(super) fn optimistic() -> Self {
        Self { inner: Inner::Optimistic { needs_lock: false }, waiting: Batch::default() }
    }

    pub(crate) fn is_optimistic(&self) -> bool {
        matches!(self.inner, Inner::Optimistic { .. })
    }

    /// Whether an optimistic call cannot go on without a lock.
    pub(super) fn needs_lock(&self) -> bool {
        matches!(self.inner, Inner::Optimistic { needs_lock: true })
    }

    /// Sets the statement of an optimistic call that must change a row, or else nothing is written.
    pub(crate) fn guard(&mut self, sql: &'static str, args: &[Arg<'_>]) {
        self.waiting.guard(sql.into(), args);
    }

    /// The writes of an optimistic call as one statement; none if they need more than one.
    pub(super) fn into_guarded(self) -> Option<Statement> {
        self.waiting.into_guarded()
    }
}

/// Whether statements stay prepared on a connection of PostgreSQL. Behind a pooler they cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatementCache {
    On,
    Off,
}

impl StatementCache {
    fn is_on(self) -> bool {
        self == Self::On
    }
}

/// Whether PostgreSQL caches the plan of a query. SQLite considers the arguments by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plan {
    Cached,
    Fresh,
}

impl Tx {
    pub(super) fn backend(&self) -> Backend {
        match self.inner {
            Inner::Sqlite(_) => Backend::Sqlite,
            Inner::Postgres(..) | Inner::Optimistic { .. } => Backend::Postgres,
        }
    }

    /// Defers a write until the next read or the commit.
    pub(crate) async fn write(&mut self, sql: impl Into<Sql>, args: &[Arg<'_>]) -> Result<(), StoreError> {
        self.waiting.add(sql.into(), args);
        if self.waiting.is_full() { self.flush().await } else { Ok(()) }
    }

    /// Runs all deferred writes.
    pub(crate) async fn flush(&mut self) -> Result<(), StoreError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        for packet in self.waiting.take(self.backend()) {
            self.run(&packet.text, &packet.args).await?;
        }
        Ok(())
    }

    /// Runs a statement and returns the number of changed rows.
    pub(crate) async fn execute(&mut self, sql: impl Into<Sql>, args: &[Arg<'_>]) -> Result<u64, StoreError> {
        self.flush().await?;
        self.run(sql.into().text(self.backend()), args).await
    }

    async fn run(&mut self, text: &str, args: &[Arg<'_>]) -> Result<u64, StoreError> {
        Ok(match &mut self.inner {
            Inner::Sqlite(tx) => sqlite::execute(tx.connection(), text, args)?,
            Inner::Postgres(tx, cache) => {
                let query = postgres::bound(text, args).persistent(cache.is_on());
                query.execute(&mut **tx).await?.rows_affected()
            }
            Inner::Optimistic { needs_lock } => return Err(refuse(needs_lock)),
        })
    }

    /// All rows of a query with a bounded result.
    pub(crate) async fn rows(
        &mut self,
        sql: impl Into<Sql>,
        args: &[Arg<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.all(sql.into(), args, Plan::Cached).await
    }

    /// The same, planned for these arguments: for a query without a plan that suits all of them.
    pub(crate) async fn rows_replanned(
        &mut self,
        sql: Sql,
        args: &[Arg<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.all(sql, args, Plan::Fresh).await
    }

    async fn all(&mut self, sql: Sql, args: &[Arg<'_>], plan: Plan) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        self.each_of(sql.text(self.backend()), args, plan, |row| {
            rows.push(row);
            Ok(())
        })
        .await?;
        Ok(rows)
    }

    /// The rows of a workspace with these keys, by key. `sql` ends with the column of the key; its
    /// first argument is the workspace.
    pub(crate) async fn rows_of(
        &mut self,
        sql: &'static str,
        ws: i64,
        keys: &[i64],
        key: &'static str,
    ) -> Result<Vec<Row>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let list: Vec<String> = keys.iter().map(i64::to_string).collect();
        let list = list.join(",");
        // One argument for all keys, so that one statement is prepared for any number of them.
        let (condition, list) = match self.backend() {
            Backend::Sqlite => ("IN (SELECT value FROM json_each($2))", format!("[{list}]")),
            Backend::Postgres => ("= ANY(CAST($2 AS BIGINT[]))", format!("{{{list}}}")),
        };
        let mut rows = Vec::new();
        self.each_text(&format!("{sql}{condition} ORDER BY {key}"), args![ws, list], |row| {
            rows.push(row);
            Ok(())
        })
        .await?;
        Ok(rows)
    }

    /// The first row of a query, if it has one.
    pub(crate) async fn row(
        &mut self,
        sql: impl Into<Sql>,
        args: &[Arg<'_>],
    ) -> Result<Option<Row>, StoreError> {
        self.flush().await?;
        let text = sql.into().text(self.backend());
        match &mut self.inner {
            Inner::Sqlite(tx) => sqlite::first(tx.connection(), text, args),
            Inner::Postgres(tx, cache) => {
                let query = postgres::bound(text, args).persistent(cache.is_on());
                let row = query.fetch_optional(&mut **tx).await?;
                Ok(row.as_ref().map(postgres::row).transpose()?)
            }
            Inner::Optimistic { needs_lock } => Err(refuse(needs_lock)),
        }
    }

    /// Passes each row of a generated query to `take`, without collecting them.
    pub(crate) async fn each_text(
        &mut self,
        text: &str,
        args: &[Arg<'_>],
        take: impl FnMut(Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.each_of(text, args, Plan::Cached, take).await
    }

    async fn each_of(
        &mut self,
        text: &str,
        args: &[Arg<'_>],
        plan: Plan,
        mut take: impl FnMut(Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.flush().await?;
        match &mut self.inner {
            Inner::Sqlite(tx) => sqlite::each(tx.connection(), text, args, take),
            Inner::Postgres(tx, cache) => {
                let persistent = plan == Plan::Cached && cache.is_on();
                let query = postgres::bound(text, args).persistent(persistent);
                let mut rows = query.fetch(&mut **tx);
                while let Some(row) = rows.try_next().await? {
                    take(postgres::row(&row)?)?;
                }
                Ok(())
            }
            Inner::Optimistic { needs_lock } => Err(refuse(needs_lock)),
        }
    }

    /// Runs statements without arguments.
    pub(crate) async fn script(&mut self, text: &str) -> Result<(), StoreError> {
        self.flush().await?;
        match &mut self.inner {
            Inner::Sqlite(tx) => Ok(tx.connection().execute_batch(text)?),
            Inner::Postgres(tx, _) => {
                let script = sqlx::raw_sql(sqlx::AssertSqlSafe(text));
                Ok(tx.execute(script).await.map(drop)?)
            }
            Inner::Optimistic { needs_lock } => Err(refuse(needs_lock)),
        }
    }

    /// Runs all deferred writes, and commits.
    pub(crate) async fn commit(mut self) -> Result<(), StoreError> {
        self.flush().await?;
        match self.inner {
            Inner::Sqlite(tx) => tx.commit(),
            Inner::Postgres(tx, _) => tx.commit().await.map_err(StoreError::of_commit),
            Inner::Optimistic { mut needs_lock } => Err(refuse(&mut needs_lock)),
        }
    }

    /// Rolls back. If that fails the connection is closed, which rolls back too.
    pub(crate) async fn rollback(self) {
        if let Inner::Postgres(tx, _) = self.inner
            && let Err(error) = tx.rollback().await
        {
            tracing::debug!(%error, "cannot roll back a transaction");
        }
    }
}
