//! A transaction on either engine, with the few kinds of values the schema uses: integers and text.
//!
//! Most SQL is one text for both. Where the dialects differ, a [`Sql`] holds a text for each; nothing else in
//! the crate knows which engine it talks to.

use std::borrow::Cow;

use futures::TryStreamExt;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Column, Decode, Executor, Postgres, Row as _, Sqlite, Transaction, TypeInfo, ValueRef};

use super::ahead::{Ahead, Question};
use super::batch::Batch;
use super::lane::Held;
use super::{Engine, StoreError};

/// A statement in the words of each engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sql {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

impl Sql {
    pub(super) fn text(self, engine: Engine) -> &'static str {
        match engine {
            Engine::Sqlite => self.sqlite,
            Engine::Postgres => self.postgres,
        }
    }
}

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Self {
        Self { sqlite: text, postgres: text }
    }
}

/// A value given to a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Arg<'a> {
    Int(Option<i64>),
    Text(Option<Cow<'a, str>>),
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
        }
    }

    /// About how many bytes it takes.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Int(_) => size_of::<i64>(),
            Self::Text(value) => value.as_ref().map_or(0, |text| text.len()),
        }
    }
}

/// The arguments of a statement, in the order of its `$1`, `$2`, ….
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        &[$($crate::store::Arg::from($value)),*]
    };
}
pub(crate) use args;

/// A value that came back.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cell {
    Null,
    Int(i64),
    Text(String),
}

/// A row that came back. Reading a column as what it is not is a damaged store, not a panic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row(Vec<Cell>);

