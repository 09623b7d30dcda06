//! `task_update`: closes steps, adds notes and steps, sets status and fields; one call may do several.

use serde_json::{Map, Value, json};

use super::check::Check;
use super::closing::{close, closing, is_all, record_commit};
use super::markdown_list::ListItem;
use super::natural::{self, Fields, Flag, Status as Word};
use super::reference::{Named, parse, position};
use super::task_add::{priority, step_input};
use super::task_show::task_name;
use super::task_text::{TaskView, one_line};
use super::{LeanAnswer, LeanCaller, LeanError, LeanTool};
use crate::catalog::WorkTool;
use crate::error::WorkErrorCode;
use crate::id::{TargetId, TargetKind};
use crate::name::quoted;
use crate::plan::step;
use crate::plan::target::{Status, TargetRow};
use crate::work_call::WorkCall;

#[derive(Debug, Clone)]
pub(super) struct Args {
    id: Option<String>,
    steps: Vec<String>,
    done: Option<bool>,
    note: Option<String>,
    status: Option<Word>,
    new_steps: Vec<ListItem>,
    /// Arguments of `tasks_edit`.
    edit: Map<String, Value>,
    after: Vec<String>,
}

impl Args {
    pub(super) fn read(fields: &mut Fields) -> Result<Self, LeanError> {
        let id = task_name(fields);
        let mut steps =
            step_names(fields.text(&["step", "stepid", "stepnumber", "path", "substep", "stepname"]));
        let done = match fields.flag(&["done", "completed", "complete", "finished", "checked", "closed"]) {
            // `done: "step 2"`
            Some(Flag::Text(text)) => {
                if steps.is_empty() {
                    steps = step_names(Some(text));
                }
                Some(true)
            }
            flag => flag.map(|flag| flag.is_on()),
        };
        let word = fields.text(&["status", "state"]);
        let status = word
            .as_ref()
            .map(|word| natural::status(word).ok_or_else(|| unknown_status(id.as_deref(), word)));
        let status = status.transpose()?;
        let mut new_steps = fields.steps(&["steps", "addsteps", "newsteps", "addstep", "subtasks", "todos"]);
        if (done.is_some() || status.is_some()) && steps.is_empty() && !new_steps.is_empty() {
            // `steps` beside `done` are the steps that are done.
            steps = new_steps.drain(..).map(|item| item.title).collect();
        }
        let mut edit = Map::new();
        for (field, names) in [
            ("title", &["title", "name", "newtitle", "rename"][..]),
            ("description", &["description", "about"]),
            ("contract", &["contract", "goal", "why"]),
        ] {
            edit.extend(fields.text(names).map(|text| (field.to_owned(), json!(text))));
        }
        let rank = fields.text(&["priority"]).and_then(|word| priority(&word));
        edit.extend(rank.map(|rank| ("priority".to_owned(), json!(rank))));
        let tags = fields.texts(&["tags", "labels"]);
        if !tags.is_empty() {
            edit.insert("tags".into(), json!(tags));
        }
        let note = fields.text(&[
            "note", "notes", "comment", "text", "message", "progress", "summary", "reason", "content",
            "details", "result", "blocker",
        ]);
        let after = fields.texts(&["after", "dependson", "blockedby", "needs"]);
        Ok(Self { id, steps, done, note, status, new_steps, edit, after })
    }

    fn closes(&self) -> bool {
        self.done == Some(true) || (self.done.is_none() && self.status == Some(Word::Done))
    }

    /// Whether a step can be meant: only a task has what the other fields change. Nothing is removed on a guess.
    fn fits_a_step(&self) -> bool {
        let removes = self.status == Some(Word::Cancelled);
        self.edit.is_empty() && self.new_steps.is_empty() && self.after.is_empty() && !removes
    }

    fn reopens(&self) -> bool {
        let reopening = matches!(self.status, Some(Word::Open | Word::Todo | Word::Active));
        self.done == Some(false) || (self.done.is_none() && !self.steps.is_empty() && reopening)
    }
}

fn unknown_status(id: Option<&str>, word: &str) -> LeanError {
    let mut call = json!({"status": "active"});
    if let Some(id) = id {
        call["id"] = json!(id.chars().take(100).collect::<String>());
    }
    LeanError::new(format!("{} is not a status (todo, active, done, blocked)", quoted(word)))
        .call(LeanTool::TaskUpdate, call)
}

/// `1, 2` and `1 and 2` are two steps; a title with a comma is one.
fn step_names(given: Option<String>) -> Vec<String> {
    let Some(text) = given else { return Vec::new() };
    let parts: Vec<&str> =
        text.split([',', '\n', '&']).flat_map(|part| part.split(" and ")).map(str::trim).collect();
    let is_number = |part: &&str| {
        let number = part.to_lowercase();
        let number =
            number.trim_start_matches("steps").trim_start_matches("step").trim_start_matches([' ', '#']);
        !number.is_empty()
            && number.chars().all(|one| one.is_ascii_digit() || one == '.' || one == ':' || one == 's')
    };
    if parts.len() > 1 && parts.iter().all(is_number) || text.contains('\n') {
        return parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(|part| part.trim_start_matches("steps ").to_owned())
            .collect();
    }
    vec![text]
}

