//! Conflicts: keys that a branch and its base changed differently, stored until they are resolved.

use serde::Serialize;
use tenon_contract::id::sha256_hex_joined;

use super::id::{GraphKey, GraphKind};
use super::version::Version;
use crate::error::WorkError;
use crate::name::quoted;
use crate::store::{Row, StoreError, Tx, args};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub seq: i64,
    pub id: String,
    /// Branch numbers.
    pub source: i64,
    pub branch: i64,
    pub doc: String,
    pub key: GraphKey,
    pub base: Option<i64>,
    pub theirs: Option<i64>,
    pub ours: Option<i64>,
    pub resolution: Option<String>,
}

/// The same merge of the same versions always has the same conflict id.
pub(crate) fn id_of(
    workspace: &str,
    from: &str,
    into: &str,
    doc: &str,
    key: &GraphKey,
    versions: [Option<&Version>; 3],
) -> String {
    let seqs = versions.map(|version| version.map(|version| version.seq.to_string()).unwrap_or_default());
    let hash = sha256_hex_joined(&[
        &workspace,
        &from,
        &into,
        &doc,
        &key.kind().as_str(),
        key,
        &seqs[0],
        &seqs[1],
        &seqs[2],
    ]);
    format!("CONFLICT-{}", &hash[..32])
}

/// Checks the pattern of an id given by a client.
pub(crate) fn parse_id(text: &str) -> Result<&str, WorkError> {
    let digits = text.strip_prefix("CONFLICT-").unwrap_or_default();
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() == 32 && digits.bytes().all(is_hex) {
        return Ok(text);
    }
    Err(WorkError::invalid(format!("{} is not a conflict id", quoted(text)))
        .recovery("give `CONFLICT-` and 32 hex digits"))
}

impl Conflict {
    pub(crate) fn is_open(&self) -> bool {
        self.resolution.is_none()
    }

    pub(crate) fn revision(&self) -> i64 {
        i64::from(!self.is_open())
    }

    /// The conflict as lists show it; the caller knows the names of the branches.
    pub(crate) fn view(&self, from: &str, into: &str) -> ConflictView {
        ConflictView {
            conflict_id: self.id.clone(),
            kind: self.key.kind(),
            key: Some(self.key.to_string()),
            from: from.to_owned(),
            into: into.to_owned(),
            doc: self.doc.clone(),
            status: if self.is_open() { "open" } else { "resolved" },
            resolution: self.resolution.clone(),
            revision: self.revision(),
        }
    }
}

/// A conflict as clients see it.
#[derive(Debug, Serialize)]
pub(crate) struct ConflictView {
    conflict_id: String,
    kind: GraphKind,
    /// Left out where it is delivered as an item of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    from: String,
    into: String,
    doc: String,
    status: &'static str,
    resolution: Option<String>,
    revision: i64,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT seq, conflict, source, branch, doc, kind, id, base_seq, theirs_seq, ours_seq, resolution
            FROM conflicts ",
            $rest
        )
    };
}

fn from_row(row: &Row) -> Result<Conflict, StoreError> {
    let (kind, id) = (GraphKind::from_number(row.int(5)?), row.text(6)?);
    let key = GraphKey::from_stored(kind, &id);
    Ok(Conflict {
        seq: row.int(0)?,
        id: row.text(1)?,
        source: row.int(2)?,
        branch: row.int(3)?,
        doc: row.text(4)?,
        key: key.ok_or_else(|| StoreError::Damaged(format!("`{id}` is not a graph key")))?,
        base: row.opt_int(7)?,
        theirs: row.opt_int(8)?,
        ours: row.opt_int(9)?,
        resolution: row.opt_text(10)?,
    })
}

/// Stores a conflict; false if it was known.
pub(crate) async fn insert(tx: &mut Tx, ws: i64, conflict: &Conflict, now: i64) -> Result<bool, StoreError> {
    let sql = "INSERT INTO conflicts (ws, seq, conflict, source, branch, doc, kind, id, base_seq, theirs_seq,
        ours_seq, status, resolution, created_ms, resolved_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'open', NULL, $12, NULL)
        ON CONFLICT (ws, conflict) DO NOTHING";
    let args = args![
        ws,
        conflict.seq,
        conflict.id.as_str(),
        conflict.source,
        conflict.branch,
        conflict.doc.as_str(),
        conflict.key.kind().number(),
        conflict.key.to_string(),
        conflict.base,
        conflict.theirs,
        conflict.ours,
        now,
    ];
    Ok(tx.execute(sql, args).await? == 1)
}

pub(crate) async fn by_id(tx: &mut Tx, ws: i64, id: &str) -> Result<Option<Conflict>, StoreError> {
    let sql = select!("WHERE ws = $1 AND conflict = $2");
    tx.row(sql, args![ws, id]).await?.as_ref().map(from_row).transpose()
}

/// Conflicts of a branch and document, oldest first, starting at a `seq`.
pub(crate) async fn list(
    tx: &mut Tx,
    ws: i64,
    branch: i64,
    doc: &str,
    status: &str,
    first: i64,
    most: i64,
) -> Result<Vec<Conflict>, StoreError> {
    let sql = select!(
        "WHERE ws = $1 AND branch = $2 AND doc = $3 AND status = $4 AND seq >= $5 ORDER BY seq LIMIT $6"
    );
    let rows = tx.rows(sql, args![ws, branch, doc, status, first, most]).await?;
    rows.iter().map(from_row).collect()
}

pub(crate) async fn resolve(
    tx: &mut Tx,
    ws: i64,
    id: &str,
    resolution: &str,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE conflicts SET status = 'resolved', resolution = $3, resolved_ms = $4
        WHERE ws = $1 AND conflict = $2";
    tx.write(sql, args![ws, id, resolution, now]).await
}
