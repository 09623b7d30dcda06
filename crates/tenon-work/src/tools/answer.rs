//! Answers that several writes share.

use serde::Serialize;

use crate::id::{StepId, TargetId, TargetKind};
use crate::plan::event::EventView;
use crate::plan::mutation::Mutation;
use crate::plan::step::StepRef;
use crate::work_call::WorkCall;

/// The answer to a write to a step, or to the task itself.
#[derive(Debug, Serialize)]
pub(crate) struct StepAnswer {
    pub task: TargetId,
    pub revision: u64,
    pub step: Option<StepRef>,
    pub event: Option<EventView>,
}

pub(super) fn of_step(mutation: &Mutation, call: &WorkCall<'_>, step: Option<StepId>) -> StepAnswer {
    StepAnswer {
        task: mutation.row().id,
        revision: mutation.row().fields.revision,
        step: step.map(|id| mutation.step_row(id).to_ref()),
        event: mutation.event_view(call.ws.name.as_str()),
    }
}

/// The answer to a write to a plan or task.
#[derive(Debug, Serialize)]
pub(crate) struct TargetAnswer {
    id: TargetId,
    kind: TargetKind,
    revision: u64,
    event: Option<EventView>,
    /// Only if the write was to a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<StepRef>,
}

pub(super) fn of_target(mutation: &Mutation, call: &WorkCall<'_>, step: Option<StepId>) -> TargetAnswer {
    let row = mutation.row();
    TargetAnswer {
        id: row.id,
        kind: row.id.kind,
        revision: row.fields.revision,
        event: mutation.event_view(call.ws.name.as_str()),
        step: step.map(|id| mutation.step_row(id).to_ref()),
    }
}
