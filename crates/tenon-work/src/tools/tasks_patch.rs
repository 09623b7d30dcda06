//! `tasks_patch`: set, unset, append to or remove from any field of a plan, task or step.
//!
//! Fields are changed by name in the JSON of the record, which is then parsed again, so every value must have
//! the type of the field. The same rules apply as for the tools that change one field.

use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{self, TargetAnswer};
use super::tasks_edit;
use crate::arguments::NonEmpty;
use crate::error::WorkError;
use crate::limits;
use crate::name::quoted;
use crate::plan::gate;
use crate::plan::mutation::{Mutation, Undoable};
use crate::plan::record::{Fields, Record};
use crate::work_call::WorkCall;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: Option<String>,
    step_id: Option<String>,
    path: Option<String>,
    ops: NonEmpty<Op>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Op {
    op: OpKind,
    field: String,
    value: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OpKind {
    Set,
    Unset,
    Append,
    Remove,
}

const OF_TARGET: &[&str] = &[
    "title",
    "description",
    "contract",
    "contract_data",
    "status",
    "priority",
    "tags",
    "depends_on",
    "blockers",
    "claim",
];

const OF_STEP: &[&str] =
    &["title", "success_criteria", "tests", "blockers", "checkpoints", "confirmed", "completed"];

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<TargetAnswer, WorkError> {
    limits::count("ops", args.ops.0.len(), limits::PER_CALL)?;
    let target = call.target(args.task.as_deref()).await?;
    let step = call.find_step(target.id, args.step_id.as_deref(), args.path.as_deref()).await?;
    let old = target.fields.clone();
    let mut mutation = Mutation::of(target, call.request.tool, call.now, Undoable::Yes);
    let step_id = step.as_ref().map(|step| step.id);
    let path = step.as_ref().map(|step| step.fields.path.clone());
    match step {
        None => {
            *mutation.target() = patched(call, &old, OF_TARGET, &args.ops.0)?;
            tasks_edit::settle(call, &mut mutation, &old).await?;
        }
        Some(row) => {
            let before = row.fields.clone();
            let mut after = patched(call, &before, OF_STEP, &args.ops.0)?;
            after.settle()?;
            after.reset_confirmations(&before);
            let closing = after.completed && !before.completed;
            let id = row.id;
            *mutation.step(row) = after;
            if closing {
                let row = mutation.step_row(id).clone();
                gate::check_step(call, &row).await?;
            }
            gate::reopen(call, &mut mutation, id).await?;
            mutation.settle_status(call.tx, call.ws.id, true).await?;
        }
    }
    let changed = mutation.is_changed();
    if changed {
        mutation.log(call.tx, &mut call.ws, "patched", path.as_ref()).await?;
        mutation.save(call.tx, &mut call.ws).await?;
    } else {
        call.warn("nothing changed");
    }
    Ok(answer::of_target(&mutation, call, step_id))
}

fn patched<R: Record>(
    call: &mut WorkCall<'_>,
    record: &R,
    allowed: &[&str],
    ops: &[Op],
) -> Result<R, WorkError> {
    let mut fields = record.fields();
    for (index, op) in ops.iter().enumerate() {
        let fault = |failure: WorkError| failure.with("index", index);
        if !allowed.contains(&op.field.as_str()) {
            return Err(fault(
                WorkError::invalid(format!("{} cannot be patched here", quoted(&op.field)))
                    .recovery(format!("fields: {}", allowed.join(", "))),
            ));
        }
        let changed = apply::<R>(&mut fields, op).map_err(fault)?;
        if !changed {
            call.warn(format!(
                "op {index}: nothing to {}",
                if op.op == OpKind::Remove { "remove" } else { "change" }
            ));
        }
    }
    // Each op was checked on its own already.
    R::default().with(&fields).map_err(|fault| {
        WorkError::invalid(fault.to_string()).recovery("give each field a value with the right type")
    })
}

/// Applies one op; true if it changed the field.
fn apply<R: Record>(fields: &mut Fields, op: &Op) -> Result<bool, WorkError> {
    let name = &op.field;
    if name == "claim" && op.op != OpKind::Unset {
        return Err(WorkError::invalid("a claim can only be unset here")
            .recovery("call tasks_next with claim and agent"));
    }
    let old = fields.get(name).cloned().unwrap_or(Value::Null);
    let wanted = || {
        op.value.clone().ok_or_else(|| WorkError::invalid("the op needs a value").recovery("give `value`"))
    };
    let new = match op.op {
        OpKind::Unset => R::default().fields().remove(name).unwrap_or(Value::Null),
        OpKind::Set => canonical::<R>(name, wanted()?)?,
        OpKind::Append | OpKind::Remove => {
            let Value::Array(mut items) = old.clone() else {
                return Err(WorkError::invalid(format!("`{name}` is not a list"))
                    .recovery("append and remove work on lists; use set"));
            };
            let value = canonical::<R>(name, json!([wanted()?]))?;
            let value = value.as_array().and_then(|list| list.first().cloned()).unwrap_or(Value::Null);
            if op.op == OpKind::Append {
                items.push(value);
            } else {
                items.retain(|item| *item != value);
            }
            canonical::<R>(name, Value::Array(items))?
        }
    };
    let changed = new != old;
    fields.insert(name.clone(), new);
    Ok(changed)
}

/// A value in the form of the field; an error if it has another type.
fn canonical<R: Record>(name: &str, value: Value) -> Result<Value, WorkError> {
    let record = R::default().with(&Fields::from_iter([(name.to_owned(), value)]));
    let record = record.map_err(|fault| {
        WorkError::invalid(format!("`{name}`: {fault}")).recovery("give a value with the right type")
    })?;
    Ok(record.fields().remove(name).unwrap_or(Value::Null))
}
