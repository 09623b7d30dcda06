//! Versions of nodes and edges: how they are stored, and which of them a view shows.
//!
//! A version links to the next one of the same key on the same branch (`next`), so the latest version is found by an
//! index, and a page of a large graph costs only the page. A view shows a version of a base if it was the latest when
//! the branch started and no branch above has a version of the same key.

use serde::Serialize;
use serde_json::Value;
use tenon_contract::json::canonical_value;

use super::id::{GraphKey, GraphKind, GraphType};
use super::visibility::{doc_postgres, doc_sqlite};
use crate::memory::branch::{Part, View};
use crate::memory::card;
use crate::memory::search::{self, SearchKind};
use crate::name::Tag;
use crate::plan::target::{parsed, stored, time};
use crate::store::{Arg, Row, Sql, StoreError, Tx, args};
use crate::workspace::Workspace;

/// The content of a version, without its origin.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    Deleted,
    Node {
        kind: GraphType,
        title: Option<String>,
        text: Option<String>,
        status: Option<String>,
        tags: Vec<Tag>,
        meta: Option<Value>,
    },
    Edge {
        meta: Option<Value>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Version {
    pub seq: i64,
    pub branch: i64,
    pub doc: String,
    pub key: GraphKey,
    pub next: Option<i64>,
    /// Versions of the key in the view it was written in, less one.
    pub revision: i64,
    pub content: Content,
    pub ts_ms: i64,
}

/// A node or an edge as clients see it. A field that does not apply is left out; a field without a value is null.
#[derive(Debug, Default, Serialize)]
pub(crate) struct VersionView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rel: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<&'a [Tag]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<Option<&'a Value>>,
    revision: i64,
    seq: i64,
    ts: String,
    deleted: bool,
}

/// What [`from_row`] reads.
macro_rules! columns {
    () => {
        "v.seq, v.branch, v.doc, v.kind, v.id, v.next, v.revision, v.deleted, v.type, v.title, v.body, v.status,
        v.tags, v.meta, v.ts_ms"
    };
}
pub(super) use columns;

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT ", columns!(), " FROM graph v ", $rest)
    };
}

pub(super) fn from_row(row: &Row) -> Result<Version, StoreError> {
    let kind = GraphKind::from_number(row.int(3)?);
    let id = row.text(4)?;
    let damaged = || StoreError::Damaged(format!("`{id}` is not a graph key"));
    let meta = row.opt_text(13)?.map(|text| parsed(&text)).transpose()?;
    let content = match (row.flag(7)?, kind) {
        (true, _) => Content::Deleted,
        (false, GraphKind::Edge) => Content::Edge { meta },
        (false, GraphKind::Node) => Content::Node {
            kind: GraphType::parse(&row.text(8)?).map_err(|_| damaged())?,
            title: row.opt_text(9)?,
            text: row.opt_text(10)?,
            status: row.opt_text(11)?,
            tags: parsed(&row.text(12)?)?,
            meta,
        },
    };
    Ok(Version {
        seq: row.int(0)?,
        branch: row.int(1)?,
        doc: row.text(2)?,
        key: GraphKey::from_stored(kind, &id).ok_or_else(damaged)?,
        next: row.opt_int(5)?,
        revision: row.int(6)?,
        content,
        ts_ms: row.int(14)?,
    })
}

impl Version {
    pub(crate) fn is_deleted(&self) -> bool {
        self.content == Content::Deleted
    }

    pub(crate) fn view(&self) -> VersionView<'_> {
        let mut view = VersionView {
            revision: self.revision,
            seq: self.seq,
            ts: time(self.ts_ms),
            deleted: self.is_deleted(),
            ..VersionView::default()
        };
        match &self.key {
            GraphKey::Node(id) => view.id = Some(id.as_str()),
            GraphKey::Edge { from, rel, to } => {
                view.key = Some(self.key.to_string());
                (view.from, view.rel, view.to) = (Some(from.as_str()), Some(rel.as_str()), Some(to.as_str()));
            }
        }
        match &self.content {
            Content::Deleted => {}
            Content::Edge { meta } => view.meta = Some(meta.as_ref()),
            Content::Node { kind, title, text, status, tags, meta } => {
                view.r#type = Some(kind.as_str());
                view.title = Some(title.as_deref());
                view.text = Some(text.as_deref());
                view.status = Some(status.as_deref());
                view.tags = Some(tags);
                view.meta = Some(meta.as_ref());
            }
        }
        view
    }

    /// The text that a search looks through.
    pub(crate) fn searchable(&self) -> Option<(SearchKind, String)> {
        let (GraphKey::Node(id), Content::Node { kind, title, text, tags, .. }) = (&self.key, &self.content)
        else {
            return None;
        };
        let found_as = if card::is_type(kind.as_str()) { SearchKind::Card } else { SearchKind::Node };
        let mut parts =
            vec![id.as_str(), title.as_deref().unwrap_or_default(), text.as_deref().unwrap_or_default()];
        parts.extend(tags.iter().map(Tag::as_str));
        Some((found_as, parts.join("\n")))
    }
}

