//! Plans and tasks, which share one table and one shape.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenon_contract::clock::rfc3339;
use tenon_contract::json::canonical_value;

use super::record::record;
use crate::error::WorkError;
use crate::id::{TargetId, TargetKind};
use crate::limits;
use crate::name::Tag;
use crate::store::{Arg, Row, StoreError, Tx, args};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    #[default]
    Todo,
    Active,
    Done,
}

impl Status {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Todo => "todo",
            Self::Active => "active",
            Self::Done => "done",
        }
    }

    pub(crate) fn from_stored(text: &str) -> Self {
        match text {
            "done" => Self::Done,
            "active" => Self::Active,
            _ => Self::Todo,
        }
    }
}

/// In the order of the ready queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TaskPriority {
    High,
    #[default]
    Medium,
    Low,
}

impl TaskPriority {
    pub(crate) fn rank(self) -> i64 {
        match self {
            Self::High => 0,
            Self::Medium => 1,
            Self::Low => 2,
        }
    }

    fn from_rank(rank: i64) -> Self {
        match rank {
            0 => Self::High,
            1 => Self::Medium,
            _ => Self::Low,
        }
    }
}

/// A lease on a task. An expired one has no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    pub agent: String,
    pub expires_ms: i64,
}

impl Claim {
    pub(crate) fn is_live(&self, now: i64) -> bool {
        self.expires_ms > now
    }

    pub(crate) fn view(&self) -> ClaimView<'_> {
        ClaimView { agent: &self.agent, expires_at: time(self.expires_ms) }
    }
}

/// A claim as clients see it.
#[derive(Debug, Serialize)]
pub(crate) struct ClaimView<'a> {
    agent: &'a str,
    expires_at: String,
}

/// The fields that events carry.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Target {
    pub parent: Option<TargetId>,
    pub title: String,
    pub description: Option<String>,
    pub contract: Option<String>,
    pub contract_data: Option<Value>,
    pub status: Status,
    pub priority: TaskPriority,
    pub tags: Vec<Tag>,
    pub depends_on: Vec<TargetId>,
    pub blockers: Vec<String>,
    pub claim: Option<Claim>,
    pub notes: u64,
    pub revision: u64,
    pub deleted: bool,
}

record!(Target {
    parent,
    title,
    description,
    contract,
    contract_data,
    status,
    priority,
    tags,
    depends_on,
    blockers,
    claim,
    notes,
    revision,
    deleted,
});

impl Target {
    /// Normalises lists and checks the limits of all fields.
    pub(crate) fn settle(&mut self) -> Result<(), WorkError> {
        limits::title(&self.title)?;
        for (name, text) in [("description", &self.description), ("contract", &self.contract)] {
            text.iter().try_for_each(|text| limits::text(name, text))?;
        }
        self.contract_data.iter().try_for_each(|data| limits::data("contract_data", data))?;
        limits::texts("blockers", &self.blockers)?;
        limits::count("tags", self.tags.len(), limits::PER_CALL)?;
        limits::count("depends_on", self.depends_on.len(), limits::PER_CALL)?;
        self.tags.sort();
        self.tags.dedup();
        self.depends_on.sort();
        self.depends_on.dedup();
        Ok(())
    }

    /// The text that a search looks through.
    pub(crate) fn searchable(&self) -> String {
        let tags: Vec<&str> = self.tags.iter().map(Tag::as_str).collect();
        let parts = [
            Some(self.title.as_str()),
            self.description.as_deref(),
            self.contract.as_deref(),
            Some(&tags.join(" ")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }
}

/// A target as stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TargetRow {
    pub id: TargetId,
    pub fields: Target,
    pub created_ms: i64,
    pub updated_ms: i64,
    /// `seq` in the search index; 0 if it is not indexed.
    pub search_seq: i64,
    /// Whether there are undone operations that can be redone.
    pub undone: bool,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT target, parent, title, description, contract, contract_data, status, priority, tags,
            depends_on, blockers, claim_agent, claim_expires_ms, notes, revision, deleted, created_ms,
            updated_ms, search_seq, undone FROM targets ",
            $rest
        )
    };
}
pub(crate) use select;

/// The number of columns that it selects.
pub(crate) const COLUMNS: usize = 20;

impl TargetRow {
    pub(crate) fn from_row(row: &Row) -> Result<Self, StoreError> {
        let claim = match (row.opt_text(11)?, row.opt_int(12)?) {
            (Some(agent), Some(expires_ms)) => Some(Claim { agent, expires_ms }),
            _ => None,
        };
        Ok(Self {
            id: TargetId::from_key(row.int(0)?),
            fields: Target {
                parent: row.opt_int(1)?.map(TargetId::from_key),
                title: row.text(2)?,
                description: row.opt_text(3)?,
                contract: row.opt_text(4)?,
                contract_data: row.opt_text(5)?.map(|text| parsed(&text)).transpose()?,
                status: Status::from_stored(&row.text(6)?),
                priority: TaskPriority::from_rank(row.int(7)?),
                tags: parsed(&row.text(8)?)?,
                depends_on: parsed(&row.text(9)?)?,
                blockers: parsed(&row.text(10)?)?,
                claim,
                notes: row.count(13)?,
                revision: row.count(14)?,
                deleted: row.flag(15)?,
            },
            created_ms: row.int(16)?,
            updated_ms: row.int(17)?,
            search_seq: row.int(18)?,
            undone: row.flag(19)?,
        })
    }

