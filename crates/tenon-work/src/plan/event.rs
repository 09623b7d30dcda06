//! Events: the log of changes, written in the same transaction as the change.

use serde::Serialize;
use serde_json::Value;

use super::target::{parsed, time};
use crate::cursor::SortKey;
use crate::id::{EventId, TargetId};
use crate::memory::{branch, entry};
use crate::page::{Cut, Item};
use crate::path::StepPath;
use crate::store::{Row, StoreError, Tx, args};
use crate::workspace::Workspace;

/// An event in the store.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub number: i64,
    pub ts_ms: i64,
    pub target: TargetId,
    pub path: Option<StepPath>,
    pub kind: String,
    pub tool: String,
    /// The first event of the operation it belongs to; 0 if it cannot be undone.
    pub operation: i64,
    pub undo_state: UndoState,
    /// The revision of the target after it.
    pub revision: u64,
    pub payload: Value,
}

/// An event as clients see it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct EventView {
    event_id: EventId,
    ts: String,
    ts_ms: i64,
    workspace: String,
    task: TargetId,
    path: Option<StepPath>,
    r#type: String,
    payload: Value,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT event, ts_ms, target, place, type, tool, operation, undone, revision, payload FROM events ",
            $rest
        )
    };
}

fn from_row(row: &Row) -> Result<Event, StoreError> {
    Ok(Event {
        number: row.int(0)?,
        ts_ms: row.int(1)?,
        target: TargetId::from_key(row.int(2)?),
        path: row.opt_text(3)?.and_then(|place| StepPath::from_sort_key(&place)),
        kind: row.text(4)?,
        tool: row.text(5)?,
        operation: row.int(6)?,
        undo_state: UndoState::from_number(row.int(7)?),
        revision: row.count(8)?,
        payload: parsed(&row.text(9)?)?,
    })
}

impl Event {
    pub(crate) fn view(&self, workspace: &str) -> EventView {
        EventView {
            event_id: EventId(self.number.unsigned_abs()),
            ts: time(self.ts_ms),
            ts_ms: self.ts_ms,
            workspace: workspace.to_owned(),
            task: self.target,
            path: self.path.clone(),
            r#type: self.kind.clone(),
            payload: self.payload.clone(),
        }
    }

    pub(crate) fn to_item(&self, list: &'static str, workspace: &str) -> Item {
        let keep = &["event_id", "ts", "ts_ms", "task", "path", "type"];
        Item::new(list, SortKey::ints(&[self.number]), self.view(workspace), Cut::Json(keep))
    }
}

const INSERT: &str = "INSERT INTO events
    (ws, event, ts_ms, target, place, type, tool, operation, undone, revision, payload)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, $10)";

/// Writes an event and adds it to the trace of the target.
pub(crate) async fn write(tx: &mut Tx, ws: &mut Workspace, event: &Event) -> Result<(), StoreError> {
    let place = event.path.as_ref().map(StepPath::sort_key);
    let payload = super::target::stored(&event.payload);
    let args = args![
        ws.id,
        event.number,
        event.ts_ms,
        event.target.key(),
        place,
        event.kind.as_str(),
        event.tool.as_str(),
        event.operation,
        super::target::signed(event.revision),
        payload,
    ];
    tx.write(INSERT, args).await?;
    let target = event.target;
    entry::ingest(tx, ws, event.ts_ms, branch::number_of(target), &target.trace_doc(), event.number).await?;
    Ok(())
}

/// Events starting at a number, oldest first, of one target or of all.
pub(crate) async fn since(
    tx: &mut Tx,
    ws: i64,
    target: Option<TargetId>,
    first: i64,
    most: i64,
) -> Result<Vec<Event>, StoreError> {
    let rows = match target {
        None => {
            let sql = select!("WHERE ws = $1 AND event >= $2 ORDER BY event LIMIT $3");
            tx.rows(sql, args![ws, first, most]).await?
        }
        Some(target) => {
            let sql = select!("WHERE ws = $1 AND target = $4 AND event >= $2 ORDER BY event LIMIT $3");
            tx.rows(sql, args![ws, first, most, target.key()]).await?
        }
    };
    rows.iter().map(from_row).collect()
}

