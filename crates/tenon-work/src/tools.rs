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

use crate::call::{Call, Reply};
use crate::catalog::{Access, Tool};
use crate::error::Failure;
use crate::plan::history::Direction;
use crate::request::Request;

/// The transaction that a request needs. `tasks_next` only writes when it is asked to, and on its first page.
pub(crate) fn access(request: &Request) -> Access {
    let all = &request.all;
    match request.tool {
        Tool::TasksNext if request.paging.cursor.is_some() => Access::Read,
        Tool::TasksNext
            if all.contains_key("release") || all.get("claim").is_some_and(|claim| claim == true) =>
        {
            Access::Write
        }
        Tool::TasksNext => Access::Read,
        tool => tool.access(),
    }
}

pub(crate) fn run<'a>(call: &'a mut Call<'_>) -> BoxFuture<'a, Result<Reply, Failure>> {
    match call.request.tool {
        Tool::TasksCreate => tasks_create::run(call).boxed(),
        Tool::TasksDecompose => tasks_decompose::run(call).boxed(),
        Tool::TasksEdit => tasks_edit::run(call).boxed(),
        Tool::TasksPatch => tasks_patch::run(call).boxed(),
        Tool::TasksDefine => tasks_define::run(call).boxed(),
        Tool::TasksNote => tasks_note::run(call).boxed(),
        Tool::TasksVerify => tasks_verify::run(call).boxed(),
        Tool::TasksDone => tasks_done::run(call).boxed(),
        Tool::TasksCloseStep => tasks_close_step::run(call).boxed(),
        Tool::TasksBlock => tasks_block::run(call).boxed(),
        Tool::TasksEvidence => tasks_evidence::run(call).boxed(),
        Tool::TasksDelete => tasks_delete::run(call).boxed(),
        Tool::TasksContext => tasks_context::run(call).boxed(),
        Tool::TasksNext => tasks_next::run(call).boxed(),
        Tool::TasksFocusGet => tasks_focus::get(call).boxed(),
        Tool::TasksFocusSet => tasks_focus::set(call).boxed(),
        Tool::TasksFocusClear => tasks_focus::clear(call).boxed(),
        Tool::TasksRadar => tasks_radar::run(call).boxed(),
        Tool::TasksHandoff => tasks_handoff::run(call).boxed(),
        Tool::TasksResume => tasks_resume::run(call).boxed(),
        Tool::TasksDelta => tasks_delta::run(call).boxed(),
        Tool::TasksHistory => tasks_history::run(call).boxed(),
        Tool::TasksUndo => tasks_undo::run(call, Direction::Undo).boxed(),
        Tool::TasksRedo => tasks_undo::run(call, Direction::Redo).boxed(),
        Tool::TasksBatch => tasks_batch::run(call).boxed(),
        Tool::MemoryInit => memory_init::init(call).boxed(),
        Tool::MemoryStatus => memory_init::status(call).boxed(),
        Tool::MemoryNotesCommit => memory_notes_commit::run(call).boxed(),
        Tool::MemoryShow => memory_show::run(call).boxed(),
        Tool::MemoryExport => memory_export::run(call).boxed(),
        Tool::MemoryDiff => memory_diff::run(call).boxed(),
        Tool::MemoryMerge => memory_merge::run(call).boxed(),
        Tool::MemoryBranchCreate => memory_branch::create(call).boxed(),
        Tool::MemoryBranchList => memory_branch::list(call).boxed(),
        Tool::MemoryCheckout => memory_branch::checkout(call).boxed(),
        Tool::MemoryGraphApply => memory_graph_apply::run(call).boxed(),
        Tool::MemoryGraphQuery => memory_graph_query::run(call).boxed(),
        Tool::MemoryGraphValidate => memory_graph_validate::run(call).boxed(),
        Tool::MemoryGraphDiff => memory_graph_diff::run(call).boxed(),
        Tool::MemoryGraphMerge => memory_graph_merge::run(call).boxed(),
        Tool::MemoryGraphConflicts => memory_graph_conflict::list(call).boxed(),
        Tool::MemoryGraphConflictShow => memory_graph_conflict::show(call).boxed(),
        Tool::MemoryGraphConflictResolve => memory_graph_conflict::resolve(call).boxed(),
        Tool::MemoryThinkTemplate => memory_think::template(call).boxed(),
        Tool::MemoryThinkCard => memory_think::write(call).boxed(),
        Tool::MemoryThinkContext => memory_think::context(call).boxed(),
        Tool::MemorySearch => memory_search::run(call).boxed(),
    }
}