/// Adds a version to the index. Superseded versions stay in it, since views of branches may show them.
pub(crate) async fn index(tx: &mut Tx, ws: i64, version: &Version) -> Result<(), StoreError> {
    match version.searchable() {
        Some((kind, text)) => search::insert(tx, ws, version.seq, kind, version.seq, &text).await,
        None => Ok(()),
    }
}

const INSERT: &str = "INSERT INTO graph
    (ws, seq, branch, doc, kind, id, next, revision, deleted, type, title, body, status, tags, meta, start, goal,
    ts_ms, origin)
    VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)";

/// Where a new version goes, and which version it follows.
pub(crate) struct VersionTarget<'a> {
    pub branch: i64,
    pub doc: &'a str,
    /// The latest version of the key in the view, if it has one.
    pub previous: Option<&'a Version>,
    /// The version it was copied from.
    pub origin: Option<i64>,
}

/// Writes a version of a key.
pub(crate) async fn write(
    tx: &mut Tx,
    ws: &mut Workspace,
    now: i64,
    onto: &VersionTarget<'_>,
    key: &GraphKey,
    content: &Content,
) -> Result<Version, StoreError> {
    let version = Version {
        seq: ws.next_seq(),
        branch: onto.branch,
        doc: onto.doc.to_owned(),
        key: key.clone(),
        next: None,
        revision: onto.previous.map_or(0, |previous| previous.revision + 1),
        content: content.clone(),
        ts_ms: now,
    };
    if let Some(previous) = onto.previous.filter(|previous| previous.branch == onto.branch) {
        let sql = "UPDATE graph SET next = $3 WHERE ws = $1 AND seq = $2";
        tx.write(sql, args![ws.id, previous.seq, version.seq]).await?;
    }
    let (start, goal) = match key {
        GraphKey::Edge { from, to, .. } => (Some(from.as_str()), Some(to.as_str())),
        GraphKey::Node(_) => (None, None),
    };
    let mut cells: [Arg<'_>; 6] = [const { Arg::Text(None) }; 6];
    match content {
        Content::Deleted => {}
        Content::Edge { meta } => cells[5] = meta.as_ref().map(canonical_value).into(),
        Content::Node { kind, title, text, status, tags, meta } => {
            cells = [
                kind.as_str().into(),
                title.as_deref().into(),
                text.as_deref().into(),
                status.as_deref().into(),
                stored(tags).into(),
                meta.as_ref().map(canonical_value).into(),
            ];
        }
    }
    let [kind, title, text, status, tags, meta] = cells;
    let values: [Arg<'_>; 18] = [
        ws.id.into(),
        version.seq.into(),
        onto.branch.into(),
        onto.doc.into(),
        key.kind().number().into(),
        key.to_string().into(),
        version.revision.into(),
        version.is_deleted().into(),
        kind,
        title,
        text,
        status,
        tags,
        meta,
        start.into(),
        goal.into(),
        now.into(),
        onto.origin.into(),
    ];
    tx.write(INSERT, &values).await?;
    index(tx, ws.id, &version).await?;
    Ok(version)
}

/// The versions with these numbers, oldest first.
pub(crate) async fn by_seqs(tx: &mut Tx, ws: i64, seqs: &[i64]) -> Result<Vec<Version>, StoreError> {
    let rows = tx.rows_of(select!("WHERE v.ws = $1 AND v.seq "), ws, seqs, "v.seq").await?;
    rows.iter().map(from_row).collect()
}

pub(crate) async fn by_seq(tx: &mut Tx, ws: i64, seq: i64) -> Result<Option<Version>, StoreError> {
    tx.row(select!("WHERE ws = $1 AND seq = $2"), args![ws, seq]).await?.as_ref().map(from_row).transpose()
}

/// Versions of nodes of a workspace after a `seq`, oldest first.
pub(crate) async fn nodes_behind(
    tx: &mut Tx,
    ws: i64,
    seq: i64,
    most: i64,
) -> Result<Vec<Version>, StoreError> {
    let sql = select!("WHERE ws = $1 AND seq > $2 AND kind = 0 ORDER BY seq LIMIT $3");
    let rows = tx.rows(sql, args![ws, seq, most]).await?;
    rows.iter().map(from_row).collect()
}

/// PostgreSQL may consider several indices equally good; only the one over keys has this order.
macro_rules! latest_on {
    ($doc:ident) => {
        concat!(
            select!("WHERE v.ws = $1 AND v.branch = $2 AND "),
            $doc!("v", "$3"),
            " AND v.kind = $4 AND v.id >= $5 AND v.id <= $5 AND v.seq <= $6 ORDER BY v.id DESC, v.seq DESC LIMIT 1"
        )
    };
}

pub(super) const LATEST_ON: Sql = Sql { sqlite: latest_on!(doc_sqlite), postgres: latest_on!(doc_postgres) };

/// The latest version of a key on one branch, not newer than `upto`.
pub(crate) async fn latest_on(
    tx: &mut Tx,
    ws: i64,
    branch: i64,
    doc: &str,
    key: &GraphKey,
    upto: i64,
) -> Result<Option<Version>, StoreError> {
    let args = args![ws, branch, doc, key.kind().number(), key.to_string(), upto];
    tx.row(LATEST_ON, args).await?.as_ref().map(from_row).transpose()
}

/// The version of a key that a view shows, tombstones included.
pub(crate) async fn latest(
    tx: &mut Tx,
    ws: i64,
    view: &View,
    doc: &str,
    key: &GraphKey,
) -> Result<Option<Version>, StoreError> {
    for part in &view.parts {
        if let Some(version) = latest_on(tx, ws, part.branch, doc, key, part.upto).await? {
            return Ok(Some(version));
        }
    }
    Ok(None)
}

/// Whether a part above has a version of the key, which hides those below.
pub(crate) async fn is_hidden(
    tx: &mut Tx,
    ws: i64,
    above: &[Part],
    doc: &str,
    key: &GraphKey,
) -> Result<bool, StoreError> {
    for part in above {
        if latest_on(tx, ws, part.branch, doc, key, part.upto).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Which versions of a part are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VersionFilter<'a> {
    pub kind: GraphKind,
    pub deleted: bool,
    /// Only nodes of this type.
    pub of_type: Option<&'a str>,
}

/// Versions of one part that were the latest of their key there, at or below a `seq`, newest first.
pub(crate) async fn of_part(
    tx: &mut Tx,
    ws: i64,
    part: &Part,
    doc: &str,
    wanted: VersionFilter<'_>,
    below: i64,
    most: i64,
) -> Result<Vec<Version>, StoreError> {
    let (kind, below) = (wanted.kind.number(), below.min(part.upto));
    let rows = match (part.upto == i64::MAX && !wanted.deleted, wanted.of_type) {
        // The two indices over live versions of the branch itself.
        (true, Some(of_type)) => {
            let sql = select!(
                "WHERE ws = $1 AND branch = $2 AND doc = $3 AND type = $4 AND next IS NULL AND deleted = 0
                AND kind = 0 AND seq <= $5 ORDER BY seq DESC LIMIT $6"
            );
            tx.rows(sql, args![ws, part.branch, doc, of_type, below, most]).await?
        }
        (true, None) => {
            let sql = select!(
                "WHERE ws = $1 AND branch = $2 AND doc = $3 AND kind = $4 AND next IS NULL AND deleted = 0
                AND seq <= $5 ORDER BY seq DESC LIMIT $6"
            );
            tx.rows(sql, args![ws, part.branch, doc, kind, below, most]).await?
        }
        (false, of_type) => {
            let sql = select!(
                "WHERE ws = $1 AND branch = $2 AND doc = $3 AND kind = $4 AND (next IS NULL OR next > $5)
                AND (deleted = 0 OR $8 = 1) AND ($9 = '' OR type = $9) AND seq <= $6
                ORDER BY seq DESC LIMIT $7"
            );
            let of_type = of_type.unwrap_or_default();
            tx.rows(sql, args![ws, part.branch, doc, kind, part.upto, below, most, wanted.deleted, of_type])
                .await?
        }
    };
    rows.iter().map(from_row).collect()
}
