//! Trees of steps in arguments.

use serde::{Deserialize, Serialize};

use super::mutation::Mutation;
use super::step::{Checkpoint, OptionalCheckpoint, Step};
use crate::arguments::NonEmpty;
use crate::error::WorkError;
use crate::id::StepId;
use crate::limits;
use crate::path::{MAX_DEPTH, StepPath};
use crate::workspace::Workspace;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct StepInput {
    title: String,
    success_criteria: NonEmpty<String>,
    #[serde(default)]
    tests: Vec<String>,
    #[serde(default)]
    blockers: Vec<String>,
    #[serde(default)]
    checkpoints: Vec<OptionalCheckpoint>,
    #[serde(default)]
    steps: Vec<StepInput>,
}

/// A step that was added.
#[derive(Debug, Serialize)]
pub(crate) struct NewStep {
    step_id: StepId,
    path: StepPath,
}

/// The number of steps in a tree, within the limit of one call.
pub(crate) fn check(steps: &[StepInput]) -> Result<usize, WorkError> {
    fn size(steps: &[StepInput]) -> usize {
        steps.iter().map(|step| 1 + size(&step.steps)).sum()
    }
    let size = size(steps);
    limits::count("steps", size, limits::PER_CALL)?;
    Ok(size)
}

/// Adds a tree below a step, or at the root, starting at an ordinal. Returns ids and paths, parents first.
pub(crate) fn add(
    mutation: &mut Mutation,
    ws: &mut Workspace,
    parent: Option<&StepPath>,
    first: u32,
    steps: Vec<StepInput>,
) -> Result<Vec<NewStep>, WorkError> {
    let mut made = Vec::new();
    for (step, ordinal) in steps.into_iter().zip(first..) {
        let path = parent.map_or_else(|| StepPath::root(ordinal), |parent| parent.child(ordinal));
        if path.depth() > MAX_DEPTH {
            return Err(WorkError::invalid(format!("steps nest at most {MAX_DEPTH} deep"))
                .recovery("create a task for the upper steps"));
        }
        let id = StepId(ws.next_step());
        let mut fields = Step {
            path: path.clone(),
            title: step.title,
            success_criteria: step.success_criteria.0,
            tests: step.tests,
            blockers: step.blockers,
            checkpoints: step.checkpoints.into_iter().map(Checkpoint::from).collect(),
            ..Step::default()
        };
        fields.settle()?;
        mutation.add_step(id, fields);
        made.push(NewStep { step_id: id, path: path.clone() });
        made.extend(add(mutation, ws, Some(&path), 0, step.steps)?);
    }
    Ok(made)
}
