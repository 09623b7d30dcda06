//! Entries of documents. They are appended and never changed.
//!
//! A note has its own text. An event entry refers to an event, whose payload is the content, so the log is stored once.
//! The reference is unique, so adding an event to a trace is idempotent.

use serde::Serialize;
use serde_json::{Value, json};
use tenon_contract::budget::cut_bytes;

use super::branch::{Part, View};
use super::search::{self, SearchKind};
use crate::cursor::SortKey;
use crate::error::WorkError;
use crate::id::{EventId, TargetId};
use crate::page::{Cut, Item, PageRequest};
use crate::path::StepPath;
use crate::plan::target::{parsed, stored, time};
use crate::store::{Row, StoreError, Tx, args};
use crate::workspace::Workspace;

/// A new note.
#[derive(Debug, Clone, Default)]
pub(crate) struct NewNote<'a> {
    pub branch: i64,
    pub doc: &'a str,
    pub title: Option<&'a str>,
    pub format: Option<&'a str>,
    pub meta: Option<Value>,
    pub content: &'a str,
    /// The entry it was copied from.
    pub origin: Option<i64>,
}

const INSERT: &str = "INSERT INTO entries
    (ws, seq, ts_ms, branch, doc, kind, title, format, meta, content, event, origin)
    VALUES ($1, $2, $3, $4, $5, 'note', $6, $7, $8, $9, NULL, $10)";

const INGEST: &str = "INSERT INTO entries
    (ws, seq, ts_ms, branch, doc, kind, title, format, meta, content, event, origin)
    VALUES ($1, $2, $3, $4, $5, 'event', NULL, NULL, NULL, NULL, $6, NULL) ON CONFLICT DO NOTHING";

/// The format of entries with a card, which is indexed as a graph node.
pub(crate) const CARD_FORMAT: &str = "card";

/// The format of notes that were forgotten: they stay in their document, but no search and no summary shows them.
pub(crate) const FORGOTTEN: &str = "forgotten";

/// The format of notes that record at which commit a task was closed.
pub(crate) const COMMIT: &str = "commit";

/// The format of notes with evidence.
pub(crate) const EVIDENCE: &str = "evidence";

fn searchable(title: Option<&str>, format: Option<&str>, content: &str) -> Option<String> {
    (!matches!(format, Some(CARD_FORMAT | FORGOTTEN)))
        .then(|| format!("{}\n{content}", title.unwrap_or_default()))
}

/// Appends a note and indexes it.
pub(crate) async fn append(
    tx: &mut Tx,
    ws: &mut Workspace,
    now: i64,
    note: &NewNote<'_>,
) -> Result<i64, StoreError> {
    let seq = ws.next_seq();
    let meta = note.meta.as_ref().map(stored);
    let args = args![
        ws.id,
        seq,
        now,
        note.branch,
        note.doc,
        note.title,
        note.format,
        meta,
        note.content,
        note.origin,
    ];
    tx.write(INSERT, args).await?;
    if let Some(text) = searchable(note.title, note.format, note.content) {
        search::insert(tx, ws.id, seq, SearchKind::Note, seq, &text).await?;
    }
    Ok(seq)
}

impl NewNote<'_> {
    /// The entry that [`append`] stored with this number and time.
    pub(crate) fn stored(&self, seq: i64, now: i64) -> Entry {
        Entry {
            seq,
            ts_ms: now,
            doc: self.doc.to_owned(),
            kind: "note".into(),
            title: self.title.map(str::to_owned),
            format: self.format.map(str::to_owned),
            meta: self.meta.clone(),
            content: self.content.to_owned(),
            branch: self.branch,
            origin: self.origin,
        }
    }
}

/// Adds an event to a trace document, once.
pub(crate) async fn ingest(
    tx: &mut Tx,
    ws: &mut Workspace,
    now: i64,
    branch: i64,
    doc: &str,
    event: i64,
) -> Result<i64, StoreError> {
    let seq = ws.next_seq();
    tx.write(INGEST, args![ws.id, seq, now, branch, doc, event]).await?;
    Ok(seq)
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub seq: i64,
    pub ts_ms: i64,
    pub doc: String,
    pub kind: String,
    pub title: Option<String>,
    pub format: Option<String>,
    pub meta: Option<Value>,
    pub content: String,
    pub branch: i64,
    /// The entry it was copied from.
    pub origin: Option<i64>,
}

