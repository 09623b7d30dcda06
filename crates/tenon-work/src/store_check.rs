//! The check of a store: the database's own check, every row against its table, references between rows, and plans,
//! tasks and steps against the event log.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::id::{TargetId, TargetKind};
use crate::memory::branch;
use crate::name::quoted;
use crate::plan::event;
use crate::plan::record::{Fields, Record};
use crate::plan::step::{Step, StepRow};
use crate::plan::target::{Target, TargetRow};
use crate::plan::{step, target};
use crate::store::{Store, StoreError, Tx, args};
use crate::tables::{TABLES, WORKSPACES};

/// What a check covered, and what it found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreReport {
    pub workspaces: u64,
    pub events: u64,
    pub records: u64,
    pub problems: Vec<String>,
}

/// Enough to see what is wrong; a badly damaged store has a problem in every row.
const MAX_PROBLEMS: usize = 100;

impl StoreReport {
    fn problem(&mut self, text: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(text);
        }
    }
}

impl Store {
    /// Checks everything. Problems are part of the report.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn check(&self) -> Result<StoreReport, StoreError> {
        let mut tx = self.read().await?;
        let mut report = StoreReport::default();
        tx.integrity_problems().await?.into_iter().for_each(|problem| report.problem(problem));
        for row in tx.rows("SELECT ws, name FROM workspaces ORDER BY name", args![]).await? {
            let (ws, name) = (row.int(0)?, row.text(1)?);
            report.workspaces += 1;
            // References between invalid rows mean nothing.
            if rows(&mut tx, ws, &name, &mut report).await? {
                workspace(&mut tx, ws, &mut report).await?;
            }
        }
        Ok(report)
    }
}

/// Checks every row of a workspace by itself; true if all are valid.
async fn rows(tx: &mut Tx, ws: i64, name: &str, report: &mut StoreReport) -> Result<bool, StoreError> {
    let mut good = true;
    for table in std::iter::once(&WORKSPACES).chain(TABLES) {
        tx.each_text(&table.select(), args![ws], |row| {
            let values: Vec<Value> = (0..table.columns.len()).map(|at| row.json(at)).collect();
            if let Err(misfit) = table.validate(&values) {
                good = false;
                report.problem(format!("{name}: {misfit} (row {})", quoted(&values[0].to_string())));
            }
            Ok(())
        })
        .await?;
    }
    Ok(good)
}

/// A workspace, and the records that its rows are checked against.
struct Checked {
    ws: i64,
    name: String,
    targets: Vec<TargetRow>,
    steps: Vec<StepRow>,
    /// Counters: the last number in use.
    plans: u64,
    tasks: u64,
    last_step: u64,
    events: i64,
    seqs: i64,
    branches: i64,
    focus: Option<TargetId>,
    checkout: i64,
}

const COUNTERS: &str = "SELECT name, plans, tasks, steps, events, seqs, branches, focus, checkout
    FROM workspaces WHERE ws = $1";

/// Checks one workspace whose rows are valid by themselves.
pub(crate) async fn workspace(tx: &mut Tx, ws: i64, report: &mut StoreReport) -> Result<(), StoreError> {
    let row = tx.row(COUNTERS, args![ws]).await?;
    let row = row.ok_or_else(|| StoreError::Damaged(format!("workspace {ws} is gone")))?;
    let checked = Checked {
        ws,
        name: row.text(0)?,
        targets: target::every(tx, ws).await?,
        steps: step::every(tx, ws).await?,
        plans: row.count(1)?,
        tasks: row.count(2)?,
        last_step: row.count(3)?,
        events: row.int(4)?,
        seqs: row.int(5)?,
        branches: row.int(6)?,
        focus: row.opt_int(7)?.map(TargetId::from_key),
        checkout: row.int(8)?,
    };
    checked.targets(tx, report).await?;
    checked.branches(tx, report).await?;
    checked.invariants(tx, report).await?;
    checked.replay(tx, report).await
}

