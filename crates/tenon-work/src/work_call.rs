//! A running call: the transaction, the locked workspace, and the checks that tools share.
//!
//! Order of checks: arguments (when the request is parsed), workspace, target, strict targeting, revision, gates.

use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::catalog::WorkTool;
use crate::cursor::{Cursor, CursorKey};
use crate::error::{Priority, Proposal, WorkError, WorkErrorCode};
use crate::id::{StepId, TargetId, TargetKind};
use crate::page::{Page, PageRequest};
use crate::path::StepPath;
use crate::plan::step::{self, StepRow};
use crate::plan::target::{self, TargetRow};
use crate::request::{self, WorkRequest};
use crate::store::Tx;
use crate::workspace::Workspace;

/// Why a call that needs a plan or task has none.
const NO_FOCUS: &str = "no task given, and no focus is set";

/// What a tool answers with.
pub(crate) enum WorkReply {
    /// The result of a write.
    Done(Map<String, Value>),
    /// A page of a read, and the request that it must fit.
    Page(Box<(Page, PageRequest)>),
}

impl WorkReply {
    pub(crate) fn done(answer: impl Serialize) -> Self {
        Self::Done(crate::page::object(answer))
    }

    /// Whether this is a page of a list without items.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Page(page) if page.0.items.is_empty())
    }

    pub(crate) fn page(page: Page, request: PageRequest) -> Self {
        Self::Page(Box::new((page, request)))
    }
}

pub(crate) struct WorkCall<'a> {
    pub tx: &'a mut Tx,
    pub ws: Workspace,
    pub request: WorkRequest,
    /// Milliseconds since 1970; the same time for everything the call does.
    pub now: i64,
    pub warnings: Vec<String>,
    /// Calls that make sense next. Unlike those of a failure they get no dry run: tools propose only what the state
    /// they have just read allows.
    pub proposals: Vec<Proposal>,
}

