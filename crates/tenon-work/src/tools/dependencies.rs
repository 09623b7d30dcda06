//! Dependencies of a task: existing tasks, without cycles.

use crate::error::WorkError;
use crate::id::{TargetId, TargetKind};
use crate::plan::target;
use crate::work_call::{WorkCall, parse_target};

pub(super) fn parse(texts: &[String]) -> Result<Vec<TargetId>, WorkError> {
    texts.iter().map(|text| parse_target(text)).collect()
}

/// `task` is the one that waits; none for a task that is being created, which has no dependents yet.
pub(super) async fn check(
    call: &mut WorkCall<'_>,
    task: Option<TargetId>,
    needed: &[TargetId],
) -> Result<(), WorkError> {
    for &id in needed {
        if id.kind != TargetKind::Task {
            return Err(
                WorkError::invalid(format!("{id} is not a task")).recovery("tasks depend on tasks only")
            );
        }
        call.load(id).await?;
        if let Some(task) = task
            && target::depends(call.tx, call.ws.id, id, task).await?
        {
            return Err(WorkError::invalid(format!("{task} cannot wait for {id}, which waits for {task}"))
                .recovery("leave out one of the dependencies in the cycle"));
        }
    }
    Ok(())
}
