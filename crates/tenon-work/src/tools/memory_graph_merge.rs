//! `memory_graph_merge`: three-way merge of the changes of a branch since its last merge into its base.
//!
//! For every key that the branch wrote, *theirs* is its version on the branch, *ours* its version on the base, and *base*
//! the version both had at the last merge, or when the branch started. How far a branch has been merged is recorded, so a
//! second merge has nothing to do.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::memory_graph_diff::content;
use crate::catalog::WorkTool;
use crate::error::{Priority, Proposal, WorkError, WorkErrorCode};
use crate::graph::compare;
use crate::graph::conflict::{self, Conflict};
use crate::graph::id::{GraphKey, GraphKind};
use crate::graph::version::{self, Version, VersionTarget};
use crate::memory::branch::View;
use crate::name::DocName;
use crate::store::{StoreError, args};
use crate::work_call::WorkCall;

/// How many keys are read at a time.
const CHUNK: i64 = 500;

/// How many conflict ids an answer contains; memory_graph_conflicts lists all.
const NAMED: usize = 200;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    from: String,
    into: String,
    doc: String,
    #[serde(default)]
    dry_run: bool,
}

struct Merge {
    from: View,
    into: View,
    doc: String,
    dry_run: bool,
    /// The branch has been merged up to this `seq`.
    merged_upto: i64,
    merged: u64,
    skipped: u64,
    created: u64,
    conflict_ids: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    from: String,
    into: String,
    doc: String,
    dry_run: bool,
    merged: u64,
    skipped: u64,
    conflicts_created: u64,
    conflict_ids: Vec<String>,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<Answer, WorkError> {
    let doc = DocName::parse(&args.doc)?;
    let from = call.view(Some(&args.from)).await?;
    let into = call.view(Some(&args.into)).await?;
    call.check_no_target()?;
    check_merges_into_base(&from, &into, doc.as_str())?;
    let ws = call.ws.id;
    let mut merge = Merge {
        merged_upto: merged_upto(call, from.branch(), doc.as_str()).await?,
        from,
        into,
        doc: doc.as_str().to_owned(),
        dry_run: args.dry_run,
        merged: 0,
        skipped: 0,
        created: 0,
        conflict_ids: Vec::new(),
    };
    let upto = call.ws.last_seq();
    let interval = (merge.merged_upto, upto);
    let (mut kind, mut id) = (GraphKind::Node, String::new());
    loop {
        let at = (kind, id.as_str(), false);
        let keys = compare::keys(call.tx, ws, merge.from.branch(), &merge.doc, interval, at, CHUNK).await?;
        for key in &keys {
            merge.key(call, key).await?;
        }
        match keys.last() {
            Some(last) => (kind, id) = (last.kind(), last.to_string()),
            None => break,
        }
    }
    if !args.dry_run && upto > merge.merged_upto {
        let sql = "INSERT INTO merges (ws, source, doc, seq) VALUES ($1, $2, $3, $4)
            ON CONFLICT (ws, source, doc) DO UPDATE SET seq = excluded.seq";
        call.tx.write(sql, args![ws, merge.from.branch(), merge.doc.as_str(), upto]).await?;
    }
    if merge.conflict_ids.len() > NAMED {
        merge.conflict_ids.truncate(NAMED);
        call.warn(format!("conflict_ids contains the first {NAMED}; memory_graph_conflicts lists all"));
    }
    if !args.dry_run
        && let Some(id) = merge.conflict_ids.first()
    {
        let params = json!({"conflict_id": id});
        call.propose(WorkTool::MemoryGraphConflictShow, params, "See the first conflict", Priority::High);
    }
    Ok(Answer {
        from: merge.from.name().to_owned(),
        into: merge.into.name().to_owned(),
        doc: merge.doc,
        dry_run: merge.dry_run,
        merged: merge.merged,
        skipped: merge.skipped,
        conflicts_created: merge.created,
        conflict_ids: merge.conflict_ids,
    })
}

fn check_merges_into_base(from: &View, into: &View, doc: &str) -> Result<(), WorkError> {
    let base = from.parts.get(1);
    if base.is_some_and(|base| base.branch == into.branch()) {
        return Ok(());
    }
    let message = format!("`{}` did not start from `{}`", from.name(), into.name());
    let failure = WorkError::new(WorkErrorCode::MergeNotSupported, message);
    Err(match base {
        None => failure.recovery("only a branch with a base can be merged, and only into its base"),
        Some(base) => failure.recovery("merge into the branch it started from").propose(Proposal::new(
            WorkTool::MemoryGraphMerge,
            json!({"from": from.name(), "into": base.name, "doc": doc}),
            "Merge into the branch it started from",
            Priority::Medium,
        )),
    })
}

async fn merged_upto(call: &mut WorkCall<'_>, source: i64, doc: &str) -> Result<i64, StoreError> {
    let sql = "SELECT seq FROM merges WHERE ws = $1 AND source = $2 AND doc = $3";
    let row = call.tx.row(sql, args![call.ws.id, source, doc]).await?;
    row.map_or(Ok(0), |row| row.int(0))
}

impl Merge {
    async fn key(&mut self, call: &mut WorkCall<'_>, key: &GraphKey) -> Result<(), WorkError> {
        let (ws, doc) = (call.ws.id, self.doc.clone());
        let source = self.from.branch();
        let theirs = version::latest_on(call.tx, ws, source, &doc, key, i64::MAX).await?;
        let ours = version::latest(call.tx, ws, &self.into, &doc, key).await?;
        let base = self.base(call, key).await?;
        let [base_says, theirs_say, ours_say] =
            [&base, &theirs, &ours].map(|version| content(version.as_ref()));
        if theirs_say == ours_say || theirs_say == base_says {
            self.skipped += 1;
        } else if ours_say == base_says {
            self.merged += 1;
            if !self.dry_run {
                let origin = theirs.as_ref().map(|version| version.seq);
                let onto =
                    VersionTarget { branch: self.into.branch(), doc: &doc, previous: ours.as_ref(), origin };
                version::write(call.tx, &mut call.ws, call.now, &onto, key, theirs_say).await?;
            }
        } else {
            self.conflict(call, key, [base.as_ref(), theirs.as_ref(), ours.as_ref()]).await?;
        }
        Ok(())
    }

