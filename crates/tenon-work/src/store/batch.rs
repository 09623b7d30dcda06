//! Batched writes: many rows in few statements.
//!
//! Every statement costs PostgreSQL a round trip and SQLite a preparation. So writes are deferred until the next read or
//! the commit, and rows of one table become one statement. Statements keep their order, except that a row may join an
//! earlier insert if only inserts came since; inserts do not affect each other.

use std::borrow::Cow;

use super::{Arg, Backend, Sql};

/// Rows of one statement. Smaller groups are split into powers of two, so that few statements are prepared.
const MOST_ROWS: usize = 64;

/// Limits of a batch: statements, rows and memory.
const MOST_GROUPS: usize = 24;
const MOST_WAITING_ROWS: usize = 256;
const MOST_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Batch {
    groups: Vec<Group>,
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
        packets
    }
}

impl Statement {
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
            texts(&batch.take(Backend::Postgres)),
            ["INSERT INTO t (a) VALUES ($1), ($2)", "INSERT INTO t (a) VALUES ($1)"]
        );
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
