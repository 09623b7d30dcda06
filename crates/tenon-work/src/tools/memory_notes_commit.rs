//! `memory_notes_commit`: a note, appended to a document.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::WorkError;
use crate::limits;
use crate::memory::entry::{self, EntryView, NewNote};
use crate::memory::scope::{DocKind, ScopeArgs};
use crate::work_call::{WorkCall, WorkReply};

/// The answer contains at most this much of the note.
const ECHO_BYTES: usize = 16 * 1024;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    target: Option<String>,
    branch: Option<String>,
    doc: Option<String>,
    content: String,
    title: Option<String>,
    format: Option<String>,
    meta: Option<Map<String, Value>>,
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    entry: EntryView<'a>,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    limits::text("content", &args.content)?;
    if args.content.trim().is_empty() {
        return Err(WorkError::invalid("the note is empty").recovery("give a text"));
    }
    args.title.iter().try_for_each(|title| limits::title(title))?;
    if let Some(format) = &args.format
        && (format.is_empty() || format.len() > 64 || format == entry::CARD_FORMAT)
    {
        return Err(WorkError::invalid("format must have 1 to 64 bytes and not be `card`")
            .recovery("cards are written with memory_think_card"));
    }
    let meta = args.meta.map(Value::Object);
    meta.iter().try_for_each(limits::meta)?;
    let given = ScopeArgs {
        target: args.target.as_deref(),
        branch: args.branch.as_deref(),
        doc: args.doc.as_deref(),
    };
    let scope = call.scope_for_write(given, DocKind::Notes).await?;
    let note = NewNote {
        branch: scope.view.branch(),
        doc: &scope.doc,
        title: args.title.as_deref(),
        format: args.format.as_deref(),
        meta,
        content: &args.content,
        origin: None,
    };
    let seq = entry::append(call.tx, &mut call.ws, call.now, &note).await?;
    let written = note.stored(seq, call.now);
    let mut entry = written.view(scope.view.name());
    if entry.cut(ECHO_BYTES) {
        call.warn(format!(
            "content is cut to {ECHO_BYTES} bytes in this answer; memory_show returns all of it"
        ));
    }
    Ok(WorkReply::done(Answer { entry }))
}