impl Checked {
    fn problem(&self, report: &mut StoreReport, text: impl std::fmt::Display) {
        report.problem(format!("{}: {text}", self.name));
    }

    /// Numbers of plans, tasks and steps are within the counters, and dependencies exist.
    async fn targets(&self, tx: &mut Tx, report: &mut StoreReport) -> Result<(), StoreError> {
        let live = self.targets.iter().filter(|row| !row.fields.deleted);
        let live: BTreeMap<TargetId, &[TargetId]> =
            live.map(|row| (row.id, row.fields.depends_on.as_slice())).collect();
        for row in &self.targets {
            let last = match row.id.kind {
                TargetKind::Plan => self.plans,
                TargetKind::Task => self.tasks,
            };
            if row.id > TargetId::new(row.id.kind, last) {
                self.problem(report, format_args!("{} exceeds the counter, which is at {last}", row.id));
            }
        }
        if let Some(row) = self.steps.iter().rfind(|row| row.id.0 > self.last_step) {
            let last = self.last_step;
            self.problem(report, format_args!("{} exceeds the counter, which is at {last}", row.id));
        }
        if self.focus.is_some_and(|focus| !live.contains_key(&focus)) {
            self.problem(report, "the focus does not exist");
        }
        let needs = live.iter().flat_map(|(task, needs)| needs.iter().map(|need| (*task, *need)));
        let needs: Vec<(TargetId, TargetId)> = needs.collect();
        for (task, need) in &needs {
            if need.kind != TargetKind::Task || !live.contains_key(need) {
                self.problem(report, format_args!("{task} depends on {need}, which does not exist"));
            }
        }
        let sql = "SELECT task, needs FROM dependencies WHERE ws = $1 ORDER BY task, needs";
        let mut kept = Vec::new();
        for row in tx.rows(sql, args![self.ws]).await? {
            kept.push((TargetId::from_key(row.int(0)?), TargetId::from_key(row.int(1)?)));
        }
        if kept != needs {
            self.problem(report, "the dependency table differs from the tasks");
        }
        if let Some(task) = waiting_for_itself(&live) {
            self.problem(report, format_args!("{task} waits for itself or for a missing task"));
        }
        Ok(())
    }

    /// Bases of branches exist, and plans and tasks have their branches.
    async fn branches(&self, tx: &mut Tx, report: &mut StoreReport) -> Result<(), StoreError> {
        let sql = "SELECT branch, base, base_seq FROM branches WHERE ws = $1";
        let mut branches: BTreeMap<i64, (Option<i64>, i64)> = BTreeMap::new();
        for row in tx.rows(sql, args![self.ws]).await? {
            branches.insert(row.int(0)?, (row.opt_int(1)?, row.int(2)?));
        }
        for (&number, &(base, base_seq)) in &branches {
            if branch::target_of(number).is_none() && number > self.branches {
                let last = self.branches;
                self.problem(report, format_args!("branch {number} exceeds the counter, which is at {last}"));
            }
            if base_seq > self.seqs {
                self.problem(report, format_args!("branch {number} starts from a seq in the future"));
            }
            let (mut below, mut depth, mut upto) = (base, 0, base_seq);
            while let Some(at) = below {
                depth += 1;
                match branches.get(&at) {
                    Some((next, seq)) if *seq <= upto && depth <= branch::MAX_DEPTH => {
                        (below, upto) = (*next, *seq);
                    }
                    _ => {
                        self.problem(report, format_args!("branch {number} has a missing base, or too many"));
                        below = None;
                    }
                }
            }
        }
        for number in [branch::MAIN_NUMBER, self.checkout] {
            if !branches.contains_key(&number) {
                self.problem(report, format_args!("branch {number} is missing"));
            }
        }
        let theirs: BTreeSet<TargetId> = branches.keys().copied().filter_map(branch::target_of).collect();
        if !self.targets.iter().map(|row| &row.id).eq(&theirs) {
            self.problem(report, "plans and tasks do not match their branches");
        }
        Ok(())
    }

