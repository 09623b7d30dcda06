//! Steps: the tree of work in a task, with the checkpoints that gate each step.

use serde::{Deserialize, Serialize};

use super::record::record;
use super::target::{parsed, signed, stored, time};
use crate::error::WorkError;
use crate::id::{EvidenceId, StepId, TargetId};
use crate::limits;
use crate::path::StepPath;
use crate::store::{Arg, Row, StoreError, Tx, args};

/// What must be confirmed before a step may close. The first two gate every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Checkpoint {
    Criteria,
    Tests,
    Security,
    Perf,
    Docs,
}

impl Checkpoint {
    pub(crate) const ALL: [Self; 5] = [Self::Criteria, Self::Tests, Self::Security, Self::Perf, Self::Docs];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Criteria => "criteria",
            Self::Tests => "tests",
            Self::Security => "security",
            Self::Perf => "perf",
            Self::Docs => "docs",
        }
    }

    /// Whether a step may choose to be gated by it.
    pub(crate) fn is_optional(self) -> bool {
        !matches!(self, Self::Criteria | Self::Tests)
    }

    fn bit(self) -> i64 {
        1 << self as i64
    }

    fn to_bits(set: &[Self]) -> i64 {
        set.iter().fold(0, |bits, checkpoint| bits | checkpoint.bit())
    }

    fn from_bits(bits: i64) -> Vec<Self> {
        Self::ALL.into_iter().filter(|checkpoint| bits & checkpoint.bit() != 0).collect()
    }
}

/// The checkpoints that a step may declare.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OptionalCheckpoint {
    Security,
    Perf,
    Docs,
}

impl From<OptionalCheckpoint> for Checkpoint {
    fn from(optional: OptionalCheckpoint) -> Self {
        match optional {
            OptionalCheckpoint::Security => Self::Security,
            OptionalCheckpoint::Perf => Self::Perf,
            OptionalCheckpoint::Docs => Self::Docs,
        }
    }
}

/// A reference to what was attached to a checkpoint. The content is an entry of the notes document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Evidence {
    pub id: EvidenceId,
    pub checkpoint: Checkpoint,
    pub kind: String,
    pub sha256: String,
    pub bytes: usize,
}

/// The fields that events carry.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Step {
    pub path: StepPath,
    pub title: String,
    pub success_criteria: Vec<String>,
    pub tests: Vec<String>,
    pub blockers: Vec<String>,
    pub checkpoints: Vec<Checkpoint>,
    pub confirmed: Vec<Checkpoint>,
    pub completed: bool,
    pub evidence: Vec<Evidence>,
    pub notes: u64,
    pub revision: u64,
    pub deleted: bool,
}

record!(Step {
    path,
    title,
    success_criteria,
    tests,
    blockers,
    checkpoints,
    confirmed,
    completed,
    evidence,
    notes,
    revision,
    deleted,
});

impl Step {
    /// Normalises lists and checks the limits of all fields.
    pub(crate) fn settle(&mut self) -> Result<(), WorkError> {
        limits::title(&self.title)?;
        limits::texts("success_criteria", &self.success_criteria)?;
        limits::texts("tests", &self.tests)?;
        limits::texts("blockers", &self.blockers)?;
        limits::evidence(self.evidence.len())?;
        if self.success_criteria.is_empty() {
            return Err(WorkError::invalid("a step needs at least one success criterion")
                .recovery("give success_criteria: how to see that the step is done"));
        }
        if !self.checkpoints.iter().all(|checkpoint| checkpoint.is_optional()) {
            return Err(WorkError::invalid("criteria and tests gate every step and cannot be declared")
                .recovery("checkpoints may hold security, perf and docs"));
        }
        for list in [&mut self.checkpoints, &mut self.confirmed] {
            list.sort();
            list.dedup();
        }
        Ok(())
    }

    /// Changed criteria or tests must be confirmed again.
    pub(crate) fn reset_confirmations(&mut self, before: &Self) {
        if self.success_criteria != before.success_criteria {
            self.confirmed.retain(|checkpoint| *checkpoint != Checkpoint::Criteria);
        }
        if self.tests != before.tests {
            self.confirmed.retain(|checkpoint| *checkpoint != Checkpoint::Tests);
        }
    }

    /// The checkpoints that still gate this step.
    pub(crate) fn missing(&self) -> Vec<Checkpoint> {
        let gates =
            |checkpoint: &Checkpoint| !checkpoint.is_optional() || self.checkpoints.contains(checkpoint);
        Checkpoint::ALL
            .into_iter()
            .filter(|checkpoint| gates(checkpoint) && !self.confirmed.contains(checkpoint))
            .collect()
    }

