//! `task_update`: closes steps, adds notes and steps, sets status and fields; one call may do several.

use serde_json::{Map, Value, json};

use super::check::{self, Check};
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
use crate::memory::entry::{self, NewNote};
use crate::memory::{NOTES, branch};
use crate::name::quoted;
use crate::plan::step::{self, StepRow};
use crate::plan::target::{Status, TargetRow};
use crate::tools::checkpoints::confirming;
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
            call.named_target(name, None).await?
        }
        None => call.current_task(&caller.agent).await?.ok_or_else(|| {
            LeanError::new("there is no task yet; to add one").call(LeanTool::TaskAdd, json!({"title": "…"}))
        })?,
    };
    Ok((row, steps))
}

/// The steps that an update closes, children before parents.
async fn closing(
    call: &mut WorkCall<'_>,
    row: &TargetRow,
    names: &[String],
) -> Result<Vec<StepRow>, LeanError> {
    let all = step::all(call.tx, call.ws.id, row.id).await?;
    let open: Vec<&StepRow> = all.iter().filter(|step| !step.fields.completed).collect();
    if names.iter().any(|name| is_all(name)) || (names.is_empty() && open.len() == 1) {
        return Ok(open.into_iter().cloned().collect_post_order());
    }
    if names.is_empty() && open.len() > 1 {
        let list = open
            .iter()
            .take(6)
            .map(|step| format!("{} {}", position(&step.fields.path), one_line(&step.fields.title, 50)));
        let list = list.collect::<Vec<_>>().join(", ");
        return Err(LeanError::new(format!(
            "{} has {} open steps: {list}; name the step that is done, or close all",
            row.id,
            open.len()
        ))
        .code_of(WorkErrorCode::CheckpointsNotConfirmed)
        .call(LeanTool::TaskUpdate, json!({"id": row.id, "step": "all", "done": true})));
    }
    let mut steps = Vec::new();
    for name in names {
        steps.push(call.named_step(row, name).await?);
    }
    Ok(steps.into_iter().collect_post_order())
}

trait PostOrder {
    fn collect_post_order(self) -> Vec<StepRow>;
}

impl<I: Iterator<Item = StepRow>> PostOrder for I {
    /// Children before their parents, otherwise in the order of the tree; each once.
    fn collect_post_order(self) -> Vec<StepRow> {
        let mut steps: Vec<StepRow> = self.collect();
        steps.sort_by(|one, other| {
            let (one, other) = (&one.fields.path, &other.fields.path);
            match (one.is_below(other), other.is_below(one)) {
                (true, _) => std::cmp::Ordering::Less,
                (_, true) => std::cmp::Ordering::Greater,
                _ => one.cmp(other),
            }
        });
        steps.dedup_by(|one, other| one.id == other.id);
        steps
    }
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

fn is_all(name: &str) -> bool {
    matches!(name.to_lowercase().as_str(), "all" | "all steps" | "everything" | "*")
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

async fn close(
    call: &mut WorkCall<'_>,
    row: &TargetRow,
    names: &[String],
    caller: &LeanCaller,
    said: &mut Vec<String>,
    refused: &mut Vec<String>,
) -> Result<(), LeanError> {
    let steps = closing(call, row, names).await?;
    if steps.is_empty() {
        if row.fields.status == Status::Done {
            said.push("already done".to_owned());
        } else {
            call.tool(WorkTool::TasksEdit, json!({"task": row.id, "status": "done"})).await?;
            said.push("done".to_owned());
        }
        return Ok(());
    }
    for step in steps {
        let at = position(&step.fields.path);
        if step.fields.completed {
            said.push(format!("step {at} was already done"));
            continue;
        }
        let verdict = check::apply(call, &step, &caller.checks).await?;
        if !verdict.refused.is_empty() {
            refused.extend(verdict.refused);
            continue;
        }
        close_step(call, &step).await?;
        let mut facts: Vec<String> = verdict.passed.iter().map(|check| format!("`{check}` passed")).collect();
        facts.extend(verdict.unchecked);
        let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
        said.push(format!("step {at} done{facts}"));
    }
    Ok(())
}

/// Confirms what is missing and closes a step.
async fn close_step(call: &mut WorkCall<'_>, step: &StepRow) -> Result<(), LeanError> {
    let checkpoints = confirming(&step.fields.missing());
    let arguments = json!({"task": step.target, "step_id": step.id, "checkpoints": checkpoints});
    let closed = call.tool(WorkTool::TasksCloseStep, arguments).await;
    match closed {
        Ok(_) => Ok(()),
        Err(error) if error.code() == WorkErrorCode::CheckpointsNotConfirmed => {
            let at = position(&step.fields.path);
            let mut open = step::open_below(call.tx, call.ws.id, step.target, &step.fields.path, 24).await?;
            let child = step::take_first_leaf(&mut open).map(|child| position(&child.fields.path));
            let failure = LeanError::new(format!("step {at} of {} has open steps below it", step.target));
            let child = child.unwrap_or(at);
            Err(failure
                .code_of(WorkErrorCode::CheckpointsNotConfirmed)
                .call(LeanTool::TaskUpdate, json!({"id": step.target, "step": child, "done": true})))
        }
        Err(error) => Err(error.into()),
    }
}

/// Closes the steps of a new task that its list marks as done.
pub(super) async fn close_marked(
    call: &mut WorkCall<'_>,
    id: TargetId,
    items: &[ListItem],
) -> Result<(), LeanError> {
    fn marks<'a>(items: &'a [ListItem], into: &mut Vec<&'a ListItem>) {
        for item in items {
            into.push(item);
            marks(&item.items, into);
        }
    }
    // In the order of the tree, as the steps were added.
    let mut marked = Vec::new();
    marks(items, &mut marked);
    if !marked.iter().any(|item| item.done) {
        return Ok(());
    }
    let steps = step::all(call.tx, call.ws.id, id).await?;
    let done = steps.into_iter().zip(marked).filter(|(_, item)| item.done).map(|(step, _)| step);
    for step in done.collect_post_order() {
        let mut open = step::open_below(call.tx, call.ws.id, id, &step.fields.path, 24).await?;
        // A closed item with open ones below it stays open, as the rules want.
        if step::take_first_leaf(&mut open).is_none() {
            close_step(call, &step).await?;
        }
    }
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
                LeanError::new(format!("all steps of {id} are done; reopen one")).call(
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

/// Notes at which commit a task was closed.
async fn record_commit(
    call: &mut WorkCall<'_>,
    row: &TargetRow,
    caller: &LeanCaller,
) -> Result<(), LeanError> {
    let Some(head) = &caller.head else { return Ok(()) };
    let commit = head.commit.as_deref();
    let short = commit.map_or("no commit", |commit| &commit[..commit.len().min(12)]);
    let branch_name = head.branch.as_deref();
    let content = match branch_name {
        Some(branch) => format!("{short} on {branch}"),
        None => format!("{short}, detached"),
    };
    let note = NewNote {
        branch: branch::number_of(row.id),
        doc: NOTES,
        format: Some(entry::COMMIT),
        meta: Some(json!({"task": row.id, "commit": commit, "branch": branch_name})),
        content: &content,
        ..NewNote::default()
    };
    entry::append(call.tx, &mut call.ws, call.now, &note).await?;
    Ok(())
}