    /// Rebuilds every record from the log and compares it with what is stored.
    async fn replay(&self, tx: &mut Tx, report: &mut StoreReport) -> Result<(), StoreError> {
        const CHUNK: i64 = 1000;
        let mut records: BTreeMap<String, Option<Fields>> = BTreeMap::new();
        let mut expected = 1;
        loop {
            let events = event::since(tx, self.ws, None, expected, CHUNK).await?;
            for event in &events {
                report.events += 1;
                if event.number != expected {
                    self.problem(report, format_args!("event {expected} is missing"));
                }
                expected = event.number + 1;
                lay_over(&mut records, &event.payload);
            }
            if events.len() < CHUNK as usize {
                break;
            }
        }
        if expected - 1 != self.events {
            let (ends, last) = (expected - 1, self.events);
            self.problem(report, format_args!("the log ends at {ends}, the counter at {last}"));
        }
        for row in &self.targets {
            let mut settled = row.fields.clone();
            let good = settled.settle().is_ok() && settled == row.fields;
            compare(&self.name, &row.id.to_string(), &row.fields, good, &mut records, report);
        }
        for row in &self.steps {
            let mut settled = row.fields.clone();
            let good = settled.settle().is_ok() && settled == row.fields;
            compare(&self.name, &row.id.to_string(), &row.fields, good, &mut records, report);
        }
        for (id, _) in records {
            self.problem(report, format_args!("{id} is in the log but not in the store"));
        }
        Ok(())
    }

    async fn invariants(&self, tx: &mut Tx, report: &mut StoreReport) -> Result<(), StoreError> {
        for &(fault, sql) in INVARIANTS {
            let found = tx.row(sql, args![self.ws]).await?.map_or(Ok(0), |row| row.int(0))?;
            if found > 0 {
                self.problem(report, format_args!("{fault} ({found} times)"));
            }
        }
        let last = tx.row(LAST_SEQ, args![self.ws]).await?.map_or(Ok(0), |row| row.int(0))?;
        if last > self.seqs {
            let counter = self.seqs;
            self.problem(report, format_args!("seq {last} exceeds the counter, which is at {counter}"));
        }
        Ok(())
    }
}

/// A task in a dependency cycle, or behind one, if there is one.
fn waiting_for_itself(needs: &BTreeMap<TargetId, &[TargetId]>) -> Option<TargetId> {
    let mut waiting: BTreeMap<TargetId, usize> =
        needs.iter().map(|(task, needs)| (*task, needs.len())).collect();
    let mut dependents: BTreeMap<TargetId, Vec<TargetId>> = BTreeMap::new();
    for (task, needs) in needs {
        needs.iter().for_each(|need| dependents.entry(*need).or_default().push(*task));
    }
    let mut free: Vec<TargetId> =
        waiting.iter().filter(|(_, needs)| **needs == 0).map(|(task, _)| *task).collect();
    while let Some(task) = free.pop() {
        waiting.remove(&task);
        for dependent in dependents.remove(&task).unwrap_or_default() {
            let left = waiting.get_mut(&dependent).expect("every dependent is counted in `waiting`");
            *left -= 1;
            if *left == 0 {
                free.push(dependent);
            }
        }
    }
    waiting.first_key_value().map(|(task, _)| *task)
}

/// Applies an event. A created record starts from the default of that kind.
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
    settled: bool,
    records: &mut BTreeMap<String, Option<Fields>>,
    report: &mut StoreReport,
) {
    report.records += 1;
    if !settled {
        report.problem(format!("{name}: {id} exceeds a limit"));
    }
    match records.remove(id) {
        Some(Some(fields)) if fields == stored.fields() => {}
        Some(_) => report.problem(format!("{name}: {id} differs from the sum of the events")),
        None => report.problem(format!("{name}: {id} is in the store but not in the log")),
    }
}

