//! One file per tool: its arguments, its rules, its answer.

mod answer;
pub(crate) mod checkpoints;
mod dependencies;
mod memory_branch;
mod memory_diff;
mod memory_export;
mod memory_graph_apply;
mod memory_graph_conflict;
mod memory_graph_diff;
mod memory_graph_merge;
mod memory_graph_query;
mod memory_graph_validate;
mod memory_init;
mod memory_merge;
mod memory_notes_commit;
mod memory_search;
mod memory_show;
mod memory_think;
mod tasks_batch;
mod tasks_block;
mod tasks_close_step;
mod tasks_context;
mod tasks_create;
mod tasks_decompose;
mod tasks_define;
mod tasks_delete;
mod tasks_delta;
mod tasks_done;
mod tasks_edit;
mod tasks_evidence;
mod tasks_focus;
mod tasks_handoff;
mod tasks_history;
pub(crate) mod tasks_next;
mod tasks_note;
mod tasks_patch;
mod tasks_radar;
mod tasks_resume;
mod tasks_undo;
mod tasks_verify;

use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, ArgumentError};
use crate::catalog::{Access, WorkTool};
use crate::error::WorkError;
use crate::plan::undo::Direction;
use crate::request::WorkRequest;
use crate::work_call::{WorkCall, WorkReply};

/// The arguments of a tool that takes only common ones.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct NoArgs {}

macro_rules! tool_args {
    ($($tool:ident($args:ty))*) => {
        /// The arguments that belong to one tool alone, typed.
        #[derive(Debug, Clone)]
        pub(crate) enum ToolArgs {
            $($tool($args)),*
        }

        impl ToolArgs {
            /// Reads JSON into the type of the tool, and brings it into its one form.
            pub(crate) fn read(tool: WorkTool, json: &mut Value) -> Result<Self, ArgumentError> {
                Ok(match tool {
                    $(WorkTool::$tool => Self::$tool(arguments::read(json)?)),*
                })
            }
        }
    };
}

tool_args! {
    TasksCreate(tasks_create::Args)
    TasksDecompose(tasks_decompose::Args)
    TasksEdit(tasks_edit::Args)
    TasksPatch(tasks_patch::Args)
    TasksDefine(tasks_define::Args)
    TasksNote(tasks_note::Args)
    TasksVerify(tasks_verify::Args)
    TasksDone(tasks_done::Args)
    TasksCloseStep(tasks_close_step::Args)
    TasksBlock(tasks_block::Args)
    TasksEvidence(tasks_evidence::Args)
    TasksDelete(tasks_delete::Args)
    TasksContext(tasks_context::Args)
    TasksNext(tasks_next::Args)
    TasksFocusGet(NoArgs)
    TasksFocusSet(tasks_focus::Args)
    TasksFocusClear(NoArgs)
    TasksRadar(tasks_radar::Args)
    TasksHandoff(tasks_radar::Args)
    TasksResume(tasks_radar::Args)
    TasksDelta(tasks_delta::Args)
    TasksHistory(tasks_history::Args)
    TasksUndo(tasks_undo::Args)
    TasksRedo(tasks_undo::Args)
    TasksBatch(tasks_batch::Args)
    MemoryInit(NoArgs)
    MemoryStatus(NoArgs)
    MemoryNotesCommit(memory_notes_commit::Args)
    MemoryShow(memory_show::Args)
    MemoryExport(memory_export::Args)
    MemoryDiff(memory_diff::Args)
    MemoryMerge(memory_merge::Args)
    MemoryBranchCreate(memory_branch::CreateArgs)
    MemoryBranchList(NoArgs)
    MemoryCheckout(memory_branch::CheckoutArgs)
    MemoryGraphApply(memory_graph_apply::Args)
    MemoryGraphQuery(memory_graph_query::Args)
    MemoryGraphValidate(memory_graph_validate::Args)
    MemoryGraphDiff(memory_graph_diff::Args)
    MemoryGraphMerge(memory_graph_merge::Args)
    MemoryGraphConflicts(memory_graph_conflict::ListArgs)
    MemoryGraphConflictShow(memory_graph_conflict::ShowArgs)
    MemoryGraphConflictResolve(memory_graph_conflict::ResolveArgs)
    MemoryThinkTemplate(memory_think::TemplateArgs)
    MemoryThinkCard(memory_think::CardArgs)
    MemoryThinkContext(memory_think::ContextArgs)
    MemorySearch(memory_search::Args)
}

/// The transaction that a request needs. `tasks_next` writes only to claim or release, and only on its first page.
pub(crate) fn access(request: &WorkRequest) -> Access {
    match &request.args {
        ToolArgs::TasksNext(_) if request.paging.cursor.is_some() => Access::Read,
        ToolArgs::TasksNext(args) if args.writes() => Access::Write,
        ToolArgs::TasksNext(_) => Access::Read,
        _ => request.tool.access(),
    }
}

