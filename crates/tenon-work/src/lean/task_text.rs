//! A task in short text: what `task_show` prints, and the summary for a new session.

use serde_json::{Value, json};

use super::reference::position;
use crate::graph::query;
use crate::graph::version::{Content, Version};
use crate::id::TargetId;
use crate::memory::branch::View;
use crate::memory::entry::{self, Entry};
use crate::memory::{GRAPH, NOTES, branch, card};
use crate::plan::radar;
use crate::plan::step::{self, StepRow};
use crate::plan::target::{self, Claim, Status, TargetRow, excerpt, time};
use crate::store::StoreError;
use crate::work_call::WorkCall;

/// How many of the newest notes and cards are read.
const NEWEST: usize = 8;

/// A task with everything that a summary needs.
pub(super) struct TaskView {
    pub row: TargetRow,
    pub plan: Option<TargetRow>,
    pub steps: Vec<StepRow>,
    pub waits_for: Vec<(TargetId, String)>,
    /// Newest first.
    pub notes: Vec<Entry>,
    pub cards: Vec<Version>,
    pub closed_at: Option<String>,
}

impl TaskView {
    pub(super) async fn read(call: &mut WorkCall<'_>, row: TargetRow) -> Result<Self, StoreError> {
        let (ws, id) = (call.ws.id, row.id);
        let plan = match row.fields.parent {
            Some(plan) => target::load(call.tx, ws, plan).await?,
            None => None,
        };
        let steps = step::all(call.tx, ws, id).await?;
        let waits_for = match row.fields.depends_on.is_empty() {
            true => Vec::new(),
            false => radar::waits_for(call.tx, ws, id).await?,
        };
        let view = View::of_target(id);
        let entries = entry::in_view(call.tx, ws, &view, None, NOTES, None, 4 * NEWEST).await?;
        let mut notes: Vec<Entry> = entries.into_iter().map(|(entry, _)| entry).collect();
        let is = |note: &Entry, format: &str| note.format.as_deref() == Some(format);
        let commit = notes.iter().find(|note| is(note, entry::COMMIT));
        let closed_at = commit.filter(|_| row.fields.status == Status::Done).map(|note| note.content.clone());
        let hidden = [entry::FORGOTTEN, entry::COMMIT, entry::EVIDENCE];
        notes.retain(|note| note.kind == "note" && !hidden.iter().any(|format| is(note, format)));
        notes.truncate(NEWEST);
        let mut cards = cards(call, &view, &id.graph_doc()).await?;
        if !cards.iter().any(|card| kind(card) == "decision") {
            // Without a decision about the task, the newest of the workspace.
            let main = View {
                parts: vec![branch::Part {
                    branch: branch::MAIN_NUMBER,
                    name: branch::MAIN.into(),
                    upto: i64::MAX,
                }],
            };
            let of_workspace = self::cards(call, &main, GRAPH).await?;
            cards.extend(of_workspace.into_iter().find(|card| kind(card) == "decision"));
        }
        Ok(Self { row, plan, steps, waits_for, notes, cards, closed_at })
    }

    pub(super) fn done(&self) -> usize {
        self.steps.iter().filter(|step| step.fields.completed).count()
    }

    /// The step to work on: the first open one whose children are done.
    pub(super) fn open_step(&self) -> Option<StepRow> {
        let mut open: Vec<StepRow> =
            self.steps.iter().filter(|step| !step.fields.completed).cloned().collect();
        step::take_first_leaf(&mut open)
    }

    /// `TASK-001 Fix the login (active, 1 of 3 steps done)`
    pub(super) fn head(&self, now: i64) -> String {
        let mut facts = vec![self.row.fields.status.as_str().to_owned()];
        if !self.steps.is_empty() {
            facts.push(format!("{} of {} steps done", self.done(), self.steps.len()));
        }
        facts.extend(live_claim(&self.row, now).map(claimed));
        let title = one_line(&self.row.fields.title, 200);
        format!("{} {title} ({})", self.row.id, facts.join(", "))
    }