/// The newest events of a target, newest first.
pub(crate) async fn newest(
    tx: &mut Tx,
    ws: i64,
    target: TargetId,
    most: i64,
) -> Result<Vec<Event>, StoreError> {
    let sql = select!("WHERE ws = $1 AND target = $2 ORDER BY event DESC LIMIT $3");
    let rows = tx.rows(sql, args![ws, target.key(), most]).await?;
    rows.iter().map(from_row).collect()
}

/// Operations of a target at or below an event number, newest first: each as its first event.
pub(crate) async fn operations(
    tx: &mut Tx,
    ws: i64,
    target: TargetId,
    below: i64,
    most: i64,
) -> Result<Vec<Event>, StoreError> {
    let sql = select!(
        "WHERE ws = $1 AND target = $2 AND event <= $3 AND operation = event ORDER BY event DESC LIMIT $4"
    );
    let rows = tx.rows(sql, args![ws, target.key(), below, most]).await?;
    rows.iter().map(from_row).collect()
}

/// Whether an operation is done, undone, or can no longer be redone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UndoState {
    Done,
    /// Undone, and can be redone.
    Undone,
    /// Undone, and followed by a newer operation.
    Discarded,
}

impl UndoState {
    fn number(self) -> i64 {
        self as i64
    }

    fn from_number(number: i64) -> Self {
        match number {
            0 => Self::Done,
            1 => Self::Undone,
            _ => Self::Discarded,
        }
    }
}

/// The newest operation of a target in this state.
pub(crate) async fn newest_operation(
    tx: &mut Tx,
    ws: i64,
    target: TargetId,
    undo_state: UndoState,
) -> Result<Option<Event>, StoreError> {
    let sql = select!(
        "WHERE ws = $1 AND target = $2 AND operation = event AND undone = $3 ORDER BY event DESC LIMIT 1"
    );
    tx.row(sql, args![ws, target.key(), undo_state.number()]).await?.as_ref().map(from_row).transpose()
}

/// The operation that was undone last: the oldest of those that are.
pub(crate) async fn undone_last(tx: &mut Tx, ws: i64, target: TargetId) -> Result<Option<Event>, StoreError> {
    let sql =
        select!("WHERE ws = $1 AND target = $2 AND operation = event AND undone = 1 ORDER BY event LIMIT 1");
    tx.row(sql, args![ws, target.key()]).await?.as_ref().map(from_row).transpose()
}

/// Makes undone operations impossible to redo.
pub(crate) async fn discard_undone(tx: &mut Tx, ws: i64, target: TargetId) -> Result<(), StoreError> {
    let sql = "UPDATE events SET undone = 2 WHERE ws = $1 AND target = $2 AND undone = 1";
    tx.write(sql, args![ws, target.key()]).await
}

/// All events of one operation, oldest first. Nothing comes between them.
pub(crate) async fn of_operation(tx: &mut Tx, ws: i64, operation: i64) -> Result<Vec<Event>, StoreError> {
    let sql = select!("WHERE ws = $1 AND event >= $2 AND event < $2 + 16 AND operation = $2 ORDER BY event");
    let rows = tx.rows(sql, args![ws, operation]).await?;
    rows.iter().map(from_row).collect()
}

pub(crate) async fn set_undo_state(
    tx: &mut Tx,
    ws: i64,
    operation: i64,
    undo_state: UndoState,
) -> Result<(), StoreError> {
    let sql = "UPDATE events SET undone = $3 WHERE ws = $1 AND event = $2";
    tx.write(sql, args![ws, operation, undo_state.number()]).await
}
