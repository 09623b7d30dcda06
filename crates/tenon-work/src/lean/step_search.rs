//! The task of a step that a call names without its task: the current one, else one that is active, else any other.

use serde_json::json;

use super::reference::{Match, StepName, matching, position};
use super::{LeanError, LeanTool};
use crate::error::WorkErrorCode;
use crate::name::quoted;
use crate::plan::step::{self, StepRow};
use crate::plan::target::{Status, TargetRow, excerpt};
use crate::work_call::WorkCall;

/// How many steps of tasks in one status a title is compared with, and how many an error names.
const COMPARED: i64 = 10_000;
const NAMED: usize = 5;

impl WorkCall<'_> {
    /// The task with a step of this name. A position means the current task, and so does a name that no task has.
    pub(super) async fn task_with_step(
        &mut self,
        current: TargetRow,
        text: &str,
    ) -> Result<TargetRow, LeanError> {
        let found = match StepName::parse(text) {
            StepName::At(_) | StepName::Next => return Ok(current),
            StepName::Id(id) => step::by_id(self.tx, self.ws.id, id).await?,
            StepName::Title => self.titled_step(&current, text).await?,
        };
        match found {
            Some(step) if step.target != current.id && !step.fields.deleted => {
                Ok(self.load(step.target).await?)
            }
            _ => Ok(current),
        }
    }

    /// The plan or task that a text names, or the task with a step that it names, and whether it is a step: models give the
    /// title of a step where its task belongs.
    pub(super) async fn named_target_or_step(
        &mut self,
        text: &str,
        agent: &str,
    ) -> Result<(TargetRow, bool), LeanError> {
        let error = match self.named_target(text, None).await {
            Err(error) if error.code() == WorkErrorCode::UnknownId => error,
            found => return Ok((found?, false)),
        };
        let Some(current) = self.current_task(agent).await? else { return Err(error) };
        if StepName::parse(text) != StepName::Title {
            return Err(error);
        }
        if self.has_titled_step(&current, text).await? {
            return Ok((current, true));
        }
        match self.titled_step(&current, text).await? {
            Some(step) => Ok((self.load(step.target).await?, true)),
            None => Err(error),
        }
    }

    async fn has_titled_step(&mut self, task: &TargetRow, text: &str) -> Result<bool, LeanError> {
        let own = step::all(self.tx, self.ws.id, task.id).await?;
        Ok(matching(&titles(&own), text) != Match::None)
    }

    async fn titled_step(&mut self, current: &TargetRow, text: &str) -> Result<Option<StepRow>, LeanError> {
        if self.has_titled_step(current, text).await? {
            return Ok(None);
        }
        for status in [Status::Active, Status::Todo, Status::Done] {
            let mut steps = step::of_tasks(self.tx, self.ws.id, status.as_str(), COMPARED).await?;
            match matching(&titles(&steps), text) {
                Match::None => {}
                Match::One(at) => return Ok(Some(steps.swap_remove(at))),
                Match::Several(found) => {
                    let first = steps[found[0]].target;
                    if found.iter().all(|&at| steps[at].target == first) {
                        return Ok(Some(steps.swap_remove(found[0])));
                    }
                    return Err(ambiguous(&steps, &found, text));
                }
            }
        }
        Ok(None)
    }
}

fn titles(steps: &[StepRow]) -> Vec<&str> {
    steps.iter().map(|step| step.fields.title.as_str()).collect()
}

fn ambiguous(steps: &[StepRow], found: &[usize], text: &str) -> LeanError {
    let shown = found.iter().take(NAMED).map(|&at| {
        let StepRow { target, fields, .. } = &steps[at];
        format!("{target} step {} {}", position(&fields.path), excerpt(&fields.title, 60))
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    let first = &steps[found[0]];
    let call = json!({"id": first.target, "step": position(&first.fields.path), "done": true});
    LeanError::new(format!("{} steps match {}: {shown}", found.len(), quoted(text)))
        .call(LeanTool::TaskUpdate, call)
}
