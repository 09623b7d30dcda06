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
mod tasks_next;
mod tasks_note;
mod tasks_patch;
mod tasks_radar;
mod tasks_resume;
mod tasks_undo;
mod tasks_verify;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::catalog::{Access, WorkTool};
use crate::error::WorkError;
use crate::plan::undo::Direction;
use crate::request::Request;
use crate::work_call::{WorkCall, WorkReply};

/// The transaction that a request needs. `tasks_next` only writes when it is asked to, and on its first page.
pub(crate) fn access(request: &Request) -> Access {
    let all = &request.all;
    match request.tool {
        WorkTool::TasksNext if request.paging.cursor.is_some() => Access::Read,
        WorkTool::TasksNext
            if all.contains_key("release") || all.get("claim").is_some_and(|claim| claim == true) =>
        {
            Access::Write
        }
        WorkTool::TasksNext => Access::Read,
        tool => tool.access(),
    }
}

pub(crate) fn run<'a>(call: &'a mut WorkCall<'_>) -> BoxFuture<'a, Result<WorkReply, WorkError>> {
    match call.request.tool {
        WorkTool::TasksCreate => tasks_create::run(call).boxed(),
        WorkTool::TasksDecompose => tasks_decompose::run(call).boxed(),
        WorkTool::TasksEdit => tasks_edit::run(call).boxed(),
        WorkTool::TasksPatch => tasks_patch::run(call).boxed(),
        WorkTool::TasksDefine => tasks_define::run(call).boxed(),
        WorkTool::TasksNote => tasks_note::run(call).boxed(),
        WorkTool::TasksVerify => tasks_verify::run(call).boxed(),
        WorkTool::TasksDone => tasks_done::run(call).boxed(),
        WorkTool::TasksCloseStep => tasks_close_step::run(call).boxed(),
        WorkTool::TasksBlock => tasks_block::run(call).boxed(),
        WorkTool::TasksEvidence => tasks_evidence::run(call).boxed(),
        WorkTool::TasksDelete => tasks_delete::run(call).boxed(),
        WorkTool::TasksContext => tasks_context::run(call).boxed(),
        WorkTool::TasksNext => tasks_next::run(call).boxed(),
        WorkTool::TasksFocusGet => tasks_focus::get(call).boxed(),
        WorkTool::TasksFocusSet => tasks_focus::set(call).boxed(),
        WorkTool::TasksFocusClear => tasks_focus::clear(call).boxed(),
        WorkTool::TasksRadar => tasks_radar::run(call).boxed(),
        WorkTool::TasksHandoff => tasks_handoff::run(call).boxed(),
        WorkTool::TasksResume => tasks_resume::run(call).boxed(),
        WorkTool::TasksDelta => tasks_delta::run(call).boxed(),
        WorkTool::TasksHistory => tasks_history::run(call).boxed(),
        WorkTool::TasksUndo => tasks_undo::run(call, Direction::Undo).boxed(),
        WorkTool::TasksRedo => tasks_undo::run(call, Direction::Redo).boxed(),
        WorkTool::TasksBatch => tasks_batch::run(call).boxed(),
        WorkTool::MemoryInit => memory_init::init(call).boxed(),
        WorkTool::MemoryStatus => memory_init::status(call).boxed(),
        WorkTool::MemoryNotesCommit => memory_notes_commit::run(call).boxed(),
        WorkTool::MemoryShow => memory_show::run(call).boxed(),
        WorkTool::MemoryExport => memory_export::run(call).boxed(),
        WorkTool::MemoryDiff => memory_diff::run(call).boxed(),
        WorkTool::MemoryMerge => memory_merge::run(call).boxed(),
        WorkTool::MemoryBranchCreate => memory_branch::create(call).boxed(),
        WorkTool::MemoryBranchList => memory_branch::list(call).boxed(),
        WorkTool::MemoryCheckout => memory_branch::checkout(call).boxed(),
        WorkTool::MemoryGraphApply => memory_graph_apply::run(call).boxed(),
        WorkTool::MemoryGraphQuery => memory_graph_query::run(call).boxed(),
        WorkTool::MemoryGraphValidate => memory_graph_validate::run(call).boxed(),
        WorkTool::MemoryGraphDiff => memory_graph_diff::run(call).boxed(),
        WorkTool::MemoryGraphMerge => memory_graph_merge::run(call).boxed(),
        WorkTool::MemoryGraphConflicts => memory_graph_conflict::list(call).boxed(),
        WorkTool::MemoryGraphConflictShow => memory_graph_conflict::show(call).boxed(),
        WorkTool::MemoryGraphConflictResolve => memory_graph_conflict::resolve(call).boxed(),
        WorkTool::MemoryThinkTemplate => memory_think::template(call).boxed(),
        WorkTool::MemoryThinkCard => memory_think::write(call).boxed(),
        WorkTool::MemoryThinkContext => memory_think::context(call).boxed(),
        WorkTool::MemorySearch => memory_search::run(call).boxed(),
    }
}
