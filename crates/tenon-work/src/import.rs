//! Import: reads an export into the store, all of it or nothing, and rebuilds the search index.

use std::io::{BufRead, Read};
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::export::{FORMAT, TransferCounts};
use crate::graph::version;
use crate::memory::{entry, search};
use crate::plan::{step, target};
use crate::store::{Arg, SCHEMA_VERSION, Store, StoreError, Tx, args};
use crate::store_check::{self, StoreReport};
use crate::tables::{Key, TABLES, Table, WORKSPACES};

/// How many rows are read at a time while their words are put into the index.
const CHUNK: i64 = 256;

/// Far above the size of any row; bounds the memory that a stream without line breaks can take.
const MAX_LINE: u64 = 1 << 28;

static INSERTS: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| {
    let tables = TABLES.iter().map(|table| (table.name, format!("ws, {}", table.list())));
    let tables = tables.chain([(WORKSPACES.name, WORKSPACES.list())]);
    let insert = |(name, columns): (&'static str, String)| {
        let places: Vec<String> = (1..=columns.split(',').count()).map(|place| format!("${place}")).collect();
        (name, format!("INSERT INTO {name} ({columns}) VALUES ({})", places.join(", ")))
    };
    tables.map(insert).collect()
});

/// The statement that writes a row of a table.
fn insert(table: &Table) -> &'static str {
    let found = INSERTS.iter().find(|(name, _)| *name == table.name);
    found.map(|(_, text)| text.as_str()).expect("every table has one")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    schema: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    table: String,
    row: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    rows: u64,
}

impl Store {
    /// Reads an export into this store, all of it or nothing. It is checked like a store before the commit.
    ///
    /// # Errors
    /// When a line is invalid, the export is inconsistent or truncated, a workspace exists already, or the store fails.
    pub async fn import(&self, input: &mut (impl BufRead + Send)) -> Result<TransferCounts, StoreError> {
        let mut import = Import {
            tx: self.write().await?,
            ws: 0,
            line: 0,
            last: None,
            counts: TransferCounts::default(),
            report: StoreReport::default(),
        };
        let mut line = Vec::new();
        let text = import.next_line(input, &mut line)?;
        import.header(text)?;
        loop {
            import.line += 1;
            let text = import.next_line(input, &mut line)?;
            if text.starts_with("{\"rows\":") {
                let end: End = serde_json::from_str(text).map_err(|fault| import.fault(fault))?;
                if end.rows != import.counts.rows {
                    return Err(import.fault(format!("{} rows of {}", import.counts.rows, end.rows)));
                }
                import.end(input)?;
                import.finish().await?;
                break;
            }
            if text.is_empty() {
                return Err(import.fault("the export is truncated"));
            }
            let line: Line = serde_json::from_str(text).map_err(|fault| import.fault(fault))?;
            import.row(line).await?;
        }
        let tables: Vec<&str> = TABLES.iter().map(|table| table.name).chain(["search"]).collect();
        import.tx.update_statistics(&tables).await?;
        import.tx.commit().await?;
        Ok(import.counts)
    }
}

struct Import {
    tx: Tx,
    ws: i64,
    line: usize,
    /// The table that the row before was of, by its place, and the key of that row.
    last: Option<(usize, Vec<Key>)>,
    counts: TransferCounts,
    report: StoreReport,
}