    pub(crate) fn searchable(&self) -> String {
        let mut parts = vec![self.title.as_str()];
        parts.extend(
            self.success_criteria.iter().chain(&self.tests).chain(&self.blockers).map(String::as_str),
        );
        parts.join("\n")
    }
}

/// A step as stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepRow {
    pub id: StepId,
    pub target: TargetId,
    pub fields: Step,
    pub created_ms: i64,
    pub updated_ms: i64,
    pub search_seq: i64,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT step, target, place, title, success_criteria, tests, blockers, checkpoints, confirmed,
            completed, evidence, notes, revision, deleted, created_ms, updated_ms, search_seq FROM steps ",
            $rest
        )
    };
}
pub(crate) use select;

impl StepRow {
    pub(crate) fn from_row(row: &Row) -> Result<Self, StoreError> {
        let place = row.text(2)?;
        Ok(Self {
            id: StepId(row.count(0)?),
            target: TargetId::from_key(row.int(1)?),
            fields: Step {
                path: StepPath::from_sort_key(&place)
                    .ok_or_else(|| StoreError::Damaged(format!("`{place}` is not a step position")))?,
                title: row.text(3)?,
                success_criteria: parsed(&row.text(4)?)?,
                tests: parsed(&row.text(5)?)?,
                blockers: parsed(&row.text(6)?)?,
                checkpoints: Checkpoint::from_bits(row.int(7)?),
                confirmed: Checkpoint::from_bits(row.int(8)?),
                completed: row.flag(9)?,
                evidence: parsed(&row.text(10)?)?,
                notes: row.count(11)?,
                revision: row.count(12)?,
                deleted: row.flag(13)?,
            },
            created_ms: row.int(14)?,
            updated_ms: row.int(15)?,
            search_seq: row.int(16)?,
        })
    }

    /// The step as lists show it.
    pub(crate) fn view(&self) -> StepView<'_> {
        let fields = &self.fields;
        StepView {
            step_id: self.id,
            path: &fields.path,
            title: &fields.title,
            success_criteria: &fields.success_criteria,
            tests: &fields.tests,
            blockers: &fields.blockers,
            checkpoints: &fields.checkpoints,
            confirmed: &fields.confirmed,
            missing: if fields.completed { Vec::new() } else { fields.missing() },
            completed: fields.completed,
            evidence: &fields.evidence,
            notes: fields.notes,
            revision: fields.revision,
            updated_at: time(self.updated_ms),
        }
    }

    /// The step as the answer to a write names it.
    pub(crate) fn to_ref(&self) -> StepRef {
        StepRef {
            step_id: self.id,
            path: self.fields.path.clone(),
            revision: self.fields.revision,
            completed: self.fields.completed,
        }
    }
}

/// A step in a list.
#[derive(Debug, Serialize)]
pub(crate) struct StepView<'a> {
    step_id: StepId,
    path: &'a StepPath,
    title: &'a str,
    success_criteria: &'a [String],
    tests: &'a [String],
    blockers: &'a [String],
    checkpoints: &'a [Checkpoint],
    confirmed: &'a [Checkpoint],
    missing: Vec<Checkpoint>,
    completed: bool,
    evidence: &'a [Evidence],
    notes: u64,
    revision: u64,
    updated_at: String,
}

/// A step in the answer to a write.
#[derive(Debug, Serialize)]
pub(crate) struct StepRef {
    step_id: StepId,
    path: StepPath,
    revision: u64,
    completed: bool,
}

pub(crate) async fn by_id(tx: &mut Tx, ws: i64, id: StepId) -> Result<Option<StepRow>, StoreError> {
    let row = tx.row(select!("WHERE ws = $1 AND step = $2"), args![ws, signed(id.0)]).await?;
    row.as_ref().map(StepRow::from_row).transpose()
}

pub(crate) async fn by_path(
    tx: &mut Tx,
    ws: i64,
    target: TargetId,
    path: &StepPath,
) -> Result<Option<StepRow>, StoreError> {
    let sql = select!("WHERE ws = $1 AND target = $2 AND place = $3");
    let row = tx.row(sql, args![ws, target.key(), path.sort_key()]).await?;
    row.as_ref().map(StepRow::from_row).transpose()
}

/// The steps below a step, however deep, in the order of the tree.
pub(crate) async fn below(
    tx: &mut Tx,
    ws: i64,
    target: TargetId,
    path: &StepPath,
) -> Result<Vec<StepRow>, StoreError> {
    // `/` is the character after `.`, which separates positions.
    let (from, to) = (format!("{}.", path.sort_key()), format!("{}/", path.sort_key()));
    let sql =
        select!("WHERE ws = $1 AND target = $2 AND place > $3 AND place < $4 AND deleted = 0 ORDER BY place");
    let rows = tx.rows(sql, args![ws, target.key(), from, to]).await?;
    rows.iter().map(StepRow::from_row).collect()
}