    pub(super) fn data(&self) -> Value {
        let fields = &self.row.fields;
        json!({
            "id": self.row.id,
            "title": fields.title,
            "status": fields.status.as_str(),
            "plan": fields.parent,
            "steps": self.steps.iter().map(|step| json!({
                "step": position(&step.fields.path),
                "title": step.fields.title,
                "done": step.fields.completed,
            })).collect::<Vec<_>>(),
        })
    }

    /// Steps, one per line.
    pub(super) fn step_lines(&self) -> Vec<String> {
        let current = self.open_step().map(|step| step.id);
        let line = |step: &StepRow| {
            let fields = &step.fields;
            let mark = if fields.completed { "x" } else { " " };
            let arrow = if Some(step.id) == current { ">" } else { " " };
            let indent = "  ".repeat(fields.path.depth());
            let mut text = format!(
                "{arrow}{indent}{} [{mark}] {}",
                position(&fields.path),
                one_line(&fields.title, 200)
            );
            if !fields.completed {
                for (name, values) in [
                    ("criteria", &fields.success_criteria),
                    ("tests", &fields.tests),
                    ("blocked", &fields.blockers),
                ] {
                    for value in values.iter().filter(|value| **value != fields.title) {
                        text.push_str(&format!("\n {indent}    {name}: {}", one_line(value, 200)));
                    }
                }
            }
            text
        };
        self.steps.iter().map(line).collect()
    }

    /// What to do next, as a call.
    pub(super) fn next_call(&self) -> Option<String> {
        let id = self.row.id;
        if self.row.fields.status == Status::Done {
            return None;
        }
        Some(match self.open_step() {
            Some(step) => {
                let position = position(&step.fields.path);
                format!(r#"task_update {{"id":"{id}","step":"{position}","done":true}}"#)
            }
            None => format!(r#"task_update {{"id":"{id}","done":true}}"#),
        })
    }
}

async fn cards(call: &mut WorkCall<'_>, view: &View, doc: &str) -> Result<Vec<Version>, StoreError> {
    query::newest_of_types(call.tx, call.ws.id, view, doc, &card::TYPES, i64::MAX, NEWEST).await
}

/// The claim on a task, if it has an effect.
pub(super) fn live_claim(row: &TargetRow, now: i64) -> Option<&Claim> {
    row.fields.claim.as_ref().filter(|claim| claim.is_live(now) && row.fields.status != Status::Done)
}

/// `claimed by ada until 2026-01-02 03:04 UTC`
pub(super) fn claimed(claim: &Claim) -> String {
    let until = time(claim.expires_ms);
    let until = until.get(..16).unwrap_or(&until).replace('T', " ");
    format!("claimed by {} until {until} UTC", claim.agent)
}

/// The type of a card.
pub(super) fn kind(card: &Version) -> &str {
    match &card.content {
        Content::Node { kind, .. } => kind.as_str(),
        _ => "",
    }
}

/// `#12 decision: Use A: because of B`
pub(super) fn card_line(card: &Version, characters: usize) -> String {
    let Content::Node { kind, title, text, .. } = &card.content else { return String::new() };
    let says: Vec<&str> = [title.as_deref(), text.as_deref()].into_iter().flatten().collect();
    let says = match says[..] {
        [title, text] if text.starts_with(title) => text.to_owned(),
        _ => says.join(": "),
    };
    format!("#{} {}: {}", card.seq, kind.as_str(), one_line(&says, characters))
}

/// `#12 2026-01-02 The text`
pub(super) fn note_line(note: &Entry, characters: usize) -> String {
    let day = time(note.ts_ms);
    let day = day.get(..10).unwrap_or(&day);
    let title = note.title.as_deref().map(|title| format!("{title}: ")).unwrap_or_default();
    format!("#{} {day} {}", note.seq, one_line(&format!("{title}{}", note.content), characters))
}

/// A text on one line, cut to a number of characters.
pub(super) fn one_line(text: &str, characters: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    excerpt(&line, characters)
}
