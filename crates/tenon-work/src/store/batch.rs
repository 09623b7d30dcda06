//! Batched writes: many rows in few statements.
//!
//! Every statement costs PostgreSQL a round trip and SQLite a preparation. So writes are deferred until the next read or
//! the commit, and rows of one table become one statement. Statements keep their order, except that a row may join an
//! earlier insert if only inserts came since; inserts do not affect each other. For PostgreSQL, statements that do not affect
//! each other become one statement with the others in its `WITH`, so all writes of a call take one round trip.

use std::borrow::Cow;

use super::{Arg, Backend, Sql};

/// Rows of one statement. Smaller groups are split into powers of two, so that few statements are prepared.
const MOST_ROWS: usize = 64;

/// Arguments of statements that are joined. Larger ones gain nothing and would all be prepared.
const MOST_JOINED_ARGS: usize = 400;

/// Makes a joined statement fail, and so undoes all its parts, if the first one, the guard, has not changed a row.
/// PostgreSQL runs the guard first, since the main part needs its result: the statement locks the row before all others.
const IF_GUARD_HOLDS: &str = " WHERE 1 / (SELECT count(*) FROM w0) = 1";

/// Limits of a batch: statements, rows and memory.
const MOST_GROUPS: usize = 24;
const MOST_WAITING_ROWS: usize = 256;
const MOST_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Batch {
    groups: Vec<Group>,
    /// Of an optimistic write.
    guard: Option<Group>,
    rows: usize,
    bytes: usize,
}

/// One statement with its arguments, or one insert with the arguments of many rows.
struct Group {
    sql: Sql,
    rows: Vec<Vec<Arg<'static>>>,
}

/// A statement to send: text and arguments.
pub(super) struct Statement {
    pub text: Cow<'static, str>,
    pub args: Vec<Arg<'static>>,
}