/// The first open steps below a step.
pub(crate) async fn open_below(
    tx: &mut Tx,
    ws: i64,
    target: TargetId,
    path: &StepPath,
    most: i64,
) -> Result<Vec<StepRow>, StoreError> {
    let (from, to) = (format!("{}.", path.sort_key()), format!("{}/", path.sort_key()));
    let sql = select!(
        "WHERE ws = $1 AND target = $2 AND place > $3 AND place < $4 AND deleted = 0 AND completed = 0
        ORDER BY place LIMIT $5"
    );
    let rows = tx.rows(sql, args![ws, target.key(), from, to, most]).await?;
    rows.iter().map(StepRow::from_row).collect()
}

/// Of open steps in the order of the tree, the first whose children are done. Removes it from the list.
pub(crate) fn take_first_leaf(open: &mut Vec<StepRow>) -> Option<StepRow> {
    let mut at = 0;
    while open.get(at + 1).is_some_and(|below| below.fields.path.is_below(&open[at].fields.path)) {
        at += 1;
    }
    (!open.is_empty()).then(|| open.remove(at))
}

/// All steps of a target in the order of the tree.
pub(crate) async fn all(tx: &mut Tx, ws: i64, target: TargetId) -> Result<Vec<StepRow>, StoreError> {
    let sql = select!("WHERE ws = $1 AND target = $2 AND deleted = 0 ORDER BY place");
    let rows = tx.rows(sql, args![ws, target.key()]).await?;
    rows.iter().map(StepRow::from_row).collect()
}

/// The steps with these numbers; not those that are deleted, nor those of a deleted task.
pub(crate) async fn by_numbers(tx: &mut Tx, ws: i64, numbers: &[i64]) -> Result<Vec<StepRow>, StoreError> {
    let sql = select!(
        "WHERE ws = $1 AND deleted = 0 AND EXISTS (SELECT 1 FROM targets t
        WHERE t.ws = steps.ws AND t.target = steps.target AND t.deleted = 0) AND step "
    );
    let rows = tx.rows_of(sql, ws, numbers, "step").await?;
    rows.iter().map(StepRow::from_row).collect()
}

/// Steps of tasks in a status, of the newest task first.
pub(crate) async fn of_tasks(
    tx: &mut Tx,
    ws: i64,
    status: &str,
    most: i64,
) -> Result<Vec<StepRow>, StoreError> {
    let sql = select!(
        "WHERE ws = $1 AND deleted = 0 AND EXISTS (SELECT 1 FROM targets t WHERE t.ws = steps.ws
        AND t.target = steps.target AND t.deleted = 0 AND t.status = $2) ORDER BY target DESC, place LIMIT $3"
    );
    let rows = tx.rows(sql, args![ws, status, most]).await?;
    rows.iter().map(StepRow::from_row).collect()
}

/// All steps of a workspace, deleted ones too.
pub(crate) async fn every(tx: &mut Tx, ws: i64) -> Result<Vec<StepRow>, StoreError> {
    let rows = tx.rows(select!("WHERE ws = $1 ORDER BY step"), args![ws]).await?;
    rows.iter().map(StepRow::from_row).collect()
}

/// The first open steps in the order of the tree.
pub(crate) async fn open(
    tx: &mut Tx,
    ws: i64,
    target: TargetId,
    most: i64,
) -> Result<Vec<StepRow>, StoreError> {
    let sql =
        select!("WHERE ws = $1 AND target = $2 AND deleted = 0 AND completed = 0 ORDER BY place LIMIT $3");
    let rows = tx.rows(sql, args![ws, target.key(), most]).await?;
    rows.iter().map(StepRow::from_row).collect()
}

/// Step counts of a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub total: i64,
    pub completed: i64,
    pub missing_criteria: i64,
    pub missing_tests: i64,
}

pub(crate) async fn counts(tx: &mut Tx, ws: i64, target: TargetId) -> Result<Counts, StoreError> {
    let sql = "SELECT count(*), CAST(coalesce(sum(completed), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN completed = 0 AND (confirmed & 1) = 0 THEN 1 ELSE 0 END), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN completed = 0 AND (confirmed & 2) = 0 THEN 1 ELSE 0 END), 0) AS BIGINT)
        FROM steps WHERE ws = $1 AND target = $2 AND deleted = 0";
    let row = tx.row(sql, args![ws, target.key()]).await?;
    let Some(row) = row else { return Ok(Counts::default()) };
    Ok(Counts {
        total: row.int(0)?,
        completed: row.int(1)?,
        missing_criteria: row.int(2)?,
        missing_tests: row.int(3)?,
    })
}

