//! `tasks_edit`: fields of a plan or task.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::answer::{self, TargetAnswer};
use super::dependencies;
use crate::error::WorkError;
use crate::id::TargetKind;
use crate::name::Tag;
use crate::plan::mutation::{Mutation, Undoable};
use crate::plan::target::{Status, Target, TaskPriority};
use crate::plan::{gate, step};
use crate::work_call::WorkCall;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: Option<String>,
    title: Option<String>,
    description: Option<String>,
    contract: Option<String>,
    contract_data: Option<Map<String, Value>>,
    priority: Option<TaskPriority>,
    tags: Option<Vec<String>>,
    depends_on: Option<Vec<String>>,
    status: Option<Status>,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<TargetAnswer, WorkError> {
    let tags = args.tags.map(|tags| Tag::list(&tags)).transpose()?;
    let depends_on = args.depends_on.map(|ids| dependencies::parse(&ids)).transpose()?;
    let target = call.target(args.task.as_deref()).await?;
    let old = target.fields.clone();
    let mut mutation = Mutation::of(target, call.request.tool, call.now, Undoable::Yes);
    let new = mutation.target();
    new.title = args.title.unwrap_or(new.title.clone());
    new.description = args.description.or(new.description.take());
    new.contract = args.contract.or(new.contract.take());
    new.contract_data = args.contract_data.map(Value::Object).or(new.contract_data.take());
    new.priority = args.priority.unwrap_or(new.priority);
    new.tags = tags.unwrap_or(new.tags.clone());
    new.depends_on = depends_on.unwrap_or(new.depends_on.clone());
    new.status = args.status.unwrap_or(new.status);
    settle(call, &mut mutation, &old).await?;
    if !mutation.is_changed() {
        call.warn("nothing changed");
        return Ok(answer::of_target(&mutation, call, None));
    }
    mutation.log(call.tx, &mut call.ws, "edited", None).await?;
    mutation.save(call.tx, &mut call.ws).await?;
    Ok(answer::of_target(&mutation, call, None))
}

/// Checks the rules for changed fields of a target.
pub(super) async fn settle(
    call: &mut WorkCall<'_>,
    mutation: &mut Mutation,
    old: &Target,
) -> Result<(), WorkError> {
    let id = mutation.row().id;
    mutation.target().settle()?;
    let new = mutation.target().clone();
    if new.depends_on != old.depends_on {
        if id.kind == TargetKind::Plan {
            return Err(
                WorkError::invalid("plans have no dependencies").recovery("give depends_on for tasks")
            );
        }
        dependencies::check(call, Some(id), &new.depends_on).await?;
    }
    if new.status != old.status {
        if new.status == Status::Done {
            gate::check_target(call, id).await?;
        } else {
            let counts = step::counts(call.tx, call.ws.id, id).await?;
            if counts.total > 0 && counts.completed == counts.total {
                return Err(WorkError::invalid(format!("all steps of {id} are done, so it is done"))
                    .recovery("reopen a step with tasks_patch, or add one with tasks_decompose"));
            }
        }
    }
    Ok(())
}
