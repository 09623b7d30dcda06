//! Where a memory tool reads and writes: the documents of a plan or task, or a document on a branch.

use super::branch::{self, Part, View};
use super::{GRAPH, NOTES, TRACE};
use crate::catalog::WorkTool;
use crate::error::{Priority, Proposal, WorkError};
use crate::id::TargetId;
use crate::name::DocName;
use crate::plan::target::TargetRow;
use crate::work_call::{WorkCall, parse_target};

/// The default document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocKind {
    Notes,
    Trace,
    Graph,
}

impl DocKind {
    fn of(self, target: TargetId) -> String {
        match self {
            Self::Notes => NOTES.to_owned(),
            Self::Trace => target.trace_doc(),
            Self::Graph => target.graph_doc(),
        }
    }

    fn by_default(self) -> &'static str {
        match self {
            Self::Notes => NOTES,
            Self::Trace => TRACE,
            Self::Graph => GRAPH,
        }
    }
}

/// A scope as given by the client.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ScopeArgs<'a> {
    pub target: Option<&'a str>,
    pub branch: Option<&'a str>,
    pub doc: Option<&'a str>,
}

pub(crate) struct Scope {
    pub target: Option<TargetRow>,
    pub view: View,
    pub doc: String,
}

impl WorkCall<'_> {
    /// The scope of a read.
    pub(crate) async fn scope(&mut self, given: ScopeArgs<'_>, kind: DocKind) -> Result<Scope, WorkError> {
        if let Some(text) = given.target {
            if given.branch.is_some() || given.doc.is_some() {
                return Err(WorkError::invalid("target and branch or doc exclude each other")
                    .recovery("give `target`, or `branch` and `doc`"));
            }
            let target = self.load(parse_target(text)?).await?;
            let id = target.id;
            return Ok(Scope { target: Some(target), view: View::of_target(id), doc: kind.of(id) });
        }
        let view = self.view(given.branch).await?;
        let doc = match given.doc {
            Some(text) => DocName::parse(text)?.as_str().to_owned(),
            None => {
                self.warn(format!("using document `{}` on branch `{}`", kind.by_default(), view.name()));
                kind.by_default().to_owned()
            }
        };
        Ok(Scope { target: None, view, doc })
    }

    /// The scope of a write, after the checks that the caller asked for.
    pub(crate) async fn scope_for_write(
        &mut self,
        given: ScopeArgs<'_>,
        kind: DocKind,
    ) -> Result<Scope, WorkError> {
        let scope = self.scope(given, kind).await?;
        match &scope.target {
            Some(target) => self.check_guard(target)?,
            None => self.check_no_target()?,
        }
        Ok(scope)
    }

    /// Rejects expectations of a write without a plan or task.
    pub(crate) fn check_no_target(&self) -> Result<(), WorkError> {
        self.check_target(None)?;
        if self.request.guard.revision.is_some() {
            return Err(WorkError::invalid("expected_revision needs a plan or task")
                .recovery("give `target`, or omit expected_revision"));
        }
        Ok(())
    }

    /// The view from a branch, by default from the one that is checked out.
    pub(crate) async fn view(&mut self, name: Option<&str>) -> Result<View, WorkError> {
        let ws = self.ws.id;
        let found = match name {
            Some(name) => branch::named(self.tx, ws, name).await.map_err(|failure| {
                let params = serde_json::json!({"name": name});
                failure.propose(Proposal::new(
                    WorkTool::MemoryBranchCreate,
                    params,
                    "Start it",
                    Priority::Medium,
                ))
            })?,
            None if !self.ws.exists() => {
                let part = Part { branch: branch::MAIN_NUMBER, name: branch::MAIN.into(), upto: i64::MAX };
                return Ok(View { parts: vec![part] });
            }
            None => branch::checked_out(self.tx, ws, self.ws.checkout).await?,
        };
        Ok(branch::view(self.tx, ws, &found).await?)
    }
}