/// The task that an update is about, and the step that its id names.
async fn task_of(
    call: &mut WorkCall<'_>,
    args: &Args,
    caller: &LeanCaller,
) -> Result<(TargetRow, Vec<String>), LeanError> {
    let mut steps = args.steps.clone();
    let row = match &args.id {
        Some(name) => {
            if let (Named::Id(_), Some(step)) = parse(name)
                && steps.is_empty()
            {
                steps.push(step.to_owned());
            }
            if steps.is_empty() && args.fits_a_step() {
                let (row, is_step) = call.named_target_or_step(name, &caller.agent).await?;
                steps.extend(is_step.then(|| name.clone()));
                row
            } else {
                call.named_target(name, None).await?
            }
        }
        None => {
            let current = call.current_task(&caller.agent).await?.ok_or_else(|| {
                LeanError::new("there is no task yet")
                    .lead("to add one")
                    .call(LeanTool::TaskAdd, json!({"title": "…"}))
            })?;
            match steps.first().filter(|name| !is_all(name)) {
                Some(name) => call.task_with_step(current, name).await?,
                None => current,
            }
        }
    };
    Ok((row, steps))
}

/// The checks of the steps that an update would close.
pub(super) async fn checks(
    call: &mut WorkCall<'_>,
    args: &Args,
    caller: &LeanCaller,
) -> Result<Vec<Check>, LeanError> {
    if !args.closes() {
        return Ok(Vec::new());
    }
    let (row, names) = task_of(call, args, caller).await?;
    let steps = closing(call, &row, &names).await?;
    let open = steps.iter().filter(|step| !step.fields.completed);
    let mut checks: Vec<Check> =
        open.flat_map(|step| Check::of_step(&step.fields)).map(|(_, check)| check).collect();
    checks.sort();
    checks.dedup();
    Ok(checks)
}