    /// The target as clients see it, without step counts.
    pub(crate) fn view(&self) -> TargetView<'_> {
        let fields = &self.fields;
        TargetView {
            id: self.id,
            kind: self.id.kind,
            parent: fields.parent,
            title: &fields.title,
            description: fields.description.as_deref(),
            contract: fields.contract.as_deref(),
            contract_data: fields.contract_data.as_ref(),
            status: fields.status,
            priority: fields.priority,
            tags: &fields.tags,
            depends_on: &fields.depends_on,
            blockers: &fields.blockers,
            claim: fields.claim.as_ref().map(Claim::view),
            notes: fields.notes,
            revision: fields.revision,
            created_at: time(self.created_ms),
            updated_at: time(self.updated_ms),
            steps: None,
        }
    }

    /// The most important fields, small enough for an error.
    pub(crate) fn brief(&self) -> TargetBrief {
        TargetBrief {
            id: self.id,
            kind: self.id.kind,
            title: excerpt(&self.fields.title, 120),
            status: self.fields.status,
            revision: self.fields.revision,
            updated_at: time(self.updated_ms),
        }
    }
}

/// A plan or task as clients see it.
#[derive(Debug, Serialize)]
pub(crate) struct TargetView<'a> {
    id: TargetId,
    kind: TargetKind,
    parent: Option<TargetId>,
    title: &'a str,
    description: Option<&'a str>,
    contract: Option<&'a str>,
    contract_data: Option<&'a Value>,
    status: Status,
    priority: TaskPriority,
    tags: &'a [Tag],
    depends_on: &'a [TargetId],
    blockers: &'a [String],
    claim: Option<ClaimView<'a>>,
    notes: u64,
    revision: u64,
    created_at: String,
    updated_at: String,
    /// Only in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepTotals>,
}

/// Step counts in a list of plans and tasks.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct StepTotals {
    pub total: i64,
    pub completed: i64,
}

/// A plan or task in an error.
#[derive(Debug, Serialize)]
pub(crate) struct TargetBrief {
    id: TargetId,
    kind: TargetKind,
    title: String,
    status: Status,
    revision: u64,
    updated_at: String,
}

/// Where the reasoning about a plan or task is stored.
#[derive(Debug, Serialize)]
pub(crate) struct ReasoningRef {
    branch: String,
    notes_doc: &'static str,
    graph_doc: String,
    trace_doc: String,
}

pub(crate) fn reasoning_ref(id: TargetId) -> ReasoningRef {
    ReasoningRef {
        branch: id.branch(),
        notes_doc: crate::memory::NOTES,
        graph_doc: id.graph_doc(),
        trace_doc: id.trace_doc(),
    }
}

/// The beginning of a text, marked if there is more.
pub(crate) fn excerpt(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

pub(crate) fn time(ms: i64) -> String {
    rfc3339(jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
}

/// Parses JSON that this crate stored.
pub(crate) fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// The canonical JSON of a column.
pub(crate) fn stored<T: Serialize + ?Sized>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(value) => canonical_value(&value),
        Err(_) => unreachable!("columns hold lists and maps of strings and numbers"),
    }
}

pub(crate) async fn load(tx: &mut Tx, ws: i64, id: TargetId) -> Result<Option<TargetRow>, StoreError> {
    let row = tx.row(select!("WHERE ws = $1 AND target = $2"), args![ws, id.key()]).await?;
    row.as_ref().map(TargetRow::from_row).transpose()
}

/// The plans and tasks with these keys that are not deleted.
pub(crate) async fn by_keys(tx: &mut Tx, ws: i64, keys: &[i64]) -> Result<Vec<TargetRow>, StoreError> {
    let rows = tx.rows_of(select!("WHERE ws = $1 AND deleted = 0 AND target "), ws, keys, "target").await?;
    rows.iter().map(TargetRow::from_row).collect()
}

/// All plans and tasks, deleted ones too.
pub(crate) async fn every(tx: &mut Tx, ws: i64) -> Result<Vec<TargetRow>, StoreError> {
    let rows = tx.rows(select!("WHERE ws = $1 ORDER BY target"), args![ws]).await?;
    rows.iter().map(TargetRow::from_row).collect()
}

/// The tasks of a plan.
pub(crate) async fn children(tx: &mut Tx, ws: i64, plan: TargetId) -> Result<Vec<TargetRow>, StoreError> {
    let rows = tx
        .rows(select!("WHERE ws = $1 AND parent = $2 AND deleted = 0 ORDER BY target"), args![ws, plan.key()])
        .await?;
    rows.iter().map(TargetRow::from_row).collect()
}

