//! The tools of the two surfaces: names, descriptions, input schemas, and the check of arguments against them.
//!
//! Schemas are data, checked in under `schemas/tools/`. What a schema does not say (limits, patterns of ids and
//! names, nesting of steps) is said by the code that reads the arguments, with a code of its own.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::error::WorkError;

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
        /// Every tool there is, in the order in which they are listed.
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
    TasksCreate "tasks_create" Tasks Write "Create a plan, or a task under a plan, with its tree of steps"
    TasksDecompose "tasks_decompose" Tasks Write "Add steps to a plan, task or step"
    TasksEdit "tasks_edit" Tasks Write "Change fields of a plan or task"
    TasksPatch "tasks_patch" Tasks Write "Set, unset, append to or remove from any field of a plan, task or step"
    TasksDefine "tasks_define" Tasks Write "Define a step anew; new criteria or tests must be confirmed again"
    TasksNote "tasks_note" Tasks Write "Note something on a task or step"
    TasksVerify "tasks_verify" Tasks Write "Confirm checkpoints of a step"
    TasksDone "tasks_done" Tasks Write "Close a step whose checkpoints are confirmed"
    TasksCloseStep "tasks_close_step" Tasks Write "Confirm checkpoints and close the step, as one"
    TasksBlock "tasks_block" Tasks Write "Block or unblock a task or step"
    TasksEvidence "tasks_evidence" Tasks Write "Attach command output, diagnostics or a file hash to a checkpoint"
    TasksDelete "tasks_delete" Tasks Write "Delete a plan, task or step with all below it"
    TasksContext "tasks_context" Tasks Read "List plans and tasks"
    TasksNext "tasks_next" Tasks Write "The ready queue; claim its first task, or release one"
    TasksFocusGet "tasks_focus_get" Tasks Read "The task that calls without `task` mean"
    TasksFocusSet "tasks_focus_set" Tasks Write "Set the focus"
    TasksFocusClear "tasks_focus_clear" Tasks Write "Clear the focus"
    TasksRadar "tasks_radar" Tasks Read "Now, why, verify, next, blockers"
    TasksHandoff "tasks_handoff" Tasks Read "Done, remaining, risks, and the radar"
    TasksResume "tasks_resume" Tasks Read "All it takes to go on after a lost context"
    TasksDelta "tasks_delta" Tasks Read "Events since one; wait_ms waits for news"
    TasksHistory "tasks_history" Tasks Read "Operations that can be undone or redone"
    TasksUndo "tasks_undo" Tasks Write "Undo the newest operation"
    TasksRedo "tasks_redo" Tasks Write "Redo what was undone last"
    TasksBatch "tasks_batch" Tasks Write "Several tasks_* calls in one transaction: all or none"
    MemoryInit "memory_init" Memory Write "Make the workspace"
    MemoryStatus "memory_status" Memory Read "Schema, checkout, newest event and entry"
    MemoryNotesCommit "memory_notes_commit" Memory Write "Append a note"
    MemoryShow "memory_show" Memory Read "Entries of a document, newest page first; or one entry by seq"
    MemoryExport "memory_export" Memory Read "Notes and trace of a plan or task"
    MemoryDiff "memory_diff" Memory Read "Entries of `to` that `from` does not see"
    MemoryMerge "memory_merge" Memory Write "Copy notes that `into` does not have"
    MemoryBranchCreate "memory_branch_create" Memory Write "Start a branch; nothing is copied"
    MemoryBranchList "memory_branch_list" Memory Read "Branches by age"
    MemoryCheckout "memory_checkout" Memory Write "Choose the default branch"
    MemoryGraphApply "memory_graph_apply" Memory Write "Upsert and delete nodes and edges, all or none"
    MemoryGraphQuery "memory_graph_query" Memory Read "Nodes by latest change, with their edges"
    MemoryGraphValidate "memory_graph_validate" Memory Read "Edges without ends and other faults"
    MemoryGraphDiff "memory_graph_diff" Memory Read "What differs between two branches"
    MemoryGraphMerge "memory_graph_merge" Memory Write "Three-way merge of a branch into its base"
    MemoryGraphConflicts "memory_graph_conflicts" Memory Read "Conflicts of merges"
    MemoryGraphConflictShow "memory_graph_conflict_show" Memory Read "Base, theirs and ours of a conflict"
    MemoryGraphConflictResolve "memory_graph_conflict_resolve" Memory Write "Resolve a conflict"
    MemoryThinkTemplate "memory_think_template" Memory Read "An empty card: frame, hypothesis, question, test, evidence, decision, note, update"
    MemoryThinkCard "memory_think_card" Memory Write "Write a card to trace and graph"
    MemoryThinkContext "memory_think_context" Memory Read "Cards of a graph, newest first"
    MemorySearch "memory_search" Memory Read "Full text over notes, cards and tasks, newest first; `word*` matches beginnings"
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

    fn checker(self) -> &'static Checker {
        static CHECKERS: [OnceLock<Checker>; WorkTool::ALL.len()] =
            [const { OnceLock::new() }; WorkTool::ALL.len()];
        CHECKERS[self as usize].get_or_init(|| {
            let mut schema: Value =
                serde_json::from_str(self.schema()).expect("schemas are JSON (schemas test)");
            let listed = schema.clone();
            nest(&mut schema, &listed, "#");
            let validator = jsonschema::validator_for(&schema).expect("schemas compile (schemas test)");
            Checker { schema, validator }
        })
    }

    /// Brings arguments into the form that the code reads: `null` is absent, `5.0` is `5`.
    ///
    /// # Errors
    /// When they break the schema of this tool; unknown arguments do.
    pub(crate) fn check(self, args: Map<String, Value>) -> Result<Map<String, Value>, WorkError> {
        let checker = self.checker();
        let mut args = Value::Object(args);
        normalise(&checker.schema, &checker.schema, &mut args);
        if let Err(fault) = checker.validator.validate(&args) {
            let place = fault.instance_path().to_string();
            let place = if place.is_empty() { "arguments".to_owned() } else { format!("`{place}`") };
            return Err(WorkError::invalid(format!("{place}: {}", fault.masked_with("the value")))
                .recovery(format!("follow the input schema of {}", self.name())));
        }
        match args {
            Value::Object(args) => Ok(args),
            _ => unreachable!("built as an object above"),
        }
    }
}

