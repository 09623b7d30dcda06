//! Writes that wait for each other, so that a mutation reaches the database in one go.
//!
//! A statement costs SQLite some microseconds and the way to the thread of its connection and back several times that. So
//! writes are put off until something is read or the transaction commits, and then sent together. Rows for one table become
//! one statement. Order: statements run in the order they came in, but a row may join an earlier insert of the same kind if
//! only inserts came since; new rows have keys of their own, so no insert changes what another one does.

use super::ahead::Question;
use super::{Arg, Engine, Sql};

/// Rows of one statement. Smaller numbers are sums of powers of two, so that few texts have to be prepared.
const MOST_ROWS: usize = 64;

/// Beyond these the batch should not grow: the text that is prepared, and the memory it all takes.
const MOST_GROUPS: usize = 24;
const MOST_WAITING_ROWS: usize = 256;
const MOST_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Batch {
    groups: Vec<Group>,
    rows: usize,
    bytes: usize,
}

/// One statement with its arguments, or one insert with those of many rows.
struct Group {
    sql: Sql,
    rows: Vec<Vec<Arg<'static>>>,
}

/// What is sent at once: a text and its arguments.
pub(super) struct Packet {
    pub text: String,
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

    /// Empties the batch. SQLite runs many statements of one text; PostgreSQL takes one at a time.
    pub(super) fn take(&mut self, engine: Engine) -> Vec<Packet> {
        let mut packets = Vec::new();
        for Group { sql, rows } in std::mem::take(self).groups {
            let mut rows = rows.into_iter();
            while rows.len() > 0 {
                let count = MOST_ROWS.min(1 << rows.len().ilog2());
                if engine == Engine::Postgres || packets.is_empty() {
                    packets.push(Packet { text: String::new(), args: Vec::new() });
                }
                let packet = packets.last_mut().expect("one was put in above if there was none");
                packet.add(sql.text(engine), rows.by_ref().take(count));
            }
        }
        packets
    }
}

impl Packet {
    /// A statement without arguments and the questions that follow it, for SQLite.
    pub(super) fn ahead(begin: &str, questions: &[Question]) -> Self {
        let mut packet = Self { text: begin.to_owned(), args: Vec::new() };
        for question in questions {
            packet.add(question.sql.sqlite, std::iter::once(question.args.clone()));
        }
        packet
    }

    fn add(&mut self, text: &str, rows: impl Iterator<Item = Vec<Arg<'static>>>) {
        if !self.text.is_empty() {
            self.text.push_str(";\n");
        }
        let row = row_of(text).unwrap_or(text);
        self.text.push_str(&text[..text.len() - row.len()]);
        for (at, args) in rows.enumerate() {
            if at > 0 {
                self.text.push_str(", ");
            }
            number_from(&mut self.text, row, self.args.len());
            self.args.extend(args);
        }
    }
}

/// The row at the end of an insert that has nothing else behind `VALUES`.
fn row_of(text: &str) -> Option<&str> {
    let (_, row) = text.split_once("VALUES ")?;
    (text.starts_with("INSERT") && row.ends_with(')')).then_some(row)
}

/// Appends a text whose `$1` becomes the argument behind those that are there.
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

    fn texts(batch: &mut Batch, engine: Engine) -> Vec<String> {
        batch.take(engine).into_iter().map(|packet| packet.text).collect()
    }

    #[test]
    fn rows_join_and_arguments_are_counted_through() {
        let mut batch = Batch::default();
        let insert = "INSERT INTO t (a, b) VALUES ($1, $2)";
        batch.add(insert.into(), args![1, "one"]);
        batch.add("INSERT INTO u (a) VALUES ($1)".into(), args![2]);
        batch.add(insert.into(), args![3, "three"]);
        batch.add("UPDATE t SET b = $2 WHERE a = $1".into(), args![4, "four"]);
        batch.add(insert.into(), args![5, "five"]);
        let packets = batch.take(Engine::Sqlite);
        assert!(batch.is_empty());
        assert_eq!(packets.len(), 1);
        assert_eq!(
            packets[0].text,
            "INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4);\nINSERT INTO u (a) VALUES ($5);\n\
            UPDATE t SET b = $7 WHERE a = $6;\nINSERT INTO t (a, b) VALUES ($8, $9)"
        );
        let ints = packets[0].args.iter().filter_map(|arg| if let Arg::Int(n) = arg { *n } else { None });
        assert_eq!(ints.collect::<Vec<_>>(), [1, 3, 2, 4, 5]);
    }

    #[test]
    fn postgres_gets_one_statement_at_a_time() {
        let mut batch = Batch::default();
        for number in 0..3 {
            batch.add("INSERT INTO t (a) VALUES ($1)".into(), args![number]);
        }
        batch.add("DELETE FROM t WHERE a = $1".into(), args![1]);
        assert_eq!(
            texts(&mut batch, Engine::Postgres),
            [
                "INSERT INTO t (a) VALUES ($1), ($2)",
                "INSERT INTO t (a) VALUES ($1)",
                "DELETE FROM t WHERE a = $1"
            ]
        );
    }

    #[test]
    fn inserts_with_more_to_say_stay_alone() {
        let mut batch = Batch::default();
        let insert = "INSERT INTO t (a) VALUES ($1) ON CONFLICT DO NOTHING";
        batch.add(insert.into(), args![1]);
        batch.add(insert.into(), args![2]);
        assert_eq!(texts(&mut batch, Engine::Sqlite), [format!("{insert};\n{}", insert.replace("$1", "$2"))]);
    }
}