impl Row {
    pub(crate) fn int(&self, column: usize) -> Result<i64, StoreError> {
        match self.0.get(column) {
            Some(Cell::Int(value)) => Ok(*value),
            _ => Err(damaged(column)),
        }
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

fn damaged(column: usize) -> StoreError {
    StoreError::Damaged(format!("column {column} does not hold what the schema says"))
}

pub(super) fn sqlite_row(row: &SqliteRow) -> Result<Row, sqlx::Error> {
    let cell = |index| {
        let value = row.try_get_raw(index)?;
        if value.is_null() {
            return Ok(Cell::Null);
        }
        let decoded = if value.type_info().name() == "TEXT" {
            <String as Decode<Sqlite>>::decode(value).map(Cell::Text)
        } else {
            <i64 as Decode<Sqlite>>::decode(value).map(Cell::Int)
        };
        decoded.map_err(sqlx::Error::Decode)
    };
    (0..row.len()).map(cell).collect::<Result<_, _>>().map(Row)
}

fn postgres_row(row: &PgRow) -> Result<Row, sqlx::Error> {
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

/// An open transaction. Dropped without [`Tx::commit`], it leaves no trace.
pub(crate) struct Tx {
    inner: Inner,
    /// Answers to what may be asked next.
    ahead: Ahead,
    /// Writes that the database has not heard of yet.
    waiting: Batch,
}

enum Inner {
    Sqlite(Held),
    Postgres(Transaction<'static, Postgres>),
}

impl From<(Held, Ahead)> for Tx {
    fn from((tx, ahead): (Held, Ahead)) -> Self {
        Self { inner: Inner::Sqlite(tx), ahead, waiting: Batch::default() }
    }
}

impl From<Transaction<'static, Postgres>> for Tx {
    fn from(tx: Transaction<'static, Postgres>) -> Self {
        Self { inner: Inner::Postgres(tx), ahead: Ahead::default(), waiting: Batch::default() }
    }
}

/// The connection that a transaction runs on.
enum Connected<'a> {
    Sqlite(&'a mut SqliteConnection),
    Postgres(&'a mut PgConnection),
}

impl Inner {
    fn connection(&mut self) -> Connected<'_> {
        match self {
            Self::Sqlite(tx) => Connected::Sqlite(tx.connection()),
            Self::Postgres(tx) => Connected::Postgres(tx),
        }
    }
}

/// What PostgreSQL does with the plan of a query. SQLite looks at the arguments by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plan {
    Kept,
    Anew,
}

/// A statement with its arguments, ready for one engine.
macro_rules! bound {
    ($text:expr, $args:expr) => {{
        let mut query = sqlx::query($text);
        for arg in $args {
            query = match arg {
                $crate::store::Arg::Int(value) => query.bind(*value),
                $crate::store::Arg::Text(value) => query.bind(value.as_deref()),
            };
        }
        query
    }};
}
pub(super) use bound;

impl Tx {
    pub(crate) fn engine(&self) -> Engine {
        match self.inner {
            Inner::Sqlite(_) => Engine::Sqlite,
            Inner::Postgres(_) => Engine::Postgres,
        }
    }

    /// Puts a write in line. It runs before the next statement that answers, or with the commit.
    pub(crate) async fn write(&mut self, sql: impl Into<Sql>, args: &[Arg<'_>]) -> Result<(), StoreError> {
        self.ahead.forget();
        self.waiting.add(sql.into(), args);
        if self.waiting.is_full() { self.flush().await } else { Ok(()) }
    }

    /// Runs all writes that wait.
    pub(crate) async fn flush(&mut self) -> Result<(), StoreError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        for packet in self.waiting.take(self.engine()) {
            let (text, args) = (sqlx::AssertSqlSafe(packet.text), &packet.args);
            match self.inner.connection() {
                Connected::Sqlite(on) => bound!(text, args).execute(on).await.map(drop)?,
                Connected::Postgres(on) => bound!(text, args).execute(on).await.map(drop)?,
            }
        }
        Ok(())
    }

    /// Runs a statement and says how many rows it changed.
    pub(crate) async fn execute(&mut self, sql: impl Into<Sql>, args: &[Arg<'_>]) -> Result<u64, StoreError> {
        self.ahead.forget();
        self.flush().await?;
        let sql = sql.into();
        Ok(match self.inner.connection() {
            Connected::Sqlite(on) => bound!(sql.sqlite, args).execute(on).await?.rows_affected(),
            Connected::Postgres(on) => bound!(sql.postgres, args).execute(on).await?.rows_affected(),
        })
    }

    /// All rows of a query whose size is bounded by its own words.
    pub(crate) async fn rows(
        &mut self,
        sql: impl Into<Sql>,
        args: &[Arg<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        self.each(sql, args, |row| {
            rows.push(row);
            Ok(())
        })
        .await?;
        Ok(rows)
    }

    /// The same, planned for these arguments each time: for a query of which no plan is good for all of them.
    pub(crate) async fn rows_planned_anew(
        &mut self,
        sql: Sql,
        args: &[Arg<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        self.each_of(sql.text(self.engine()), args, Plan::Anew, |row| {
            rows.push(row);
            Ok(())
        })
        .await?;
        Ok(rows)
    }

    /// The first row of a query, if it has one; read ahead if it was.
    pub(crate) async fn ask(&mut self, question: Question) -> Result<Option<Row>, StoreError> {
        match self.ahead.take(&question) {
            Some(answer) => Ok(answer),
            None => self.row(question.sql, &question.args).await,
        }
    }

    /// The first row of a query, if it has one.
    pub(crate) async fn row(
        &mut self,
        sql: impl Into<Sql>,
        args: &[Arg<'_>],
    ) -> Result<Option<Row>, StoreError> {
        self.flush().await?;
        let sql = sql.into();
        let row = match self.inner.connection() {
            Connected::Sqlite(on) => {
                bound!(sql.sqlite, args).fetch_optional(on).await?.as_ref().map(sqlite_row)
            }
            Connected::Postgres(on) => {
                bound!(sql.postgres, args).fetch_optional(on).await?.as_ref().map(postgres_row)
            }
        };
        Ok(row.transpose()?)
    }

    /// Hands over each row of a query without keeping them all.
    pub(crate) async fn each(
        &mut self,
        sql: impl Into<Sql>,
        args: &[Arg<'_>],
        take: impl FnMut(Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.each_of(sql.into().text(self.engine()), args, Plan::Kept, take).await
    }

    /// The same for a query that was put together from the names of our own tables and columns.
    pub(crate) async fn each_text(
        &mut self,
        text: &str,
        args: &[Arg<'_>],
        take: impl FnMut(Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.each_of(sqlx::AssertSqlSafe(text), args, Plan::Kept, take).await
    }

    async fn each_of(
        &mut self,
        text: impl sqlx::SqlSafeStr,
        args: &[Arg<'_>],
        plan: Plan,
        mut take: impl FnMut(Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.flush().await?;
        match self.inner.connection() {
            Connected::Sqlite(on) => {
                let mut rows = bound!(text, args).fetch(on);
                while let Some(row) = rows.try_next().await? {
                    take(sqlite_row(&row)?)?;
                }
            }
            Connected::Postgres(on) => {
                let mut rows = bound!(text, args).persistent(plan == Plan::Kept).fetch(on);
                while let Some(row) = rows.try_next().await? {
                    take(postgres_row(&row)?)?;
                }
            }
        }
        Ok(())
    }

    /// Runs statements that take no arguments, one after the other.
    pub(crate) async fn script(&mut self, text: String) -> Result<(), StoreError> {
        self.ahead.forget();
        self.flush().await?;
        let text = sqlx::AssertSqlSafe(text);
        match self.inner.connection() {
            Connected::Sqlite(on) => on.execute(sqlx::raw_sql(text)).await.map(drop)?,
            Connected::Postgres(on) => on.execute(sqlx::raw_sql(text)).await.map(drop)?,
        }
        Ok(())
    }

    /// Runs all writes that wait, and ends the transaction.
    pub(crate) async fn commit(mut self) -> Result<(), StoreError> {
        if self.engine() == Engine::Sqlite {
            self.waiting.add("COMMIT".into(), args![]);
        }
        self.flush().await?;
        match self.inner {
            Inner::Sqlite(tx) => tx.give_back(),
            Inner::Postgres(tx) => tx.commit().await?,
        }
        Ok(())
    }

    /// Ends the transaction without a trace. Where that fails the connection is closed, which ends it too.
    pub(crate) async fn rollback(self) {
        match self.inner {
            Inner::Sqlite(tx) => tx.rollback().await,
            Inner::Postgres(tx) => {
                if let Err(error) = tx.rollback().await {
                    tracing::debug!(%error, "cannot take a transaction back");
                }
            }
        }
    }
}
