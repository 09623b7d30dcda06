//! Undo and redo: the `before` fields of an operation restored, or the `after` fields applied again.
//!
//! Both are changes like any other, with their own event. Neither overwrites newer work: every field must still be as
//! the operation left it (undo) or found it (redo).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::event::{self, Event, UndoState};
use super::gate;
use super::mutation::{Mutation, Undoable};
use super::record::{Fields, Record};
use super::step::{self, StepRow};
use super::target::{self, Status, TargetRow};
use crate::catalog::WorkTool;
use crate::error::{Priority, Proposal, WorkError, WorkErrorCode};
use crate::id::{OperationId, StepId, TargetId};
use crate::work_call::{WorkCall, unknown_target};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Undo,
    Redo,
}

/// What an operation did to one record. `before` is missing for records that it created.
struct Effect {
    before: Option<Fields>,
    after: Fields,
}

/// Undoes or redoes one operation and returns it with the mutation that did so.
pub(crate) async fn apply(
    call: &mut WorkCall<'_>,
    id: TargetId,
    direction: Direction,
) -> Result<(OperationId, Mutation), WorkError> {
    // A deleted target has a history too: undo restores it.
    let row = target::load(call.tx, call.ws.id, id).await?.ok_or_else(|| unknown_target(&id.to_string()))?;
    let was_deleted = row.fields.deleted;
    call.check_guard(&row)?;
    let operation = match direction {
        Direction::Undo => last(call, id).await?,
        Direction::Redo => next(call, id).await?,
    };
    let events = event::of_operation(call.tx, call.ws.id, operation.number).await?;
    let effects = effects(&events);
    let affected: BTreeSet<StepId> = effects.keys().filter_map(|name| name.parse().ok()).collect();
    let targets: Vec<TargetId> = effects.keys().filter_map(|name| name.parse().ok()).collect();
    let mut mutation = Mutation::of(row, call.request.tool, call.now, Undoable::No);
    for (name, effect) in effects {
        if let Ok(step) = name.parse::<StepId>() {
            let before = apply_to_step(call, &mut mutation, step, &effect, direction).await?;
            check_tree(call, &mutation, &before, step, &affected).await?;
        } else if let Ok(target) = name.parse::<TargetId>() {
            apply_to_target(call, &mut mutation, target, &effect, direction, &targets).await?;
        }
    }
    let closing = targets.iter().copied().filter(|&plan| mutation.closes(plan));
    for plan in closing.collect::<Vec<_>>() {
        // Tasks may have been opened since; those in the same operation are handled by it.
        let tasks = target::children(call.tx, call.ws.id, plan).await?;
        let open = |task: &&TargetRow| task.fields.status != Status::Done && !targets.contains(&task.id);
        match tasks.iter().find(open) {
            Some(task) if plan == id => return Err(conflict(id, format!("{} is open", task.id))),
            Some(_) => mutation.keep_open(plan),
            None => {}
        }
    }
    call.clear_focus_on(targets.into_iter().filter(|target| !mutation.has_live(*target)));
    if was_deleted && mutation.row().fields.deleted {
        return Err(unknown_target(&id.to_string()));
    }
    let undo_state = match direction {
        Direction::Undo => UndoState::Undone,
        Direction::Redo => UndoState::Done,
    };
    event::set_undo_state(call.tx, call.ws.id, operation.number, undo_state).await?;
    mutation.row_mut().undone = event::undone_last(call.tx, call.ws.id, id).await?.is_some();
    let op_id = OperationId(operation.number.unsigned_abs());
    let kind = match direction {
        Direction::Undo => "undone",
        Direction::Redo => "redone",
    };
    let extra = Map::from_iter([("op_id".to_owned(), json!(op_id))]);
    mutation.log_with(call.tx, &mut call.ws, kind, operation.path.as_ref(), extra).await?;
    mutation.save(call.tx, &mut call.ws).await?;
    let undoing = direction == Direction::Undo;
    if undoing && events.iter().any(|event| event.kind == "note_added" || event.kind == "evidence_added") {
        call.warn("the entry stays in the notes: entries are never removed");
    }
    Ok((op_id, mutation))
}

