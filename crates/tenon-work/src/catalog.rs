//! The tools of the two surfaces: names, descriptions and input schemas.
//!
//! Schemas are data, checked in under `schemas/tools/`. Limits, patterns of ids and names, and the nesting of steps are
//! checked by the tools, with their own error codes.

/// Which surface lists a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkSurfaceKind {
    Tasks,
    Memory,
}

/// What a tool may do to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// A catalog: an enum with a variant per tool, in the order in which they are listed. Schemas are in `schemas/tools/`.
macro_rules! tool_catalog {
    ($(#[$about:meta])* $catalog:ident $($variant:ident $name:literal $access:ident $description:literal)*) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $catalog {
            $($variant),*
        }

        impl $catalog {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            pub fn by_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|tool| tool.name() == name)
            }

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),*
                }
            }

            pub fn access(self) -> $crate::catalog::Access {
                match self {
                    $(Self::$variant => $crate::catalog::Access::$access),*
                }
            }

            pub fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $description),*
                }
            }

            /// JSON Schema of the arguments.
            pub fn schema(self) -> &'static str {
                match self {
                    $(Self::$variant => include_str!(concat!("../../../schemas/tools/", $name, ".json"))),*
                }
            }
        }
    };
}
pub(crate) use tool_catalog;

tool_catalog! {
    /// The tools of the surfaces `tasks` and `memory`.
    WorkTool
    TasksCreate "tasks_create" Write "Create a plan, or a task under a plan, with steps"
    TasksDecompose "tasks_decompose" Write "Add steps to a plan, task or step"
    TasksEdit "tasks_edit" Write "Change fields of a plan or task"
    TasksPatch "tasks_patch" Write "Set, unset, append to or remove from any field of a plan, task or step"
    TasksDefine "tasks_define" Write "Redefine a step; changed criteria or tests must be confirmed again"
    TasksNote "tasks_note" Write "Add a note to a task or step"
    TasksVerify "tasks_verify" Write "Confirm checkpoints of a step"
    TasksDone "tasks_done" Write "Close a step whose checkpoints are confirmed"
    TasksCloseStep "tasks_close_step" Write "Confirm checkpoints and close the step in one call"
    TasksBlock "tasks_block" Write "Block or unblock a task or step"
    TasksEvidence "tasks_evidence" Write "Attach command output, diagnostics or a file hash to a checkpoint"
    TasksDelete "tasks_delete" Write "Delete a plan, task or step and everything below it"
    TasksContext "tasks_context" Read "List plans and tasks"
    TasksNext "tasks_next" Write "List tasks that are ready; claim the first one, or release one"
    TasksFocusGet "tasks_focus_get" Read "Show the focus: the task of calls without `task`"
    TasksFocusSet "tasks_focus_set" Write "Set the focus"
    TasksFocusClear "tasks_focus_clear" Write "Clear the focus"
    TasksRadar "tasks_radar" Read "Show the current step, the reason, checkpoints, next steps and blockers"
    TasksHandoff "tasks_handoff" Read "Show done, remaining, risks, and the radar"
    TasksResume "tasks_resume" Read "Everything needed to resume after a lost context"
    TasksDelta "tasks_delta" Read "List events after `since`; with wait_ms, wait for new ones"
    TasksHistory "tasks_history" Read "List operations that can be undone or redone"
    TasksUndo "tasks_undo" Write "Undo the newest operation"
    TasksRedo "tasks_redo" Write "Redo the operation undone last"
    TasksBatch "tasks_batch" Write "Run several tasks_* calls in one transaction: all or none"
    MemoryInit "memory_init" Write "Create the workspace"
    MemoryStatus "memory_status" Read "Show schema version, checkout, newest event and entry"
    MemoryNotesCommit "memory_notes_commit" Write "Append a note"
    MemoryShow "memory_show" Read "Show entries of a document, newest page first; or one entry by seq"
    MemoryExport "memory_export" Read "Show notes and trace of a plan or task"
    MemoryDiff "memory_diff" Read "List entries of `to` that `from` does not show"
    MemoryMerge "memory_merge" Write "Copy the notes that `into` does not have"
    MemoryBranchCreate "memory_branch_create" Write "Start a branch; nothing is copied"
    MemoryBranchList "memory_branch_list" Read "List branches by age"
    MemoryCheckout "memory_checkout" Write "Choose the default branch"
    MemoryGraphApply "memory_graph_apply" Write "Upsert and delete nodes and edges, all or none"
    MemoryGraphQuery "memory_graph_query" Read "List nodes by latest change, with their edges"
    MemoryGraphValidate "memory_graph_validate" Read "Find dangling edges"
    MemoryGraphDiff "memory_graph_diff" Read "Compare a graph on two branches"
    MemoryGraphMerge "memory_graph_merge" Write "Merge a branch into its base, three-way"
    MemoryGraphConflicts "memory_graph_conflicts" Read "List merge conflicts"
    MemoryGraphConflictShow "memory_graph_conflict_show" Read "Show base, theirs and ours of a conflict"
    MemoryGraphConflictResolve "memory_graph_conflict_resolve" Write "Resolve a conflict"
    MemoryThinkTemplate "memory_think_template" Read "Show an empty card: frame, hypothesis, question, test, evidence, decision, note, update"
    MemoryThinkCard "memory_think_card" Write "Write a card to trace and graph"
    MemoryThinkContext "memory_think_context" Read "List cards of a graph, newest first"
    MemorySearch "memory_search" Read "Search notes, cards and tasks, newest first; `word*` matches prefixes"
}

impl WorkTool {
    pub fn surface(self) -> WorkSurfaceKind {
        match self.name().starts_with("tasks_") {
            true => WorkSurfaceKind::Tasks,
            false => WorkSurfaceKind::Memory,
        }
    }

    /// `intent` of the envelope.
    pub fn intent(self) -> &'static str {
        let name = self.name();
        name.strip_prefix("tasks_").or_else(|| name.strip_prefix("memory_")).unwrap_or(name)
    }

    /// Whether the answer is a list that is read page by page.
    pub(crate) fn is_paged(self) -> bool {
        match self {
            Self::TasksNext | Self::MemoryMerge => true,
            Self::TasksFocusGet | Self::MemoryStatus | Self::MemoryThinkTemplate => false,
            tool => tool.access() == Access::Read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intent_is_the_name_without_its_surface() {
        assert_eq!(WorkTool::TasksCloseStep.intent(), "close_step");
        assert_eq!(WorkTool::MemoryGraphConflictShow.intent(), "graph_conflict_show");
        assert_eq!(WorkTool::by_name("tasks_create"), Some(WorkTool::TasksCreate));
        assert_eq!(WorkTool::by_name("create"), None);
    }
}