    /// The common version of both sides.
    async fn base(&self, call: &mut WorkCall<'_>, key: &GraphKey) -> Result<Option<Version>, StoreError> {
        let (ws, source) = (call.ws.id, self.from.branch());
        let merged = version::latest_on(call.tx, ws, source, &self.doc, key, self.merged_upto).await?;
        if merged.is_some() {
            return Ok(merged);
        }
        let below = View { parts: self.from.parts[1..].to_vec() };
        version::latest(call.tx, ws, &below, &self.doc, key).await
    }

    async fn conflict(
        &mut self,
        call: &mut WorkCall<'_>,
        key: &GraphKey,
        versions: [Option<&Version>; 3],
    ) -> Result<(), WorkError> {
        let workspace = call.ws.name.as_str();
        let id = conflict::id_of(workspace, self.from.name(), self.into.name(), &self.doc, key, versions);
        if conflict::by_id(call.tx, call.ws.id, &id).await?.is_some() {
            self.skipped += 1;
            return Ok(());
        }
        self.created += 1;
        self.conflict_ids.push(id.clone());
        if !self.dry_run {
            let [base, theirs, ours] = versions.map(|version| version.map(|version| version.seq));
            let (source, branch, doc) = (self.from.branch(), self.into.branch(), self.doc.clone());
            let (seq, key) = (call.ws.next_seq(), key.clone());
            let kept = Conflict { seq, id, source, branch, doc, key, base, theirs, ours, resolution: None };
            conflict::insert(call.tx, call.ws.id, &kept, call.now).await?;
        }
        Ok(())
    }
}