impl Import {
    fn next_line<'a>(&self, input: &mut impl BufRead, line: &'a mut Vec<u8>) -> Result<&'a str, StoreError> {
        line.clear();
        Read::take(input, MAX_LINE + 1).read_until(b'\n', line)?;
        if line.len() as u64 > MAX_LINE {
            return Err(self.fault(format!("it has more than {MAX_LINE} bytes")));
        }
        str::from_utf8(line).map(str::trim_end).map_err(|fault| self.fault(fault))
    }

    /// Rejects data after the last line, which would not be imported.
    fn end(&self, input: &mut impl BufRead) -> Result<(), StoreError> {
        let mut rest = Vec::new();
        Read::take(input, 3).read_to_end(&mut rest)?;
        match rest.len() < 3 && rest.iter().all(u8::is_ascii_whitespace) {
            true => Ok(()),
            false => Err(self.fault("unexpected data after last line")),
        }
    }

    /// Indexes and checks the workspace that was read last.
    async fn finish(&mut self) -> Result<(), StoreError> {
        if self.ws == 0 {
            return Ok(());
        }
        let flushed = self.tx.flush().await;
        self.refused(flushed)?;
        let indexed = self.index().await;
        self.refused(indexed)?;
        let checked = store_check::workspace(&mut self.tx, self.ws, &mut self.report).await;
        self.refused(checked)?;
        self.report.problems.first().map_or(Ok(()), |problem| Err(self.fault(problem)))
    }

    fn fault(&self, problem: impl ToString) -> StoreError {
        StoreError::Import { line: self.line + 1, problem: problem.to_string() }
    }

    fn header(&self, text: &str) -> Result<(), StoreError> {
        let header: Header = serde_json::from_str(text).map_err(|fault| self.fault(fault))?;
        if header.format != FORMAT {
            return Err(self.fault("not an export of a store"));
        }
        if header.schema > SCHEMA_VERSION {
            return Err(StoreError::NewerSchema { found: header.schema, known: SCHEMA_VERSION });
        }
        Ok(())
    }

    async fn row(&mut self, line: Line) -> Result<(), StoreError> {
        self.counts.rows += 1;
        if line.table == WORKSPACES.name {
            return self.workspace(line.row).await;
        }
        let at = TABLES.iter().position(|table| table.name == line.table);
        let at = at.ok_or_else(|| self.fault("unknown table"))?;
        if self.ws == 0 {
            return Err(self.fault("a row comes before its workspace"));
        }
        let table = &TABLES[at];
        let values = self.values(table, line.row)?;
        let place = Some((at, table.key(&values)));
        if place <= self.last {
            return Err(self.fault(format!("a row of {} is a duplicate or out of order", table.name)));
        }
        self.last = place;
        let args: Vec<Arg<'_>> = std::iter::once(self.ws.into()).chain(table.args(&values)).collect();
        let written = self.tx.write(insert(table), &args).await;
        self.refused(written)
    }

    /// Adds the line to an error of the database. Rows are written in batches, so it may concern an earlier one.
    fn refused<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        match outcome {
            Err(StoreError::Database(error)) => {
                Err(self.fault(format!("this row or one shortly before was rejected: {error}")))
            }
            Err(StoreError::Damaged(problem)) => Err(self.fault(problem)),
            other => other,
        }
    }

    /// Rebuilds the search index of the workspace.
    async fn index(&mut self) -> Result<(), StoreError> {
        let (tx, ws) = (&mut self.tx, self.ws);
        for row in target::every(tx, ws).await?.iter().filter(|row| row.search_seq != 0) {
            let kind = search::SearchKind::of_target(row.id.kind);
            search::insert(tx, ws, row.search_seq, kind, row.id.key(), &row.fields.searchable()).await?;
        }
        for row in step::every(tx, ws).await?.iter().filter(|row| row.search_seq != 0) {
            let (text, number) = (row.fields.searchable(), target::signed(row.id.0));
            search::insert(tx, ws, row.search_seq, search::SearchKind::Step, number, &text).await?;
        }
        let mut last = 0;
        loop {
            let notes = entry::notes_behind(tx, ws, last, CHUNK).await?;
            let Some(newest) = notes.last() else { break };
            last = newest.seq;
            for (note, text) in notes.iter().filter_map(|note| Some((note, note.searchable()?))) {
                search::insert(tx, ws, note.seq, search::SearchKind::Note, note.seq, &text).await?;
            }
        }
        last = 0;
        loop {
            let nodes = version::nodes_behind(tx, ws, last, CHUNK).await?;
            let Some(newest) = nodes.last() else { return Ok(()) };
            last = newest.seq;
            for node in &nodes {
                version::index(tx, ws, node).await?;
            }
        }
    }

    async fn workspace(&mut self, row: Map<String, Value>) -> Result<(), StoreError> {
        self.finish().await?;
        let values = self.values(&WORKSPACES, row)?;
        let name = values[0].as_str().unwrap_or_default();
        let find = "SELECT ws FROM workspaces WHERE name = $1";
        if self.tx.row(find, args![name]).await?.is_some() {
            return Err(StoreError::WorkspaceExists(name.to_owned()));
        }
        let args: Vec<Arg<'_>> = WORKSPACES.args(&values).collect();
        self.tx.write(insert(&WORKSPACES), &args).await?;
        let made = self.tx.row(find, args![name]).await;
        let made = self.refused(made)?;
        self.ws = made.ok_or_else(|| StoreError::Damaged("a new workspace is missing".into()))?.int(0)?;
        self.last = None;
        self.counts.workspaces += 1;
        Ok(())
    }

    /// The values of a row in column order, checked.
    fn values(&self, table: &Table, mut row: Map<String, Value>) -> Result<Vec<Value>, StoreError> {
        let values = table.columns.iter().map_while(|(column, _)| row.remove(*column));
        let values: Vec<Value> = values.collect();
        if !row.is_empty() || values.len() != table.columns.len() {
            return Err(self.fault(format!("a row of {} has other columns", table.name)));
        }
        table.validate(&values).map_err(|problem| self.fault(problem))?;
        Ok(values)
    }
}
