//! `forget`: hides a note from searches and summaries, or deletes a card.
//!
//! Documents are append-only: the note stays in its document with the format `forgotten`, where `memory_show` finds it.

use serde_json::{Value, json};

use super::natural::Fields;
use super::reference::{Named, parse};
use super::task_text::{card_line, note_line};
use super::{LeanAnswer, LeanError, LeanTool};
use crate::catalog::WorkTool;
use crate::error::WorkErrorCode;
use crate::graph::version;
use crate::id::TargetId;
use crate::memory::{branch, entry};
use crate::name::quoted;
use crate::store::{StoreError, args};
use crate::work_call::WorkCall;

#[derive(Debug, Clone)]
pub(super) struct Args {
    id: String,
}

impl Args {
    pub(super) fn read(fields: &mut Fields) -> Result<Self, LeanError> {
        let id =
            fields.text(&["id", "seq", "note", "noteid", "memory", "memoryid", "number", "text", "query"]);
        match id {
            Some(id) => Ok(Self { id }),
            None => Err(LeanError::new("name what to forget; recall shows the ids")
                .call(LeanTool::Recall, json!({"query": "build on arm"}))),
        }
    }
}

/// `#12`, `12` or `note 12`.
fn seq(text: &str) -> Option<i64> {
    let lower = text.trim().to_lowercase();
    let digits = lower.trim_start_matches(|one: char| one.is_ascii_alphabetic() || " #:".contains(one));
    let word: String = lower.chars().take_while(char::is_ascii_alphabetic).collect();
    let known = ["", "note", "memory", "card", "seq", "id", "decision", "entry"].contains(&word.as_str());
    known.then(|| digits.parse().ok()).flatten()
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: &Args) -> Result<LeanAnswer, LeanError> {
    let Some(seq) = seq(&args.id) else { return Err(not_a_note(&args.id)) };
    if let Some(note) = entry::by_seq(call.tx, call.ws.id, seq).await?
        && note.kind == "note"
    {
        match note.format.as_deref() {
            Some(entry::FORGOTTEN) => {
                return Ok(LeanAnswer::new(format!("#{seq} was forgotten before"), json!({"id": seq})));
            }
            // The trace of a card: the card itself is what a search finds.
            Some(entry::CARD_FORMAT) => return Err(unknown(&args.id)),
            _ => {}
        }
        entry::forget(call.tx, call.ws.id, seq).await?;
        return Ok(LeanAnswer::new(format!("forgot {}", note_line(&note, 120)), json!({"id": seq})));
    }
    let card = version::by_seq(call.tx, call.ws.id, seq).await?;
    let Some(card) = card.filter(|card| card.next.is_none() && !card.is_deleted()) else {
        return Err(unknown(&args.id));
    };
    let Some(branch) = branch::by_number(call.tx, call.ws.id, card.branch).await? else {
        return Err(unknown(&args.id));
    };
    let ops = json!([{"op": "node_delete", "id": card.key.to_string()}]);
    let scope: Value = match branch::target_of(card.branch) {
        Some(target) => json!({"target": target, "ops": ops}),
        None => json!({"branch": branch.name, "doc": card.doc, "ops": ops}),
    };
    call.tool(WorkTool::MemoryGraphApply, scope).await?;
    Ok(LeanAnswer::new(format!("forgot {}", card_line(&card, 120)), json!({"id": seq})))
}

fn unknown(id: &str) -> LeanError {
    LeanError::new(format!("there is no note {}; recall shows the ids", quoted(id)))
        .code_of(WorkErrorCode::UnknownId)
        .call(LeanTool::Recall, json!({"query": "build on arm"}))
}

/// The error for a text that names no note: what it names instead, or a search for it.
fn not_a_note(text: &str) -> LeanError {
    match parse(text).0 {
        Named::Id(id) => LeanError::new(format!("{id} is a task"))
            .lead("to remove it")
            .call(LeanTool::TaskUpdate, json!({"id": id, "status": "cancelled"})),
        Named::Title(title) => {
            let query: String = title.chars().take(100).collect();
            LeanError::new("forget takes the id of a note, which recall shows")
                .call(LeanTool::Recall, json!({"query": query}))
        }
    }
}

impl WorkCall<'_> {
    /// The number of the newest version of a card.
    pub(super) async fn card_seq(&mut self, target: Option<TargetId>, id: &str) -> Result<i64, StoreError> {
        let number = target.map_or(branch::MAIN_NUMBER, branch::number_of);
        let sql = "SELECT max(seq) FROM graph WHERE ws = $1 AND branch = $2 AND kind = 0 AND id = $3";
        let row = self.tx.row(sql, args![self.ws.id, number, id]).await?;
        Ok(row.map(|row| row.opt_int(0)).transpose()?.flatten().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_named_by_number() {
        for text in ["#12", "12", "note 12", "Note #12", " id: 12 "] {
            assert_eq!(seq(text), Some(12), "{text}");
        }
        for text in ["TASK-012", "the linker", "task 12", ""] {
            assert_eq!(seq(text), None, "{text}");
        }
    }
}