/// Statements that must find no rows. 4398046511104 is what [`branch::number_of`] adds to the key of a target.
const INVARIANTS: &[(&str, &str)] = &[
    (
        "an event is missing from the trace",
        "SELECT count(*) FROM events e WHERE e.ws = $1 AND NOT EXISTS (
            SELECT 1 FROM entries n WHERE n.ws = e.ws AND n.event = e.event
            AND n.branch = e.target + 4398046511104)",
    ),
    (
        "a trace entry has no event",
        "SELECT count(*) FROM entries n WHERE n.ws = $1 AND n.event IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM events e WHERE e.ws = n.ws AND e.event = n.event)",
    ),
    (
        "an event has no plan or task",
        "SELECT count(*) FROM events e WHERE e.ws = $1 AND NOT EXISTS (
            SELECT 1 FROM targets t WHERE t.ws = e.ws AND t.target = e.target)",
    ),
    (
        "an event belongs to an operation of another target",
        "SELECT count(*) FROM events e WHERE e.ws = $1 AND e.operation <> 0 AND e.operation <> e.event
            AND NOT EXISTS (SELECT 1 FROM events o WHERE o.ws = e.ws AND o.event = e.operation
            AND o.operation = o.event AND o.target = e.target)",
    ),
    (
        "the redo flag of a plan or task is wrong",
        "SELECT count(*) FROM targets t WHERE t.ws = $1 AND t.undone <> (CASE WHEN EXISTS (
            SELECT 1 FROM events e WHERE e.ws = t.ws AND e.target = t.target AND e.undone = 1)
            THEN 1 ELSE 0 END)",
    ),
    (
        "an entry has no branch, or is older than the branch",
        "SELECT count(*) FROM entries n LEFT JOIN branches b ON b.ws = n.ws AND b.branch = n.branch
            WHERE n.ws = $1 AND (b.branch IS NULL OR n.seq <= b.base_seq)",
    ),
    (
        "an entry is a copy of a missing entry",
        "SELECT count(*) FROM entries n WHERE n.ws = $1 AND n.origin IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM entries o WHERE o.ws = n.ws AND o.seq = n.origin)",
    ),
    (
        "a version has no branch, or is older than the branch",
        "SELECT count(*) FROM graph v LEFT JOIN branches b ON b.ws = v.ws AND b.branch = v.branch
            WHERE v.ws = $1 AND (b.branch IS NULL OR v.seq <= b.base_seq)",
    ),
    (
        "a version is a copy of a missing version",
        "SELECT count(*) FROM graph v WHERE v.ws = $1 AND v.origin IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM graph o WHERE o.ws = v.ws AND o.seq = v.origin)",
    ),
    (
        "a version does not link to the next version",
        "SELECT count(*) FROM (
            SELECT next, revision,
                lead(seq) OVER (PARTITION BY branch, doc, kind, id ORDER BY seq) AS following,
                lead(revision) OVER (PARTITION BY branch, doc, kind, id ORDER BY seq) AS revised
            FROM graph WHERE ws = $1) v
            WHERE coalesce(v.next, -1) <> coalesce(v.following, -1) OR v.revised <> v.revision + 1",
    ),
    (
        "a merge has no branch",
        "SELECT count(*) FROM merges m WHERE m.ws = $1 AND NOT EXISTS (
            SELECT 1 FROM branches b WHERE b.ws = m.ws AND b.branch = m.source)",
    ),
    (
        "a conflict is not between a branch and its base",
        "SELECT count(*) FROM conflicts c WHERE c.ws = $1 AND NOT EXISTS (
            SELECT 1 FROM branches b WHERE b.ws = c.ws AND b.branch = c.source AND b.base = c.branch)",
    ),
    (
        "a conflict refers to a missing version",
        "SELECT count(*) FROM (
            SELECT ws, doc, kind, id, base_seq AS seq FROM conflicts WHERE ws = $1
            UNION ALL SELECT ws, doc, kind, id, theirs_seq FROM conflicts WHERE ws = $1
            UNION ALL SELECT ws, doc, kind, id, ours_seq FROM conflicts WHERE ws = $1) c
            WHERE c.seq IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM graph v WHERE v.ws = c.ws AND v.seq = c.seq AND v.doc = c.doc AND v.kind = c.kind
            AND v.id = c.id)",
    ),
    (
        "a step has no plan or task",
        "SELECT count(*) FROM steps s WHERE s.ws = $1 AND NOT EXISTS (
            SELECT 1 FROM targets t WHERE t.ws = s.ws AND t.target = s.target)",
    ),
    (
        "a step has no parent step",
        "SELECT count(*) FROM steps s WHERE s.ws = $1 AND s.deleted = 0 AND length(s.place) > 8 AND NOT EXISTS (
            SELECT 1 FROM steps p WHERE p.ws = s.ws AND p.target = s.target AND p.deleted = 0
            AND p.place = substr(s.place, 1, length(s.place) - 9))",
    ),
    (
        "a task has no plan",
        "SELECT count(*) FROM targets t WHERE t.ws = $1 AND t.parent IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM targets p WHERE p.ws = t.ws AND p.target = t.parent
            AND (p.deleted = 0 OR t.deleted = 1))",
    ),
    (
        "a done step has an open one below it",
        "SELECT count(*) FROM steps s WHERE s.ws = $1 AND s.deleted = 0 AND s.completed = 0
            AND length(s.place) > 8 AND EXISTS (
            SELECT 1 FROM steps p WHERE p.ws = s.ws AND p.target = s.target AND p.deleted = 0 AND p.completed = 1
            AND p.place = substr(s.place, 1, length(s.place) - 9))",
    ),
    (
        "a seq is used twice",
        "SELECT count(*) - count(DISTINCT seq) FROM (
            SELECT seq FROM entries WHERE ws = $1
            UNION ALL SELECT seq FROM graph WHERE ws = $1
            UNION ALL SELECT seq FROM conflicts WHERE ws = $1
            UNION ALL SELECT search_seq FROM targets WHERE ws = $1 AND search_seq <> 0
            UNION ALL SELECT search_seq FROM steps WHERE ws = $1 AND search_seq <> 0) s",
    ),
];