impl WorkCall<'_> {
    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }

    /// A number brought into its range, with a warning if it was outside.
    pub(crate) fn clamped(&mut self, name: &str, asked: i64, range: RangeInclusive<i64>) -> i64 {
        request::clamped(name, asked, range, &mut self.warnings)
    }

    /// For a read that gets neither a task nor a focus and is therefore empty.
    pub(crate) fn warn_of_missing_focus(&mut self) {
        self.warn(NO_FOCUS);
        self.propose(WorkTool::TasksContext, json!({}), "List plans and tasks", Priority::High);
    }

    pub(crate) fn propose(&mut self, tool: WorkTool, params: Value, reason: &str, priority: Priority) {
        self.proposals.push(Proposal::new(tool, params, reason, priority));
    }

    /// The page of a list that the client asks for. `bound_to` names the state that all pages must share, if any.
    pub(crate) fn paging(&self, bound_to: &str) -> Result<PageRequest, WorkError> {
        let request = &self.request;
        let listed = request.own_json();
        let key = CursorKey::new(request.tool.name(), request.workspace.as_str(), &listed, bound_to);
        let given = request.paging.cursor.clone();
        let start = given.as_deref().map(|text| Cursor::decode(text, &key)).transpose()?;
        Ok(PageRequest {
            limit: request.paging.limit,
            max_chars: request.paging.max_chars,
            given,
            start,
            key,
        })
    }

    /// The id that a call gives, or the focus.
    pub(crate) fn target_id(&self, given: Option<&str>) -> Result<Option<TargetId>, WorkError> {
        match given {
            Some(text) => parse_target(text).map(Some),
            None => Ok(self.ws.focus),
        }
    }

    /// The plan or task with this id.
    pub(crate) async fn load(&mut self, id: TargetId) -> Result<TargetRow, WorkError> {
        let row = match self.ws.read_ahead().and_then(|read| read.target(id)) {
            None => target::load(self.tx, self.ws.id, id).await?,
            row => row,
        };
        match row {
            Some(row) if !row.fields.deleted => Ok(row),
            _ => Err(unknown_target(&id.to_string())),
        }
    }

    /// The target of a write, after the checks that the caller asked for.
    pub(crate) async fn target(&mut self, given: Option<&str>) -> Result<TargetRow, WorkError> {
        let id = self.require_target_id(given)?;
        let row = self.load(id).await?;
        self.check_guard(&row)?;
        Ok(row)
    }

    pub(crate) fn require_target_id(&self, given: Option<&str>) -> Result<TargetId, WorkError> {
        self.target_id(given)?.ok_or_else(|| {
            WorkError::invalid(NO_FOCUS)
                .recovery("give `task`, or set the focus with tasks_focus_set")
                .propose(Proposal::new(
                    WorkTool::TasksContext,
                    json!({}),
                    "List plans and tasks",
                    Priority::High,
                ))
        })
    }

    /// Strict targeting, then the revision.
    pub(crate) fn check_guard(&self, row: &TargetRow) -> Result<(), WorkError> {
        self.check_target(Some(row.id))?;
        let actual = target::signed(row.fields.revision);
        match self.request.guard.revision {
            Some(expected) if expected != actual => {
                let again = self.request.repeated_with(json!({"expected_revision": actual}));
                Err(self
                    .revision_mismatch(&row.id.to_string(), expected, actual)
                    .current(row.brief())
                    .propose(Proposal::new(
                        WorkTool::TasksContext,
                        json!({"ids": [row.id]}),
                        "See what changed before writing again",
                        Priority::High,
                    ))
                    .propose(Proposal::new(self.request.tool, again, "Overwrite the changes", Priority::Low)))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn revision_mismatch(&self, what: &str, expected: i64, actual: i64) -> WorkError {
        WorkError::new(
            WorkErrorCode::RevisionMismatch,
            format!("{what} has revision {actual}, not {expected}"),
        )
        .recovery("read it again, then repeat the call with the actual revision")
        .with("expected", expected)
        .with("actual", actual)
    }

    /// Checks strict targeting. `resolved` is the target of the call; none if it has no plan or task.
    pub(crate) fn check_target(&self, resolved: Option<TargetId>) -> Result<(), WorkError> {
        let guard = &self.request.guard;
        let actual = resolved.map(|id| id.to_string());
        let again = |params: Value| {
            let reason = "Repeat the call with its actual target";
            Proposal::new(self.request.tool, self.request.repeated_with(params), reason, Priority::Low)
        };
        match (&guard.target, &actual) {
            (None, _) if guard.strict => {
                let failure = WorkError::new(
                    WorkErrorCode::StrictTargeting,
                    "strict_targeting needs expected_target_id",
                )
                .recovery("give expected_target_id");
                Err(match &actual {
                    Some(actual) => failure.propose(again(json!({"expected_target_id": actual}))),
                    None => failure,
                })
            }
            (Some(expected), actual) if Some(expected) != actual.as_ref() => {
                let named = actual.as_deref().unwrap_or("no plan or task");
                let expected_shown = crate::name::quoted(expected);
                let failure = WorkError::new(
                    WorkErrorCode::ExpectedTargetMismatch,
                    format!("the target is {named}, not {expected_shown}"),
                )
                .recovery("check `task` and the focus")
                .with("expected", expected.chars().take(60).collect::<String>())
                .with("actual", json!(actual));
                Err(match actual {
                    Some(actual) => failure
                        .propose(Proposal::new(
                            WorkTool::TasksContext,
                            json!({"ids": [actual]}),
                            "See the actual target",
                            Priority::High,
                        ))
                        .propose(again(json!({"expected_target_id": actual}))),
                    None => failure,
                })
            }
            _ => Ok(()),
        }
    }

    /// Clears the focus if it is on one of these targets.
    pub(crate) fn clear_focus_on(&mut self, mut deleted: impl Iterator<Item = TargetId>) {
        if let Some(focus) = self.ws.focus
            && deleted.any(|id| id == focus)
        {
            self.ws.set_focus(None);
            self.warn("the focus was cleared");
        }
    }

    /// The step that a call gives, if any.
    pub(crate) async fn find_step(
        &mut self,
        target: TargetId,
        step_id: Option<&str>,
        path: Option<&str>,
    ) -> Result<Option<StepRow>, WorkError> {
        let by_id = match step_id {
            None => None,
            Some(text) => {
                let pattern = "STEP- and eight hex digits";
                let id: StepId =
                    text.parse().map_err(|fault| WorkError::bad_id("step id", pattern, text, fault))?;
                let row = match self.ws.read_ahead().and_then(|read| read.step_by_id(id)) {
                    None => step::by_id(self.tx, self.ws.id, id).await?,
                    row => row,
                };
                Some(row.filter(|row| is_live(row, target)).ok_or_else(|| unknown_step(target, text))?)
            }
        };
        let by_path = match path {
            None => None,
            Some(text) => {
                let path = parse_path(text)?;
                let row = match self.ws.read_ahead().and_then(|read| read.step_by_path(target, &path)) {
                    None => step::by_path(self.tx, self.ws.id, target, &path).await?,
                    row => row,
                };
                Some(row.filter(|row| is_live(row, target)).ok_or_else(|| unknown_step(target, text))?)
            }
        };
        match (by_id, by_path) {
            (Some(by_id), Some(by_path)) if by_id.id != by_path.id => {
                Err(WorkError::invalid("step_id and path name two different steps")
                    .recovery("give one of them"))
            }
            (by_id, by_path) => Ok(by_id.or(by_path)),
        }
    }

    /// The step that a call must give.
    pub(crate) async fn step(
        &mut self,
        target: TargetId,
        step_id: Option<&str>,
        path: Option<&str>,
    ) -> Result<StepRow, WorkError> {
        match self.find_step(target, step_id, path).await? {
            Some(step) => Ok(step),
            None => {
                let failure = WorkError::invalid("no step given").recovery("give `step_id` or `path`");
                Err(failure.propose(look_at(target)))
            }
        }
    }
}

fn is_live(row: &StepRow, target: TargetId) -> bool {
    row.target == target && !row.fields.deleted
}

pub(crate) fn parse_target(text: &str) -> Result<TargetId, WorkError> {
    text.parse().map_err(|fault| {
        let failure = WorkError::bad_id("plan or task", "an id like PLAN-001 or TASK-001", text, fault);
        if failure.code() == WorkErrorCode::UnknownId { unknown_target(text) } else { failure }
    })
}

/// The id of a plan, as the parent of a task.
pub(crate) fn parse_plan(text: &str) -> Result<TargetId, WorkError> {
    let id = parse_target(text)?;
    if id.kind == TargetKind::Plan {
        return Ok(id);
    }
    Err(WorkError::invalid(format!("{id} is not a plan"))
        .recovery("the parent of a task is a plan, like PLAN-001"))
}

pub(crate) fn parse_path(text: &str) -> Result<StepPath, WorkError> {
    text.parse().map_err(|fault| WorkError::bad_id("step path", "a path like s:0.s:2", text, fault))
}

pub(crate) fn unknown_target(text: &str) -> WorkError {
    WorkError::unknown("plan or task", text)
        .recovery("tasks_context lists plans and tasks")
        .propose(Proposal::new(WorkTool::TasksContext, json!({}), "List plans and tasks", Priority::High))
}

fn unknown_step(target: TargetId, text: &str) -> WorkError {
    WorkError::new(WorkErrorCode::UnknownId, format!("{target} has no step {}", crate::name::quoted(text)))
        .recovery("tasks_resume shows the steps")
        .propose(look_at(target))
}

fn look_at(target: TargetId) -> Proposal {
    Proposal::new(WorkTool::TasksResume, json!({"task": target}), "See the steps", Priority::High)
}