pub(crate) async fn has_open_tasks(tx: &mut Tx, ws: i64, plan: TargetId) -> Result<bool, StoreError> {
    let sql =
        "SELECT 1 FROM targets WHERE ws = $1 AND parent = $2 AND deleted = 0 AND status <> 'done' LIMIT 1";
    Ok(plan.kind == TargetKind::Plan && tx.row(sql, args![ws, plan.key()]).await?.is_some())
}

const INSERT: &str =
    "INSERT INTO targets (ws, target, parent, title, description, contract, contract_data, status,
    priority, tags, depends_on, blockers, claim_agent, claim_expires_ms, notes, revision, deleted, created_ms,
    updated_ms, search_seq, undone)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)";

const UPDATE: &str = "UPDATE targets SET parent = $3, title = $4, description = $5, contract = $6,
    contract_data = $7, status = $8, priority = $9, tags = $10, depends_on = $11, blockers = $12,
    claim_agent = $13, claim_expires_ms = $14, notes = $15, revision = $16, deleted = $17, created_ms = $18,
    updated_ms = $19, search_seq = $20, undone = $21 WHERE ws = $1 AND target = $2";

/// The same without indexed columns, whose index entries would be rewritten.
const UPDATE_IN_PLACE: &str = "UPDATE targets SET title = $4, description = $5, contract = $6,
    contract_data = $7, tags = $10, depends_on = $11, blockers = $12, claim_agent = $13, claim_expires_ms = $14,
    notes = $15, revision = $16, created_ms = $18, updated_ms = $19, search_seq = $20, undone = $21
    WHERE ws = $1 AND target = $2";

/// Inserts or updates a row.
pub(crate) async fn write(
    tx: &mut Tx,
    ws: i64,
    row: &TargetRow,
    before: Option<&TargetRow>,
) -> Result<(), StoreError> {
    let fields = &row.fields;
    let indexed = |row: &TargetRow| {
        let fields = &row.fields;
        (fields.parent, fields.status, fields.priority, fields.deleted)
    };
    let sql = match before {
        None => INSERT,
        Some(before) if indexed(before) == indexed(row) => UPDATE_IN_PLACE,
        Some(_) => UPDATE,
    };
    let claim = fields.claim.as_ref();
    let values: [Arg<'_>; 21] = [
        ws.into(),
        row.id.key().into(),
        fields.parent.map(TargetId::key).into(),
        fields.title.as_str().into(),
        fields.description.as_deref().into(),
        fields.contract.as_deref().into(),
        fields.contract_data.as_ref().map(canonical_value).into(),
        fields.status.as_str().into(),
        fields.priority.rank().into(),
        stored(&fields.tags).into(),
        stored(&fields.depends_on).into(),
        stored(&fields.blockers).into(),
        claim.map(|claim| claim.agent.as_str()).into(),
        claim.map(|claim| claim.expires_ms).into(),
        signed(fields.notes).into(),
        signed(fields.revision).into(),
        fields.deleted.into(),
        row.created_ms.into(),
        row.updated_ms.into(),
        row.search_seq.into(),
        row.undone.into(),
    ];
    tx.write(sql, &values).await
}

/// Updates the dependency table, which queries use, from the field, which events carry.
pub(crate) async fn write_dependencies(tx: &mut Tx, ws: i64, row: &TargetRow) -> Result<(), StoreError> {
    let task = row.id.key();
    tx.write("DELETE FROM dependencies WHERE ws = $1 AND task = $2", args![ws, task]).await?;
    for needed in row.fields.depends_on.iter().filter(|_| !row.fields.deleted) {
        tx.write(
            "INSERT INTO dependencies (ws, task, needs) VALUES ($1, $2, $3)",
            args![ws, task, needed.key()],
        )
        .await?;
    }
    Ok(())
}

/// Whether `from` waits for `to`, directly or through others.
pub(crate) async fn depends(tx: &mut Tx, ws: i64, from: TargetId, to: TargetId) -> Result<bool, StoreError> {
    let sql = "WITH RECURSIVE reached (task) AS (
            SELECT CAST($2 AS BIGINT)
            UNION
            SELECT d.needs FROM dependencies d JOIN reached r ON d.task = r.task WHERE d.ws = $1
        ) SELECT 1 FROM reached WHERE task = $3 LIMIT 1";
    Ok(tx.row(sql, args![ws, from.key(), to.key()]).await?.is_some())
}

/// Tasks that wait for this one.
pub(crate) async fn dependents(tx: &mut Tx, ws: i64, id: TargetId) -> Result<Vec<TargetId>, StoreError> {
    let sql = "SELECT task FROM dependencies WHERE ws = $1 AND needs = $2 ORDER BY task LIMIT 1000";
    let rows = tx.rows(sql, args![ws, id.key()]).await?;
    rows.iter().map(|row| Ok(TargetId::from_key(row.int(0)?))).collect()
}

pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
