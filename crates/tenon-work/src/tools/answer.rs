//! The common part of the answers to writes.

use serde_json::{Map, Value, json};

use crate::id::StepId;
use crate::page::object;
use crate::plan::mutation::Mutation;
use crate::work_call::WorkCall;

/// `task`, `revision`, `step` and `event` of a write that was about a step, or about the task itself.
pub(super) fn of_step(mutation: &Mutation, call: &WorkCall<'_>, step: Option<StepId>) -> Map<String, Value> {
    object(json!({
        "task": mutation.row().id,
        "revision": mutation.row().fields.revision,
        "step": step.map(|id| mutation.step_row(id).to_ref()),
        "event": mutation.event_value(call.ws.name.as_str()),
    }))
}

/// `id`, `kind`, `revision` and `event` of a write that was about a plan or task.
pub(super) fn of_target(mutation: &Mutation, call: &WorkCall<'_>) -> Map<String, Value> {
    let row = mutation.row();
    object(json!({
        "id": row.id,
        "kind": row.id.kind,
        "revision": row.fields.revision,
        "event": mutation.event_value(call.ws.name.as_str()),
    }))
}