impl Batch {
    pub(super) fn add(&mut self, sql: Sql, args: &[Arg<'_>]) {
        let args: Vec<Arg<'static>> = args.iter().map(Arg::to_owned).collect();
        self.rows += 1;
        self.bytes += args.iter().map(Arg::len).sum::<usize>();
        let inserts = self.groups.iter_mut().rev().take_while(|group| row_of(group.sql.sqlite).is_some());
        match inserts.into_iter().find(|group| group.sql.sqlite == sql.sqlite) {
            Some(group) => group.rows.push(args),
            None => self.groups.push(Group { sql, rows: vec![args] }),
        }
    }

    /// Sets the statement that must change a row, or else nothing is written. It has a `RETURNING`.
    pub(super) fn guard(&mut self, sql: Sql, args: &[Arg<'_>]) {
        self.guard = Some(Group { sql, rows: vec![args.iter().map(Arg::to_owned).collect()] });
    }

    pub(super) fn is_full(&self) -> bool {
        self.groups.len() >= MOST_GROUPS || self.rows >= MOST_WAITING_ROWS || self.bytes >= MOST_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Empties the batch.
    pub(super) fn take(&mut self, backend: Backend) -> Vec<Statement> {
        let mut packets = Vec::new();
        for Group { sql, rows } in std::mem::take(self).groups {
            let mut rows = rows.into_iter();
            while rows.len() > 0 {
                let count = MOST_ROWS.min(1 << rows.len().ilog2());
                packets.push(Statement::new(sql.text(backend), rows.by_ref().take(count)));
            }
        }
        match backend {
            Backend::Sqlite => packets,
            Backend::Postgres => joined(packets),
        }
    }

    /// One statement for PostgreSQL that writes all, or fails with a division by zero if the guard changes no row. None if
    /// the writes need several statements. The last of them is a call, which gets the condition.
    pub(super) fn into_guarded(mut self) -> Option<Statement> {
        let guard = self.guard.take()?;
        self.groups.insert(0, guard);
        let [mut statement] = <[Statement; 1]>::try_from(self.take(Backend::Postgres)).ok()?;
        statement.text.to_mut().push_str(IF_GUARD_HOLDS);
        Some(statement)
    }
}

/// Joins neighbours that do not affect each other.
fn joined(statements: Vec<Statement>) -> Vec<Statement> {
    let mut groups: Vec<Vec<Statement>> = Vec::new();
    for next in statements {
        match groups.last_mut() {
            Some(group) if fits(group, &next) => group.push(next),
            _ => groups.push(vec![next]),
        }
    }
    groups.into_iter().map(Statement::with_all).collect()
}

fn fits(group: &[Statement], next: &Statement) -> bool {
    let args = group.iter().map(|statement| statement.args.len()).sum::<usize>() + next.args.len();
    let effect = Effect::of(&next.text);
    args <= MOST_JOINED_ARGS && group.iter().all(|earlier| Effect::of(&earlier.text).is_apart_from(&effect))
}

/// What a statement changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect<'a> {
    /// Adds rows to a table.
    Insert(&'a str),
    /// Changes rows of a table.
    Change(&'a str),
    /// Calls a function. PostgreSQL runs a `SELECT` only as the last of joined statements.
    Call,
    /// Reads rows that other statements may change.
    Unknown,
}

impl<'a> Effect<'a> {
    fn of(text: &'a str) -> Self {
        let mut words = text.split_whitespace();
        let start = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let table = words.next().unwrap_or_default();
        match start {
            ("SELECT", _) if !text.contains(" FROM ") => Self::Call,
            _ if text.contains("SELECT") || text.contains("DO UPDATE") => Self::Unknown,
            ("INSERT", "INTO") => Self::Insert(table),
            ("DELETE", "FROM") => Self::Change(table),
            ("UPDATE", table) => Self::Change(table),
            _ => Self::Unknown,
        }
    }

    /// Whether a later statement does the same beside this one as after it.
    fn is_apart_from(&self, later: &Self) -> bool {
        match (self, later) {
            (Self::Insert(_), Self::Insert(_)) => true,
            (Self::Insert(one) | Self::Change(one), Self::Insert(other) | Self::Change(other)) => {
                one != other
            }
            (Self::Insert(_) | Self::Change(_), Self::Call) => true,
            (Self::Call | Self::Unknown, _) | (_, Self::Unknown) => false,
        }
    }
}

impl Statement {
    /// One statement that does what all of them do; the last is the main one.
    fn with_all(mut statements: Vec<Self>) -> Self {
        let last = statements.pop().expect("no group is empty");
        if statements.is_empty() {
            return last;
        }
        let (mut text, mut args) = (String::from("WITH "), Vec::new());
        for (at, statement) in statements.into_iter().enumerate() {
            text.push_str(if at > 0 { "), w" } else { "w" });
            text.push_str(&at.to_string());
            text.push_str(" AS (");
            number_from(&mut text, &statement.text, args.len());
            args.extend(statement.args);
        }
        text.push_str(") ");
        number_from(&mut text, &last.text, args.len());
        args.extend(last.args);
        Self { text: text.into(), args }
    }

    fn new(text: &'static str, mut rows: impl ExactSizeIterator<Item = Vec<Arg<'static>>>) -> Self {
        if rows.len() == 1 {
            return Self { text: text.into(), args: rows.next().unwrap_or_default() };
        }
        let row = row_of(text).unwrap_or(text);
        let (mut joined, mut args) = (text[..text.len() - row.len()].to_owned(), Vec::new());
        for (at, values) in rows.enumerate() {
            if at > 0 {
                joined.push_str(", ");
            }
            number_from(&mut joined, row, args.len());
            args.extend(values);
        }
        Self { text: joined.into(), args }
    }
}

/// The row at the end of an insert that ends with `VALUES (…)`.
fn row_of(text: &str) -> Option<&str> {
    let (_, row) = text.split_once("VALUES ")?;
    (text.starts_with("INSERT") && row.ends_with(')')).then_some(row)
}

/// Appends a text with its `$n` renumbered to follow the existing arguments.
fn number_from(out: &mut String, text: &str, there: usize) {
    let mut parts = text.split('$');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = part[..digits].parse().unwrap_or(0);
        out.push('$');
        out.push_str(&(there + number).to_string());
        out.push_str(&part[digits..]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::args;
    use super::*;

    fn texts(packets: &[Statement]) -> Vec<&str> {
        packets.iter().map(|packet| packet.text.as_ref()).collect()
    }

    #[test]
    fn rows_join_and_arguments_are_renumbered() {
        let mut batch = Batch::default();
        let insert = "INSERT INTO t (a, b) VALUES ($1, $2)";
        batch.add(insert.into(), args![1, "one"]);
        batch.add("INSERT INTO u (a) VALUES ($1)".into(), args![2]);
        batch.add(insert.into(), args![3, "three"]);
        batch.add("UPDATE t SET b = $2 WHERE a = $1".into(), args![4, "four"]);
        batch.add(insert.into(), args![5, "five"]);
        let packets = batch.take(Backend::Sqlite);
        assert!(batch.is_empty());
        assert_eq!(
            texts(&packets),
            [
                "INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4)",
                "INSERT INTO u (a) VALUES ($1)",
                "UPDATE t SET b = $2 WHERE a = $1",
                insert
            ]
        );
        let ints = packets[0].args.iter().filter_map(|arg| if let Arg::Int(n) = arg { *n } else { None });
        assert_eq!(ints.collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn many_rows_become_few_statements() {
        let mut batch = Batch::default();
        for number in 0..3 {
            batch.add("INSERT INTO t (a) VALUES ($1)".into(), args![number]);
        }
        assert_eq!(
            texts(&batch.take(Backend::Sqlite)),
            ["INSERT INTO t (a) VALUES ($1), ($2)", "INSERT INTO t (a) VALUES ($1)"]
        );
    }

    #[test]
    fn statements_about_different_tables_become_one_for_postgres() {
        let mut batch = Batch::default();
        batch.add("INSERT INTO t (a) VALUES ($1)".into(), args![1]);
        batch.add("INSERT INTO t (a, b) VALUES ($1, $2)".into(), args![2, 3]);
        batch.add("UPDATE u SET b = $2 WHERE a = $1".into(), args![4, 5]);
        batch.add("SELECT pg_notify('c', $1)".into(), args!["w"]);
        batch.add("DELETE FROM u WHERE a = $1".into(), args![6]);
        batch.add("INSERT INTO u (a) VALUES ($1)".into(), args![7]);
        let joined = batch.take(Backend::Postgres);
        assert_eq!(
            texts(&joined),
            [
                "WITH w0 AS (INSERT INTO t (a) VALUES ($1)), w1 AS (INSERT INTO t (a, b) VALUES ($2, $3)), \
                 w2 AS (UPDATE u SET b = $5 WHERE a = $4) SELECT pg_notify('c', $6)",
                "DELETE FROM u WHERE a = $1",
                "INSERT INTO u (a) VALUES ($1)",
            ]
        );
        assert_eq!(joined[0].args.len(), 6);
    }

    #[test]
    fn guarded_batch_is_one_statement_or_none() {
        let guarded = |more: &[&'static str]| {
            let mut batch = Batch::default();
            batch.add("INSERT INTO t (a) VALUES ($1)".into(), args![1]);
            for text in more {
                batch.add((*text).into(), args![2]);
            }
            batch.add("SELECT pg_notify('c', $1)".into(), args!["w"]);
            batch.guard("UPDATE w SET a = $1 WHERE a = $2 RETURNING a".into(), args![3, 4]);
            batch.into_guarded().map(|statement| statement.text)
        };
        assert_eq!(
            guarded(&[]).as_deref(),
            Some(
                "WITH w0 AS (UPDATE w SET a = $1 WHERE a = $2 RETURNING a), w1 AS (INSERT INTO t (a) VALUES ($3)) \
                 SELECT pg_notify('c', $4) WHERE 1 / (SELECT count(*) FROM w0) = 1"
            )
        );
        assert_eq!(guarded(&["DELETE FROM t WHERE a = $1"]), None);
        assert!(Batch::default().into_guarded().is_none());
    }

    #[test]
    fn statements_that_read_or_resolve_conflicts_stay_alone() {
        for text in [
            "UPDATE t SET a = (SELECT max(a) FROM u)",
            "INSERT INTO t (a) VALUES ($1) ON CONFLICT (a) DO UPDATE SET a = excluded.a",
            "SELECT a FROM t",
        ] {
            assert_eq!(Effect::of(text), Effect::Unknown, "{text}");
        }
    }

    #[test]
    fn inserts_with_a_conflict_clause_are_not_joined() {
        let mut batch = Batch::default();
        let insert = "INSERT INTO t (a) VALUES ($1) ON CONFLICT DO NOTHING";
        batch.add(insert.into(), args![1]);
        batch.add(insert.into(), args![2]);
        assert_eq!(texts(&batch.take(Backend::Sqlite)), [insert, insert]);
    }
}