/// An entry as clients see it.
#[derive(Debug, Serialize)]
pub(crate) struct EntryView<'a> {
    seq: i64,
    ts: String,
    ts_ms: i64,
    branch: &'a str,
    doc: &'a str,
    kind: &'a str,
    title: Option<&'a str>,
    format: Option<&'a str>,
    meta: Option<&'a Value>,
    content: &'a str,
    /// The size of the whole content; only if it is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_truncated: Option<bool>,
}

impl EntryView<'_> {
    /// Cuts the content to a number of bytes; true if it was longer.
    pub(crate) fn cut(&mut self, limit: usize) -> bool {
        let bytes = self.content.len();
        if bytes <= limit {
            return false;
        }
        self.content = cut_bytes(self.content, limit);
        self.content_bytes = Some(bytes);
        self.content_truncated = Some(true);
        true
    }
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT n.seq, n.ts_ms, n.doc, n.kind, n.title, n.format, n.meta, n.content, n.branch,
            e.event, e.target, e.place, e.type, e.payload, n.origin
            FROM entries n LEFT JOIN events e ON e.ws = n.ws AND e.event = n.event ",
            $rest
        )
    };
}

fn from_row(row: &Row) -> Result<Entry, StoreError> {
    let mut entry = Entry {
        seq: row.int(0)?,
        ts_ms: row.int(1)?,
        doc: row.text(2)?,
        kind: row.text(3)?,
        title: row.opt_text(4)?,
        format: row.opt_text(5)?,
        meta: row.opt_text(6)?.map(|text| parsed(&text)).transpose()?,
        content: row.opt_text(7)?.unwrap_or_default(),
        branch: row.int(8)?,
        origin: row.opt_int(14)?,
    };
    if let Some(event) = row.opt_int(9)? {
        let path = row.opt_text(11)?.and_then(|place| StepPath::from_sort_key(&place));
        entry.title = row.opt_text(12)?;
        entry.format = Some("json".into());
        entry.meta = Some(json!({
            "event_id": EventId(event.unsigned_abs()),
            "task": TargetId::from_key(row.int(10)?),
            "path": path,
        }));
        entry.content = row.text(13)?;
    }
    Ok(entry)
}

impl Entry {
    pub(crate) fn view<'a>(&'a self, branch: &'a str) -> EntryView<'a> {
        EntryView {
            seq: self.seq,
            ts: time(self.ts_ms),
            ts_ms: self.ts_ms,
            branch,
            doc: &self.doc,
            kind: &self.kind,
            title: self.title.as_deref(),
            format: self.format.as_deref(),
            meta: self.meta.as_ref(),
            content: &self.content,
            content_bytes: None,
            content_truncated: None,
        }
    }

    /// The text that a search looks through; none for cards and events.
    pub(crate) fn searchable(&self) -> Option<String> {
        (self.kind == "note")
            .then(|| searchable(self.title.as_deref(), self.format.as_deref(), &self.content))?
    }

    pub(crate) fn to_item(&self, list: &'static str, branch: &str) -> Item {
        Item::new(list, SortKey::ints(&[self.seq]), self.view(branch), Cut::Content)
    }
}

pub(crate) async fn by_seq(tx: &mut Tx, ws: i64, seq: i64) -> Result<Option<Entry>, StoreError> {
    tx.row(select!("WHERE n.ws = $1 AND n.seq = $2"), args![ws, seq])
        .await?
        .as_ref()
        .map(from_row)
        .transpose()
}

/// The entries with these numbers, oldest first.
pub(crate) async fn by_seqs(tx: &mut Tx, ws: i64, seqs: &[i64]) -> Result<Vec<Entry>, StoreError> {
    let rows = tx.rows_of(select!("WHERE n.ws = $1 AND n.seq "), ws, seqs, "n.seq").await?;
    rows.iter().map(from_row).collect()
}

/// Notes of a workspace after a `seq`, oldest first.
pub(crate) async fn notes_behind(
    tx: &mut Tx,
    ws: i64,
    seq: i64,
    most: i64,
) -> Result<Vec<Entry>, StoreError> {
    let sql = select!("WHERE n.ws = $1 AND n.seq > $2 AND n.kind = 'note' ORDER BY n.seq LIMIT $3");
    let rows = tx.rows(sql, args![ws, seq, most]).await?;
    rows.iter().map(from_row).collect()
}

