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

macro_rules! tools {
    ($($variant:ident $name:literal $surface:ident $access:ident $description:literal)*) => {
        /// Every tool, in the order in which they are listed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum WorkTool {
            $($variant),*
        }

        impl WorkTool {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),*
                }
            }

            pub fn surface(self) -> WorkSurfaceKind {
                match self {
                    $(Self::$variant => WorkSurfaceKind::$surface),*
                }
            }

            pub fn access(self) -> Access {
                match self {
                    $(Self::$variant => Access::$access),*
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

tools! {
    TasksCreate "tasks_create" Tasks Write "Create a plan, or a task under a plan, with steps"
    TasksDecompose "tasks_decompose" Tasks Write "Add steps to a plan, task or step"
    TasksEdit "tasks_edit" Tasks Write "Change fields of a plan or task"
    TasksPatch "tasks_patch" Tasks Write "Set, unset, append to or remove from any field of a plan, task or step"
    TasksDefine "tasks_define" Tasks Write "Redefine a step; changed criteria or tests must be confirmed again"
    TasksNote "tasks_note" Tasks Write "Add a note to a task or step"
    TasksVerify "tasks_verify" Tasks Write "Confirm checkpoints of a step"
    TasksDone "tasks_done" Tasks Write "Close a step whose checkpoints are confirmed"
    TasksCloseStep "tasks_close_step" Tasks Write "Confirm checkpoints and close the step in one call"
    TasksBlock "tasks_block" Tasks Write "Block or unblock a task or step"
    TasksEvidence "tasks_evidence" Tasks Write "Attach command output, diagnostics or a file hash to a checkpoint"
    TasksDelete "tasks_delete" Tasks Write "Delete a plan, task or step and everything below it"
    TasksContext "tasks_context" Tasks Read "List plans and tasks"
    TasksNext "tasks_next" Tasks Write "List tasks that are ready; claim the first one, or release one"
    TasksFocusGet "tasks_focus_get" Tasks Read "Show the focus: the task of calls without `task`"
    TasksFocusSet "tasks_focus_set" Tasks Write "Set the focus"
    TasksFocusClear "tasks_focus_clear" Tasks Write "Clear the focus"
    TasksRadar "tasks_radar" Tasks Read "Show the current step, the reason, checkpoints, next steps and blockers"
    TasksHandoff "tasks_handoff" Tasks Read "Show done, remaining, risks, and the radar"
    TasksResume "tasks_resume" Tasks Read "Everything needed to resume after a lost context"
    TasksDelta "tasks_delta" Tasks Read "List events after `since`; with wait_ms, wait for new ones"
    TasksHistory "tasks_history" Tasks Read "List operations that can be undone or redone"
    TasksUndo "tasks_undo" Tasks Write "Undo the newest operation"
    TasksRedo "tasks_redo" Tasks Write "Redo the operation undone last"
    TasksBatch "tasks_batch" Tasks Write "Run several tasks_* calls in one transaction: all or none"
    MemoryInit "memory_init" Memory Write "Create the workspace"
    MemoryStatus "memory_status" Memory Read "Show schema version, checkout, newest event and entry"
    MemoryNotesCommit "memory_notes_commit" Memory Write "Append a note"
    MemoryShow "memory_show" Memory Read "Show entries of a document, newest page first; or one entry by seq"
    MemoryExport "memory_export" Memory Read "Show notes and trace of a plan or task"
    MemoryDiff "memory_diff" Memory Read "List entries of `to` that `from` does not show"
    MemoryMerge "memory_merge" Memory Write "Copy the notes that `into` does not have"
    MemoryBranchCreate "memory_branch_create" Memory Write "Start a branch; nothing is copied"
    MemoryBranchList "memory_branch_list" Memory Read "List branches by age"
    MemoryCheckout "memory_checkout" Memory Write "Choose the default branch"
    MemoryGraphApply "memory_graph_apply" Memory Write "Upsert and delete nodes and edges, all or none"
    MemoryGraphQuery "memory_graph_query" Memory Read "List nodes by latest change, with their edges"
    MemoryGraphValidate "memory_graph_validate" Memory Read "Find dangling edges"
    MemoryGraphDiff "memory_graph_diff" Memory Read "Compare a graph on two branches"
    MemoryGraphMerge "memory_graph_merge" Memory Write "Merge a branch into its base, three-way"
    MemoryGraphConflicts "memory_graph_conflicts" Memory Read "List merge conflicts"
    MemoryGraphConflictShow "memory_graph_conflict_show" Memory Read "Show base, theirs and ours of a conflict"
    MemoryGraphConflictResolve "memory_graph_conflict_resolve" Memory Write "Resolve a conflict"
    MemoryThinkTemplate "memory_think_template" Memory Read "Show an empty card: frame, hypothesis, question, test, evidence, decision, note, update"
    MemoryThinkCard "memory_think_card" Memory Write "Write a card to trace and graph"
    MemoryThinkContext "memory_think_context" Memory Read "List cards of a graph, newest first"
    MemorySearch "memory_search" Memory Read "Search notes, cards and tasks, newest first; `word*` matches prefixes"
}

impl WorkTool {
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tool| tool.name() == name)
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