async fn last(call: &mut WorkCall<'_>, id: TargetId) -> Result<Event, WorkError> {
    let found = event::newest_operation(call.tx, call.ws.id, id, UndoState::Done).await?;
    found.ok_or_else(|| conflict(id, format!("{id} has nothing to undo")))
}

async fn next(call: &mut WorkCall<'_>, id: TargetId) -> Result<Event, WorkError> {
    if let Some(found) = event::undone_last(call.tx, call.ws.id, id).await? {
        return Ok(found);
    }
    let discarded = event::newest_operation(call.tx, call.ws.id, id, UndoState::Discarded).await?;
    Err(conflict(
        id,
        match discarded {
            Some(_) => format!("{id} was changed after the undo, so it cannot be redone"),
            None => format!("{id} has nothing to redo"),
        },
    ))
}

fn conflict(id: TargetId, message: String) -> WorkError {
    WorkError::new(WorkErrorCode::Conflict, message).recovery("look at tasks_history").propose(Proposal::new(
        WorkTool::TasksHistory,
        json!({"task": id}),
        "See what can be undone and redone",
        Priority::High,
    ))
}

/// The events of an operation, summed up per record.
fn effects(events: &[Event]) -> BTreeMap<String, Effect> {
    let mut effects: BTreeMap<String, Effect> = BTreeMap::new();
    for event in events {
        let after = event.payload["after"].as_object().into_iter().flatten();
        for (id, fields) in after {
            let fields = fields.as_object().cloned().unwrap_or_default();
            let before = event.payload["before"][id].as_object().cloned();
            match effects.get_mut(id) {
                None => {
                    effects.insert(id.clone(), Effect { before, after: fields });
                }
                Some(effect) => {
                    if let (Some(known), Some(before)) = (&mut effect.before, before) {
                        for (name, value) in before {
                            known.entry(name).or_insert(value);
                        }
                    }
                    effect.after.extend(fields);
                }
            }
        }
    }
    for effect in effects.values_mut() {
        // Revisions only grow.
        effect.after.remove("revision");
        effect.before.as_mut().map(|before| before.remove("revision"));
    }
    effects
}

/// A record with the effect undone or redone; a conflict if something else changed it.
fn with_effect<R: Record>(
    id: TargetId,
    name: &str,
    record: &R,
    effect: &Effect,
    direction: Direction,
) -> Result<R, WorkError> {
    let made = Fields::from_iter([("deleted".to_owned(), json!(false))]);
    let unmade = Fields::from_iter([("deleted".to_owned(), json!(true))]);
    let (expected, wanted) = match (&effect.before, direction) {
        (Some(before), Direction::Undo) => (effect.after.clone(), before.clone()),
        (Some(before), Direction::Redo) => (before.clone(), effect.after.clone()),
        (None, direction) => {
            // A created record must be unchanged, except for whether it is deleted.
            let mut expected = R::default().fields();
            expected.extend(effect.after.clone());
            expected.remove("revision");
            let undo = direction == Direction::Undo;
            expected.insert("deleted".into(), json!(!undo));
            (expected, if undo { unmade } else { made })
        }
    };
    let fields = record.fields();
    // A claim kept the task active through the undo, so there is nothing to redo about the status.
    let held = |field: &str| {
        direction == Direction::Redo && field == "status" && fields.get(field) == wanted.get(field)
    };
    for (field, value) in &expected {
        if fields.get(field) != Some(value) && !held(field) {
            return Err(conflict(id, format!("`{field}` of {name} has changed since"))
                .with("expected", shown(value))
                .with("actual", shown(fields.get(field).unwrap_or(&Value::Null))));
        }
    }
    record
        .with(&wanted)
        .map_err(|fault| WorkError::invalid(fault.to_string()).recovery("look at tasks_history"))
}

/// A value in an error; long ones are left out.
fn shown(value: &Value) -> Value {
    if value.to_string().len() > 200 { Value::Null } else { value.clone() }
}