/// Entries of a document with `above < seq <= upto` on one branch, newest first.
async fn on_branch(
    tx: &mut Tx,
    ws: i64,
    branch: i64,
    doc: &str,
    above: i64,
    upto: i64,
    most: i64,
) -> Result<Vec<Entry>, StoreError> {
    let sql = select!(
        "WHERE n.ws = $1 AND n.branch = $2 AND n.doc = $3 AND n.seq > $4 AND n.seq <= $5
        ORDER BY n.seq DESC LIMIT $6"
    );
    let rows = tx.rows(sql, args![ws, branch, doc, above, upto, most]).await?;
    rows.iter().map(from_row).collect()
}

/// Notes that one view shows and another does not, starting at a `seq`, oldest first.
pub(crate) async fn notes_to_merge(
    tx: &mut Tx,
    ws: i64,
    view: &View,
    without: &View,
    doc: &str,
    first: i64,
    most: usize,
) -> Result<Vec<Entry>, StoreError> {
    let sql = select!(
        "WHERE n.ws = $1 AND n.branch = $2 AND n.doc = $3 AND n.seq > $4 AND n.seq <= $5 AND n.kind = 'note'
        ORDER BY n.seq LIMIT $6"
    );
    let mut found = Vec::new();
    for part in view.parts.iter().rev() {
        let above = without.upto(part.branch).max(first - 1);
        let left = i64::try_from(most - found.len()).unwrap_or(i64::MAX);
        if above < part.upto && left > 0 {
            let rows = tx.rows(sql, args![ws, part.branch, doc, above, part.upto, left]).await?;
            for row in &rows {
                found.push(from_row(row)?);
            }
        }
    }
    Ok(found)
}

/// Whether a view shows an entry or a copy of it.
pub(crate) async fn is_in_view(tx: &mut Tx, ws: i64, view: &View, entry: &Entry) -> Result<bool, StoreError> {
    let origin = entry.origin.unwrap_or(entry.seq);
    if let Some(original) = by_seq(tx, ws, origin).await?
        && original.doc == entry.doc
        && original.seq <= view.upto(original.branch)
    {
        return Ok(true);
    }
    let sql = "SELECT seq FROM entries WHERE ws = $1 AND branch = $2 AND doc = $3 AND origin = $4";
    for part in &view.parts {
        let copy = tx.row(sql, args![ws, part.branch, entry.doc.as_str(), origin]).await?;
        if copy.map(|row| row.int(0)).transpose()?.is_some_and(|seq| seq <= part.upto) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Hides a note from searches and summaries.
pub(crate) async fn forget(tx: &mut Tx, ws: i64, seq: i64) -> Result<(), StoreError> {
    let sql = "UPDATE entries SET format = $3 WHERE ws = $1 AND seq = $2 AND kind = 'note'";
    tx.write(sql, args![ws, seq, FORGOTTEN]).await?;
    search::remove(tx, ws, seq).await
}

/// The newest entry of a workspace.
pub(crate) async fn newest(tx: &mut Tx, ws: i64) -> Result<Option<Entry>, StoreError> {
    let sql = select!("WHERE n.ws = $1 ORDER BY n.seq DESC LIMIT 1");
    tx.row(sql, args![ws]).await?.as_ref().map(from_row).transpose()
}

/// What a view shows of a document, newest first: at most `most` entries at or below `below`.
///
/// With `without`, only what that other view does not show.
pub(crate) async fn in_view<'v>(
    tx: &mut Tx,
    ws: i64,
    view: &'v View,
    without: Option<&View>,
    doc: &str,
    below: Option<i64>,
    most: usize,
) -> Result<Vec<(Entry, &'v Part)>, StoreError> {
    let mut found = Vec::new();
    for part in &view.parts {
        let above = without.map_or(0, |other| other.upto(part.branch));
        let upto = part.upto.min(below.unwrap_or(i64::MAX));
        let left = i64::try_from(most - found.len()).unwrap_or(i64::MAX);
        if above < upto && left > 0 {
            let entries = on_branch(tx, ws, part.branch, doc, above, upto, left).await?;
            found.extend(entries.into_iter().map(|entry| (entry, part)));
        }
    }
    Ok(found)
}

/// One page of entries, newest first, and whether there are more.
pub(crate) async fn page(
    tx: &mut Tx,
    ws: i64,
    view: &View,
    without: Option<&View>,
    doc: &str,
    list: &'static str,
    request: &PageRequest,
) -> Result<(Vec<Item>, bool), WorkError> {
    let below = request.first_below()?;
    let mut entries = in_view(tx, ws, view, without, doc, below, request.limit + 1).await?;
    let more = entries.len() > request.limit;
    entries.truncate(request.limit);
    Ok((entries.iter().map(|(entry, part)| entry.to_item(list, &part.name)).collect(), more))
}
