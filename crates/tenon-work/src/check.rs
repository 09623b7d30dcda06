//! The check of a store: the database's own, and that plans, tasks and steps are the sum of their events.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::plan::event;
use crate::plan::record::{Fields, Record};
use crate::plan::step::Step;
use crate::plan::target::Target;
use crate::plan::{step, target};
use crate::store::{Engine, Store, StoreError, Tx, args};

/// What a check went through, and what it found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    pub workspaces: u64,
    pub events: u64,
    pub records: u64,
    pub problems: Vec<String>,
}

/// Enough to see what is wrong; a badly damaged store has a problem in every row.
const MAX_PROBLEMS: usize = 100;

impl Report {
    fn problem(&mut self, text: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(text);
        }
    }
}

impl Store {
    /// Goes through everything. Problems are part of the report; an error means that it could not be read.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn check(&self) -> Result<Report, StoreError> {
        let mut tx = self.read().await?;
        let mut report = Report::default();
        if tx.engine() == Engine::Sqlite {
            // The check of FTS5 trusts what this connection remembers of the index, which other processes may have
            // changed since; a search looks again.
            tx.row("SELECT rowid FROM search WHERE search MATCH 'x' LIMIT 1", args![]).await?;
            for row in tx.rows("PRAGMA integrity_check", args![]).await? {
                let line = row.text(0)?;
                if line != "ok" {
                    report.problem(line);
                }
            }
        }
        for row in tx.rows("SELECT ws FROM workspaces ORDER BY name", args![]).await? {
            workspace(&mut tx, row.int(0)?, &mut report).await?;
        }
        Ok(report)
    }
}

/// Goes through one workspace.
pub(crate) async fn workspace(tx: &mut Tx, ws: i64, report: &mut Report) -> Result<(), StoreError> {
    let row = tx.row("SELECT name, events, seqs FROM workspaces WHERE ws = $1", args![ws]).await?;
    let row = row.ok_or_else(|| StoreError::Damaged(format!("workspace {ws} is gone")))?;
    report.workspaces += 1;
    let name = row.text(0)?;
    replay(tx, ws, &name, row.int(1)?, report).await?;
    invariants(tx, ws, &name, row.int(2)?, report).await
}

/// Rebuilds every record from the log and compares it with what is stored.
async fn replay(tx: &mut Tx, ws: i64, name: &str, last: i64, report: &mut Report) -> Result<(), StoreError> {
    const CHUNK: i64 = 1000;
    let mut records: BTreeMap<String, Option<Fields>> = BTreeMap::new();
    let mut expected = 1;
    loop {
        let events = event::since(tx, ws, None, expected, CHUNK).await?;
        for event in &events {
            report.events += 1;
            if event.number != expected {
                report.problem(format!("{name}: event {expected} is missing"));
            }
            expected = event.number + 1;
            lay_over(&mut records, &event.payload);
        }
        if events.len() < CHUNK as usize {
            break;
        }
    }
    if expected - 1 != last {
        report.problem(format!("{name}: the log ends at {}, the counter at {last}", expected - 1));
    }
    for row in target::every(tx, ws).await? {
        compare(name, &row.id.to_string(), &row.fields, &mut records, report);
    }
    for row in step::every(tx, ws).await? {
        compare(name, &row.id.to_string(), &row.fields, &mut records, report);
    }
    for (id, _) in records {
        report.problem(format!("{name}: {id} is in the log but not in the store"));
    }
    Ok(())
}

/// Applies what an event says. What was made starts from the default of its kind.
fn lay_over(records: &mut BTreeMap<String, Option<Fields>>, payload: &Value) {
    for (id, after) in payload["after"].as_object().into_iter().flatten() {
        if payload["before"][id].is_null() {
            let default =
                if id.starts_with("STEP-") { Step::default().fields() } else { Target::default().fields() };
            records.insert(id.clone(), Some(default));
        }
        let known = records.entry(id.clone()).or_insert(None);
        if let (Some(fields), Some(after)) = (known, after.as_object()) {
            fields.extend(after.clone());
        }
    }
}

fn compare<R: Record>(
    name: &str,
    id: &str,
    stored: &R,
    records: &mut BTreeMap<String, Option<Fields>>,
    report: &mut Report,
) {
    report.records += 1;
    match records.remove(id) {
        Some(Some(fields)) if fields == stored.fields() => {}
        Some(_) => report.problem(format!("{name}: {id} is not the sum of its events")),
        None => report.problem(format!("{name}: {id} is in the store but not in the log")),
    }
}

/// Statements that must find nothing.
const INVARIANTS: &[(&str, &str)] = &[
    (
        "an event is not in its trace",
        "SELECT count(*) FROM events e WHERE e.ws = $1 AND NOT EXISTS (
            SELECT 1 FROM entries n WHERE n.ws = e.ws AND n.event = e.event)",
    ),
    (
        "a version does not know the next one of its key",
        "SELECT count(*) FROM (
            SELECT next, lead(seq) OVER (PARTITION BY branch, doc, kind, id ORDER BY seq) AS following
            FROM graph WHERE ws = $1) v WHERE coalesce(v.next, -1) <> coalesce(v.following, -1)",
    ),
    (
        "a step hangs from nothing",
        "SELECT count(*) FROM steps s WHERE s.ws = $1 AND s.deleted = 0 AND length(s.place) > 8 AND NOT EXISTS (
            SELECT 1 FROM steps p WHERE p.ws = s.ws AND p.target = s.target AND p.deleted = 0
            AND p.place = substr(s.place, 1, length(s.place) - 9))",
    ),
    (
        "a task has no plan",
        "SELECT count(*) FROM targets t WHERE t.ws = $1 AND t.deleted = 0 AND t.parent IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM targets p WHERE p.ws = t.ws AND p.target = t.parent AND p.deleted = 0)",
    ),
    (
        "a done step has an open one below it",
        "SELECT count(*) FROM steps s WHERE s.ws = $1 AND s.deleted = 0 AND s.completed = 0
            AND length(s.place) > 8 AND EXISTS (
            SELECT 1 FROM steps p WHERE p.ws = s.ws AND p.target = s.target AND p.deleted = 0 AND p.completed = 1
            AND p.place = substr(s.place, 1, length(s.place) - 9))",
    ),
];

const LAST_SEQ: &str = "SELECT CAST(coalesce(max(seq), 0) AS BIGINT) FROM (
    SELECT max(seq) AS seq FROM entries WHERE ws = $1
    UNION ALL SELECT max(seq) FROM graph WHERE ws = $1
    UNION ALL SELECT max(seq) FROM conflicts WHERE ws = $1) s";

async fn invariants(
    tx: &mut Tx,
    ws: i64,
    name: &str,
    seqs: i64,
    report: &mut Report,
) -> Result<(), StoreError> {
    for &(fault, sql) in INVARIANTS {
        let found = tx.row(sql, args![ws]).await?.map_or(Ok(0), |row| row.int(0))?;
        if found > 0 {
            report.problem(format!("{name}: {fault} ({found} times)"));
        }
    }
    let last = tx.row(LAST_SEQ, args![ws]).await?.map_or(Ok(0), |row| row.int(0))?;
    if last > seqs {
        report.problem(format!("{name}: seq {last} was given, the counter stands at {seqs}"));
    }
    Ok(())
}