/// The next free ordinal below a step, or at the root. Deleted steps keep theirs.
pub(crate) async fn next_ordinal(
    tx: &mut Tx,
    ws: i64,
    target: TargetId,
    parent: Option<&StepPath>,
) -> Result<u32, StoreError> {
    let prefix = parent.map(|path| format!("{}.", path.sort_key())).unwrap_or_default();
    let (from, to) = match parent {
        Some(path) => (prefix.clone(), format!("{}/", path.sort_key())),
        None => (String::new(), "g".to_owned()),
    };
    let sql = "SELECT max(substr(place, 1, CAST($5 AS INTEGER))) FROM steps
        WHERE ws = $1 AND target = $2 AND place > $3 AND place < $4";
    let width = signed(prefix.len() as u64 + 8);
    let row = tx.row(sql, args![ws, target.key(), from, to, width]).await?;
    let last = row.map(|row| row.opt_text(0)).transpose()?.flatten();
    Ok(last.and_then(|place| StepPath::from_sort_key(&place)).map_or(0, |path| path.ordinal() + 1))
}

const INSERT: &str = "INSERT INTO steps (ws, step, target, place, title, success_criteria, tests, blockers,
    checkpoints, confirmed, completed, evidence, notes, revision, deleted, created_ms, updated_ms, search_seq)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)";

const UPDATE: &str =
    "UPDATE steps SET target = $3, place = $4, title = $5, success_criteria = $6, tests = $7,
    blockers = $8, checkpoints = $9, confirmed = $10, completed = $11, evidence = $12, notes = $13,
    revision = $14, deleted = $15, created_ms = $16, updated_ms = $17, search_seq = $18
    WHERE ws = $1 AND step = $2";

/// The same without indexed columns, whose index entries would be rewritten.
const UPDATE_IN_PLACE: &str = "UPDATE steps SET title = $5, success_criteria = $6, tests = $7, blockers = $8,
    checkpoints = $9, confirmed = $10, completed = $11, evidence = $12, notes = $13, revision = $14,
    deleted = $15, created_ms = $16, updated_ms = $17, search_seq = $18 WHERE ws = $1 AND step = $2";

/// Inserts or updates a row.
pub(crate) async fn write(
    tx: &mut Tx,
    ws: i64,
    row: &StepRow,
    before: Option<&StepRow>,
) -> Result<(), StoreError> {
    let fields = &row.fields;
    let indexed = |row: &StepRow| (row.target, row.fields.path.clone());
    let sql = match before {
        None => INSERT,
        Some(before) if indexed(before) == indexed(row) => UPDATE_IN_PLACE,
        Some(_) => UPDATE,
    };
    let values: [Arg<'_>; 18] = [
        ws.into(),
        signed(row.id.0).into(),
        row.target.key().into(),
        fields.path.sort_key().into(),
        fields.title.as_str().into(),
        stored(&fields.success_criteria).into(),
        stored(&fields.tests).into(),
        stored(&fields.blockers).into(),
        Checkpoint::to_bits(&fields.checkpoints).into(),
        Checkpoint::to_bits(&fields.confirmed).into(),
        fields.completed.into(),
        stored(&fields.evidence).into(),
        signed(fields.notes).into(),
        signed(fields.revision).into(),
        fields.deleted.into(),
        row.created_ms.into(),
        row.updated_ms.into(),
        row.search_seq.into(),
    ];
    tx.write(sql, &values).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step() -> Step {
        Step { title: "s".into(), success_criteria: vec!["c".into()], ..Step::default() }
    }

    #[test]
    fn criteria_and_tests_always_gate_and_the_others_when_declared() {
        let mut step = step();
        assert_eq!(step.missing(), [Checkpoint::Criteria, Checkpoint::Tests]);
        step.checkpoints = vec![Checkpoint::Docs];
        step.confirmed = vec![Checkpoint::Tests, Checkpoint::Perf];
        assert_eq!(step.missing(), [Checkpoint::Criteria, Checkpoint::Docs]);
    }

    #[test]
    fn new_criteria_or_tests_must_be_confirmed_again() {
        let before = Step { confirmed: vec![Checkpoint::Criteria, Checkpoint::Tests], ..step() };
        let mut after = Step { tests: vec!["t".into()], ..before.clone() };
        after.reset_confirmations(&before);
        assert_eq!(after.confirmed, [Checkpoint::Criteria]);
        let mut same = before.clone();
        same.reset_confirmations(&before);
        assert_eq!(same.confirmed, before.confirmed);
    }

    #[test]
    fn checkpoints_are_kept_as_bits() {
        for bits in 0..32 {
            assert_eq!(Checkpoint::to_bits(&Checkpoint::from_bits(bits)), bits);
        }
    }
}