struct Checker {
    schema: Value,
    validator: jsonschema::Validator,
}

/// Says where a schema lists a shape inside itself what that shape is, so that it is checked at every depth.
///
/// What is listed only says "same shape": not every client follows references.
fn nest(schema: &mut Value, listed: &Value, pointer: &str) {
    for (name, property) in listed["properties"].as_object().into_iter().flatten() {
        if property["description"] == "same shape" {
            schema["properties"][name]["items"] = json!({"$ref": pointer});
        } else {
            nest(&mut schema["properties"][name], property, &format!("{pointer}/properties/{name}"));
        }
    }
    if let Some(items) = listed.get("items") {
        nest(&mut schema["items"], items, &format!("{pointer}/items"));
    }
}

fn normalise(root: &Value, schema: &Value, value: &mut Value) {
    let reference = schema["$ref"].as_str().and_then(|pointer| root.pointer(&pointer[1..]));
    let schema = reference.unwrap_or(schema);
    match value {
        Value::Object(map) => {
            if let Some(Value::Object(known)) = schema.get("properties") {
                map.retain(|name, value| !(value.is_null() && known.get(name).is_some_and(is_typed)));
                for (name, value) in map.iter_mut() {
                    if let Some(schema) = known.get(name) {
                        normalise(root, schema, value);
                    }
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| normalise(root, schema, item));
            }
        }
        Value::Number(number) if schema.get("type").is_some_and(|kind| kind == "integer") => {
            if let Some(float) = number.as_f64().filter(|_| number.is_f64())
                && float.fract() == 0.0
                && float.abs() < 2f64.powi(63)
            {
                *value = Value::from(float as i64);
            }
        }
        _ => {}
    }
}

/// A property of any type may really be `null`; for all others `null` means absent.
fn is_typed(schema: &Value) -> bool {
    schema.get("type").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(tool: WorkTool, args: Value) -> Result<Value, String> {
        let Value::Object(args) = args else { panic!("an object") };
        tool.check(args).map(Value::Object).map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn every_schema_compiles_and_refuses_unknown_arguments() {
        for &tool in WorkTool::ALL {
            let schema = &tool.checker().schema;
            assert_eq!(schema["additionalProperties"], json!(false), "{}", tool.name());
            assert!(schema["properties"]["workspace"].is_object(), "{}", tool.name());
            let mut args = Map::new();
            args.insert("no_such_argument".into(), Value::Null);
            assert!(tool.check(args).is_err(), "{}", tool.name());
            assert!(!tool.schema().contains("$ref"), "{}", tool.name());
        }
    }

    #[test]
    fn null_is_absent_but_for_free_values() {
        let args = json!({"title": "x", "parent": null, "contract_data": {"kept": null},
            "steps": [{"title": "s", "success_criteria": ["c"], "tests": null, "steps": [
                {"title": "s", "success_criteria": ["c"], "blockers": null, "steps": [
                    {"title": "s", "success_criteria": ["c"], "steps": null}]}]}]});
        let expected = json!({"title": "x", "contract_data": {"kept": null},
            "steps": [{"title": "s", "success_criteria": ["c"], "steps": [
                {"title": "s", "success_criteria": ["c"], "steps": [
                    {"title": "s", "success_criteria": ["c"]}]}]}]});
        assert_eq!(checked(WorkTool::TasksCreate, args).unwrap(), expected);
        let verified = json!({"checkpoints": {"criteria": {"confirmed": true}, "tests": null}});
        let expected = json!({"checkpoints": {"criteria": {"confirmed": true}}});
        assert_eq!(checked(WorkTool::TasksVerify, verified).unwrap(), expected);
        assert!(checked(WorkTool::TasksVerify, json!({"checkpoints": {"speed": null}})).is_err());
        let patch = json!({"ops": [{"op": "set", "field": "description", "value": null}]});
        assert_eq!(checked(WorkTool::TasksPatch, patch.clone()).unwrap(), patch);
    }

    #[test]
    fn integers_may_be_spelled_as_floats() {
        let args = json!({"limit": 5.0, "max_chars": 1e3});
        assert_eq!(checked(WorkTool::TasksContext, args).unwrap(), json!({"limit": 5, "max_chars": 1000}));
        assert!(checked(WorkTool::TasksContext, json!({"limit": 5.5})).is_err());
        assert!(checked(WorkTool::TasksContext, json!({"limit": "5"})).is_err());
    }

    #[test]
    fn intents_are_names_without_their_surface() {
        assert_eq!(WorkTool::TasksCloseStep.intent(), "close_step");
        assert_eq!(WorkTool::MemoryGraphConflictShow.intent(), "graph_conflict_show");
        assert_eq!(WorkTool::by_name("tasks_create"), Some(WorkTool::TasksCreate));
        assert_eq!(WorkTool::by_name("create"), None);
    }
}
