//! `remember`: a note, or a card if the text says what it is (`Decision: …`).
//!
//! It belongs to the task that `about` names, else to the focus or the active task, else to the workspace. Any other `about`
//! is the title, which counts more when it is recalled.

use serde_json::json;

use super::natural::Fields;
use super::reference::{Named, parse};
use super::{LeanAnswer, LeanCaller, LeanError, LeanTool};
use crate::catalog::WorkTool;
use crate::memory::card;
use crate::plan::target::{Status, TargetRow};
use crate::work_call::WorkCall;

#[derive(Debug, Clone)]
pub(super) struct Args {
    text: String,
    about: Option<String>,
    title: Option<String>,
    kind: Option<String>,
    tags: Vec<String>,
}

impl Args {
    pub(super) fn read(fields: &mut Fields) -> Result<Self, LeanError> {
        let title = fields.text(&["title", "subject", "heading", "key"]);
        let text = fields.text(&[
            "text", "content", "note", "memory", "fact", "message", "value", "body", "decision", "summary",
        ]);
        let about = fields.text(&["about", "task", "taskid", "topic", "scope", "target"]);
        let Some(text) = text.or_else(|| title.clone()) else {
            return Err(LeanError::new("there is no text to remember")
                .lead("for example")
                .call(LeanTool::Remember, json!({"text": "The build needs libatomic on arm"})));
        };
        let kind = fields.text(&["type", "kind", "category"]);
        Ok(Self { text, about, title, kind, tags: fields.texts(&["tags", "labels"]) })
    }
}

/// Words that mean the workspace, not a task.
const WORKSPACE: [&str; 7] = ["workspace", "project", "general", "global", "repo", "repository", "all"];

pub(super) async fn run(
    call: &mut WorkCall<'_>,
    args: &Args,
    caller: &LeanCaller,
) -> Result<LeanAnswer, LeanError> {
    let mut title = args.title.clone().filter(|title| *title != args.text);
    let task = match args.about.as_deref() {
        Some(about) if WORKSPACE.contains(&about.to_lowercase().as_str()) => None,
        Some(about) => match parse(about).0 {
            Named::Id(_) => Some(call.named_target(about, None).await?),
            Named::Title(topic) => {
                title = title.or_else(|| Some(topic.chars().take(200).collect()));
                worked_on(call, caller).await?
            }
        },
        None => worked_on(call, caller).await?,
    };
    let target = task.as_ref().map(|task| task.id);
    let with = target.map_or_else(String::new, |id| format!(" with {id}"));
    let (kind, text) = typed(args);
    if let Some(kind) = kind {
        let title = title.or_else(|| Some(first_sentence(text)));
        let card = json!({"type": kind, "title": title, "text": text, "tags": args.tags});
        let mut arguments = json!({"card": card});
        match target {
            Some(id) => arguments["target"] = json!(id),
            None => arguments["branch"] = json!(crate::memory::branch::MAIN),
        }
        let written = call.tool(WorkTool::MemoryThinkCard, arguments).await?;
        if written["inserted"] == json!(false) {
            return Ok(LeanAnswer::new(
                format!("this {kind} is known already{with}"),
                json!({"task": target}),
            ));
        }
        let id = written["card_id"].as_str().unwrap_or_default();
        let seq = call.card_seq(target, id).await?;
        return Ok(LeanAnswer::new(
            format!("remembered {kind} #{seq}{with}"),
            json!({"id": seq, "task": target}),
        ));
    }
    let mut arguments = json!({"content": text, "title": title});
    match target {
        Some(id) => arguments["target"] = json!(id),
        None => {
            arguments["branch"] = json!(crate::memory::branch::MAIN);
            arguments["doc"] = json!(crate::memory::NOTES);
        }
    }
    if !args.tags.is_empty() {
        arguments["meta"] = json!({"tags": args.tags});
    }
    call.tool(WorkTool::MemoryNotesCommit, arguments).await?;
    let seq = call.ws.last_seq();
    Ok(LeanAnswer::new(format!("remembered #{seq}{with}"), json!({"id": seq, "task": target})))
}

/// The task that the agent works on: the focus, or what is active. A task that was not started is not meant.
async fn worked_on(call: &mut WorkCall<'_>, caller: &LeanCaller) -> Result<Option<TargetRow>, LeanError> {
    let current = call.current_task(&caller.agent).await?;
    Ok(current.filter(|row| row.fields.status == Status::Active || call.ws.focus == Some(row.id)))
}

/// The type of card that a text or the call names, and the text without it.
fn typed(args: &Args) -> (Option<&'static str>, &str) {
    let named = |word: &str| {
        let word = word.trim().to_lowercase();
        card::TYPES.into_iter().find(|kind| *kind == word && *kind != "note")
    };
    if let Some(kind) = args.kind.as_deref().and_then(named) {
        return (Some(kind), &args.text);
    }
    if let Some((word, rest)) = args.text.split_once(':')
        && let Some(kind) = named(word)
        && !rest.trim().is_empty()
    {
        return (Some(kind), rest.trim());
    }
    let lower = args.text.to_lowercase();
    let decided = ["decided ", "we decided ", "i decided ", "decision ", "we chose ", "we will use "];
    (decided.iter().any(|start| lower.starts_with(start)).then_some("decision"), &args.text)
}

/// A short title for a card.
fn first_sentence(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let end = line.find(". ").map_or(line.len(), |at| at);
    crate::plan::target::excerpt(&line[..end], 120)
}