/// Returns the step as it was.
async fn apply_to_step(
    call: &mut WorkCall<'_>,
    mutation: &mut Mutation,
    step_id: StepId,
    effect: &Effect,
    direction: Direction,
) -> Result<StepRow, WorkError> {
    let id = mutation.row().id;
    let row = step::by_id(call.tx, call.ws.id, step_id).await?;
    let row = row.ok_or_else(|| conflict(id, format!("{step_id} does not exist")))?;
    let fields = with_effect(id, &step_id.to_string(), &row.fields, effect, direction)?;
    *mutation.step(row.clone()) = fields;
    Ok(row)
}

/// A deleted step must not leave children, and a restored one needs its parent. Steps of the same operation do not
/// count; parents come before their children.
async fn check_tree(
    call: &mut WorkCall<'_>,
    mutation: &Mutation,
    before: &StepRow,
    step_id: StepId,
    affected: &BTreeSet<StepId>,
) -> Result<(), WorkError> {
    let id = mutation.row().id;
    let path = &before.fields.path;
    match (before.fields.deleted, mutation.step_row(step_id).fields.deleted) {
        (false, true) => {
            let below = step::below(call.tx, call.ws.id, before.target, path).await?;
            match below.iter().find(|below| !affected.contains(&below.id)) {
                Some(other) => Err(conflict(id, format!("{} was added below {step_id}", other.id))),
                None => Ok(()),
            }
        }
        (true, false) => {
            let Some(parent) = path.parent() else { return Ok(()) };
            let parent = step::by_path(call.tx, call.ws.id, before.target, &parent).await?;
            if parent.is_some_and(|parent| !parent.fields.deleted || affected.contains(&parent.id)) {
                return Ok(());
            }
            Err(conflict(id, format!("the step above {step_id} is deleted")))
        }
        _ => Ok(()),
    }
}

async fn apply_to_target(
    call: &mut WorkCall<'_>,
    mutation: &mut Mutation,
    other: TargetId,
    effect: &Effect,
    direction: Direction,
    affected: &[TargetId],
) -> Result<(), WorkError> {
    let id = mutation.row().id;
    let row = target::load(call.tx, call.ws.id, other).await?;
    let row: TargetRow = row.ok_or_else(|| conflict(id, format!("{other} does not exist")))?;
    let mut fields = with_effect(id, &other.to_string(), &row.fields, effect, direction)?;
    if fields.status == Status::Todo && fields.claim.as_ref().is_some_and(|claim| claim.is_live(call.now)) {
        // A claimed task stays active.
        fields.status = Status::Active;
    }
    if fields.deleted && !row.fields.deleted {
        // As with steps: a deleted plan must not leave tasks.
        let tasks = target::children(call.tx, call.ws.id, other).await?;
        if let Some(task) = tasks.iter().find(|task| !affected.contains(&task.id)) {
            return Err(conflict(id, format!("{} is under {other} now", task.id)));
        }
        gate::check_no_dependents(call, other, affected).await?;
    }
    if !fields.deleted && (row.fields.deleted || fields.depends_on != row.fields.depends_on) {
        for &needed in &fields.depends_on {
            let there = target::load(call.tx, call.ws.id, needed).await?;
            let restored = mutation.has_live(needed);
            if !restored && there.is_none_or(|row| row.fields.deleted) {
                return Err(conflict(id, format!("{needed}, which {other} depends on, is deleted")));
            }
            if target::depends(call.tx, call.ws.id, needed, other).await? {
                return Err(conflict(id, format!("{other} and {needed} would wait for each other")));
            }
        }
    }
    if row.fields.deleted
        && !fields.deleted
        && other == id
        && let Some(parent) = fields.parent
    {
        let plan = target::load(call.tx, call.ws.id, parent).await?;
        if plan.is_none_or(|plan| plan.fields.deleted) {
            return Err(conflict(id, format!("{parent} is deleted; undo that first")));
        }
    }
    *mutation.other(row) = fields;
    Ok(())
}