const LAST_SEQ: &str = "SELECT CAST(coalesce(max(seq), 0) AS BIGINT) FROM (
    SELECT max(seq) AS seq FROM entries WHERE ws = $1
    UNION ALL SELECT max(seq) FROM graph WHERE ws = $1
    UNION ALL SELECT max(seq) FROM conflicts WHERE ws = $1
    UNION ALL SELECT max(seq) FROM merges WHERE ws = $1
    UNION ALL SELECT max(search_seq) FROM targets WHERE ws = $1
    UNION ALL SELECT max(search_seq) FROM steps WHERE ws = $1) s";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branch_number_of_a_target_matches_the_statements() {
        let task = TargetId::new(TargetKind::Task, 7);
        assert_eq!(branch::number_of(task), task.key() + 4_398_046_511_104);
    }

    #[test]
    fn dependency_cycle_is_found() {
        let task = |number| TargetId::new(TargetKind::Task, number);
        let (one, two, three) = ([task(2)], [task(3)], [task(2)]);
        let chain = BTreeMap::from([(task(1), &one[..]), (task(2), &two[..]), (task(3), &[])]);
        assert_eq!(waiting_for_itself(&chain), None);
        let circle = BTreeMap::from([(task(1), &one[..]), (task(2), &two[..]), (task(3), &three[..])]);
        assert!(waiting_for_itself(&circle).is_some());
    }
}