pub(super) async fn run(
    call: &mut WorkCall<'_>,
    args: &Args,
    caller: &LeanCaller,
) -> Result<LeanAnswer, LeanError> {
    let (row, names) = task_of(call, args, caller).await?;
    let id = row.id;
    let was_done = row.fields.status == Status::Done;
    let mut said = Vec::new();
    let mut refused = Vec::new();
    edit(call, args, &row, &mut said).await?;
    if !args.new_steps.is_empty() {
        let steps: Vec<Value> = args.new_steps.iter().map(step_input).collect();
        call.tool(WorkTool::TasksDecompose, json!({"task": id, "steps": steps})).await?;
        said.push(format!("{} added", count(steps.len(), "step")));
    }
    let row = call.load(id).await?;
    // A step that does not exist is an error, also if nothing is to be done with it.
    for name in names.iter().filter(|name| !is_all(name)) {
        call.named_step(&row, name).await?;
    }
    let is_blocking = matches!(args.status, Some(Word::Blocked));
    if let Some(note) = args.note.as_ref().filter(|_| !is_blocking) {
        let step = match &names[..] {
            [name] if !is_all(name) => Some(call.named_step(&row, name).await?.id),
            _ => None,
        };
        let noted =
            call.tool(WorkTool::TasksNote, json!({"task": id, "step_id": step, "note": note})).await?;
        said.push(format!("noted #{}", noted["note_seq"]));
    }
    if args.closes() {
        close(call, &row, &names, caller, &mut said, &mut refused).await?;
    } else if args.reopens() {
        reopen(call, &row, &names, &mut said).await?;
    }
    if let Some(word) = args.status.filter(|word| *word != Word::Done) {
        set_status(call, args, id, &names, word, &mut said).await?;
    }
    let Ok(row) = call.load(id).await else {
        // Cancelled.
        return Ok(LeanAnswer::new(format!("{id}: {}", said.join("; ")), json!({"id": id, "deleted": true})));
    };
    if row.fields.status == Status::Done && !was_done {
        record_commit(call, &row, caller).await?;
    }
    let view = TaskView::read(call, row).await?;
    Ok(answer(call, &view, said, refused))
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn answer(call: &WorkCall<'_>, view: &TaskView, said: Vec<String>, refused: Vec<String>) -> LeanAnswer {
    let mut lines = Vec::new();
    if !said.is_empty() {
        lines.push(format!("{}: {}", view.row.id, said.join("; ")));
    }
    let is_refused = !refused.is_empty();
    lines.extend(refused);
    if said.is_empty() && !is_refused {
        lines.push("nothing to change".to_owned());
    }
    lines.push(view.head(call.now));
    if let Some(step) = view.open_step() {
        lines.push(format!(
            "open step: {} {}",
            position(&step.fields.path),
            one_line(&step.fields.title, 200)
        ));
    }
    if !is_refused {
        lines.extend(view.next_call().map(|call| format!("next: {call}")));
    }
    let mut data = view.data();
    data["refused"] = json!(is_refused);
    LeanAnswer::new(lines.join("\n"), data)
}

async fn edit(
    call: &mut WorkCall<'_>,
    args: &Args,
    row: &TargetRow,
    said: &mut Vec<String>,
) -> Result<(), LeanError> {
    let mut edit = args.edit.clone();
    if !args.after.is_empty() {
        let mut after = row.fields.depends_on.clone();
        for name in &args.after {
            after.push(call.named_target(name, Some(TargetKind::Task)).await?.id);
        }
        edit.insert("depends_on".into(), json!(after));
    }
    if edit.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = edit.keys().cloned().collect();
    edit.insert("task".into(), json!(row.id));
    call.tool(WorkTool::TasksEdit, Value::Object(edit)).await?;
    said.push(format!("{} set", names.join(", ").replace("depends_on", "after")));
    Ok(())
}

async fn reopen(
    call: &mut WorkCall<'_>,
    row: &TargetRow,
    names: &[String],
    said: &mut Vec<String>,
) -> Result<(), LeanError> {
    if names.is_empty() {
        return set_target_status(call, row.id, "active", said).await;
    }
    for name in names {
        let step = call.named_step(row, name).await?;
        let at = position(&step.fields.path);
        if !step.fields.completed {
            said.push(format!("step {at} is open"));
            continue;
        }
        let ops = json!([{"op": "set", "field": "completed", "value": false}]);
        call.tool(WorkTool::TasksPatch, json!({"task": row.id, "step_id": step.id, "ops": ops})).await?;
        said.push(format!("step {at} reopened"));
    }
    Ok(())
}

async fn set_status(
    call: &mut WorkCall<'_>,
    args: &Args,
    id: TargetId,
    names: &[String],
    word: Word,
    said: &mut Vec<String>,
) -> Result<(), LeanError> {
    let row = call.load(id).await?;
    let step = match names {
        [name] if !is_all(name) => Some(call.named_step(&row, name).await?),
        _ => None,
    };
    let step_id = step.as_ref().map(|step| step.id);
    match word {
        // `done` has decided already.
        _ if args.done.is_some() && !matches!(word, Word::Blocked | Word::Unblocked) => Ok(()),
        Word::Active if step.is_some() => {
            if row.fields.status == Status::Todo {
                set_target_status(call, id, "active", said).await?;
            }
            Ok(())
        }
        Word::Todo | Word::Open if step.is_some() => Ok(()),
        Word::Active => set_target_status(call, id, "active", said).await,
        Word::Todo => set_target_status(call, id, "todo", said).await,
        Word::Open if row.fields.status == Status::Done => set_target_status(call, id, "active", said).await,
        Word::Open => {
            said.push(format!("is {}", row.fields.status.as_str()));
            Ok(())
        }
        Word::Blocked | Word::Unblocked => {
            let is_blocked = word == Word::Blocked;
            let mut arguments = json!({"task": id, "step_id": step_id, "blocked": is_blocked});
            if let Some(reason) = args.note.as_ref().filter(|_| is_blocked) {
                arguments["reason"] = json!(reason);
            }
            call.tool(WorkTool::TasksBlock, arguments).await?;
            said.push(if is_blocked { "blocked" } else { "not blocked" }.to_owned());
            Ok(())
        }
        Word::Cancelled => {
            call.tool(WorkTool::TasksDelete, json!({"task": id, "step_id": step_id})).await?;
            said.push("cancelled and removed from the lists".to_owned());
            Ok(())
        }
        Word::Ready | Word::All => Err(unknown_status(Some(&id.to_string()), "ready")),
        Word::Done => Ok(()),
    }
}

async fn set_target_status(
    call: &mut WorkCall<'_>,
    id: TargetId,
    status: &str,
    said: &mut Vec<String>,
) -> Result<(), LeanError> {
    let row = call.load(id).await?;
    if row.fields.status.as_str() != status
        && let Err(error) = call.tool(WorkTool::TasksEdit, json!({"task": id, "status": status})).await
    {
        let steps = step::all(call.tx, call.ws.id, id).await?;
        return Err(match steps.last() {
            Some(last) if error.code() == WorkErrorCode::InvalidInput => {
                LeanError::new(format!("all steps of {id} are done")).lead("reopen one").call(
                    LeanTool::TaskUpdate,
                    json!({"id": id, "step": position(&last.fields.path), "done": false}),
                )
            }
            _ => error.into(),
        });
    }
    said.push(status.to_owned());
    Ok(())
}