/// Whether a tool usually reads nothing but the plan or task and the step that its arguments name, and writes in one
/// statement. Only such a tool is tried without a lock: any other would run twice.
pub(crate) fn reads_only_named(tool: WorkTool) -> bool {
    matches!(
        tool,
        WorkTool::TasksNote
            | WorkTool::TasksVerify
            | WorkTool::TasksEvidence
            | WorkTool::TasksFocusSet
            | WorkTool::MemoryNotesCommit
    )
}

pub(crate) fn run<'a>(
    call: &'a mut WorkCall<'_>,
    args: ToolArgs,
) -> BoxFuture<'a, Result<WorkReply, WorkError>> {
    match args {
        ToolArgs::TasksCreate(args) => tasks_create::run(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::TasksDecompose(args) => tasks_decompose::run(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::TasksEdit(args) => tasks_edit::run(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::TasksPatch(args) => tasks_patch::run(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::TasksDefine(args) => tasks_define::run(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::TasksNote(args) => tasks_note::run(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::TasksVerify(args) => tasks_verify::run(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::TasksDone(args) => tasks_done::run(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::TasksCloseStep(args) => tasks_close_step::run(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::TasksBlock(args) => tasks_block::run(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::TasksEvidence(args) => tasks_evidence::run(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::TasksDelete(args) => tasks_delete::run(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::TasksContext(args) => tasks_context::run(call, args).boxed(),
        ToolArgs::TasksNext(args) => tasks_next::run(call, args).boxed(),
        ToolArgs::TasksFocusGet(NoArgs {}) => tasks_focus::get(call).boxed(),
        ToolArgs::TasksFocusSet(args) => tasks_focus::set(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::TasksFocusClear(NoArgs {}) => tasks_focus::clear(call).map_ok(WorkReply::done).boxed(),
        ToolArgs::TasksRadar(args) => tasks_radar::run(call, args).boxed(),
        ToolArgs::TasksHandoff(args) => tasks_handoff::run(call, args).boxed(),
        ToolArgs::TasksResume(args) => tasks_resume::run(call, args).boxed(),
        ToolArgs::TasksDelta(args) => tasks_delta::run(call, args).boxed(),
        ToolArgs::TasksHistory(args) => tasks_history::run(call, args).boxed(),
        ToolArgs::TasksUndo(args) => {
            tasks_undo::run(call, args, Direction::Undo).map_ok(WorkReply::done).boxed()
        }
        ToolArgs::TasksRedo(args) => {
            tasks_undo::run(call, args, Direction::Redo).map_ok(WorkReply::done).boxed()
        }
        ToolArgs::TasksBatch(args) => tasks_batch::run(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::MemoryInit(NoArgs {}) => memory_init::init(call).map_ok(WorkReply::done).boxed(),
        ToolArgs::MemoryStatus(NoArgs {}) => memory_init::status(call).boxed(),
        ToolArgs::MemoryNotesCommit(args) => memory_notes_commit::run(call, args).boxed(),
        ToolArgs::MemoryShow(args) => memory_show::run(call, args).boxed(),
        ToolArgs::MemoryExport(args) => memory_export::run(call, args).boxed(),
        ToolArgs::MemoryDiff(args) => memory_diff::run(call, args).boxed(),
        ToolArgs::MemoryMerge(args) => memory_merge::run(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::MemoryBranchCreate(args) => {
            memory_branch::create(call, args).map_ok(WorkReply::done).boxed()
        }
        ToolArgs::MemoryBranchList(NoArgs {}) => memory_branch::list(call).boxed(),
        ToolArgs::MemoryCheckout(args) => memory_branch::checkout(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::MemoryGraphApply(args) => {
            memory_graph_apply::run(call, args).map_ok(WorkReply::done).boxed()
        }
        ToolArgs::MemoryGraphQuery(args) => memory_graph_query::run(call, args).boxed(),
        ToolArgs::MemoryGraphValidate(args) => memory_graph_validate::run(call, args).boxed(),
        ToolArgs::MemoryGraphDiff(args) => memory_graph_diff::run(call, args).boxed(),
        ToolArgs::MemoryGraphMerge(args) => {
            memory_graph_merge::run(call, args).map_ok(WorkReply::done).boxed()
        }
        ToolArgs::MemoryGraphConflicts(args) => memory_graph_conflict::list(call, args).boxed(),
        ToolArgs::MemoryGraphConflictShow(args) => memory_graph_conflict::show(call, args).boxed(),
        ToolArgs::MemoryGraphConflictResolve(args) => {
            memory_graph_conflict::resolve(call, args).map_ok(WorkReply::done).boxed()
        }
        ToolArgs::MemoryThinkTemplate(args) => memory_think::template(call, args).boxed(),
        ToolArgs::MemoryThinkCard(args) => memory_think::write(call, args).map_ok(WorkReply::done).boxed(),
        ToolArgs::MemoryThinkContext(args) => memory_think::context(call, args).boxed(),
        ToolArgs::MemorySearch(args) => memory_search::run(call, args).boxed(),
    }
}
