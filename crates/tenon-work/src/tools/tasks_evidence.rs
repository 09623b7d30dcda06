//! `tasks_evidence`: command output, diagnostics or a file hash, attached to a checkpoint of a step.
//!
//! The content becomes an entry of the notes document, so it can be read, searched and exported like any note; the step
//! keeps its id, hash and size.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tenon_contract::id::sha256_hex;

use crate::arguments::NonEmpty;

use super::answer::{self, StepAnswer};
use crate::error::WorkError;
use crate::id::{EvidenceId, TargetId};
use crate::limits;
use crate::memory::entry::{self, NewNote};
use crate::memory::{NOTES, branch};
use crate::plan::event::EventView;
use crate::plan::mutation::{Mutation, Undoable};
use crate::plan::step::{Checkpoint, Evidence, StepRef};
use crate::work_call::WorkCall;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: Option<String>,
    step_id: Option<String>,
    path: Option<String>,
    checkpoint: Checkpoint,
    items: NonEmpty<EvidenceInput>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct EvidenceInput {
    kind: Kind,
    command: Option<String>,
    exit_code: Option<i64>,
    output: Option<String>,
    path: Option<String>,
    sha256: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    CmdOutput,
    Diagnostics,
    FileHash,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::CmdOutput => "cmd_output",
            Self::Diagnostics => "diagnostics",
            Self::FileHash => "file_hash",
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    task: TargetId,
    revision: u64,
    step: Option<StepRef>,
    event: Option<EventView>,
    evidence: Vec<EvidenceRef>,
}

#[derive(Debug, Serialize)]
struct EvidenceRef {
    id: EvidenceId,
    kind: String,
    sha256: String,
    bytes: usize,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<Answer, WorkError> {
    limits::count("items", args.items.0.len(), limits::PER_CALL)?;
    for (index, item) in args.items.0.iter().enumerate() {
        check(item).map_err(|failure| failure.with("index", index))?;
    }
    let target = call.target(args.task.as_deref()).await?;
    let step = call.step(target.id, args.step_id.as_deref(), args.path.as_deref()).await?;
    let (id, path) = (step.id, step.fields.path.clone());
    limits::evidence(step.fields.evidence.len() + args.items.0.len())?;

    let mut attached = Vec::new();
    for item in &args.items.0 {
        // A file hash comes from the client; other content is hashed as stored.
        let content = item.output.as_deref().or(item.path.as_deref()).unwrap_or_default();
        let sha256 = item.sha256.clone().unwrap_or_else(|| sha256_hex(content));
        let meta = json!({
            "task": target.id,
            "step_id": id,
            "path": path,
            "checkpoint": args.checkpoint,
            "command": item.command,
            "exit_code": item.exit_code,
            "file": item.path,
            "sha256": sha256,
            "tool": call.request.tool.name(),
        });
        limits::meta(&meta)?;
        let note = NewNote {
            branch: branch::number_of(target.id),
            doc: NOTES,
            title: Some(item.kind.as_str()),
            format: Some(entry::EVIDENCE),
            meta: Some(meta),
            content,
            origin: None,
        };
        let seq = entry::append(call.tx, &mut call.ws, call.now, &note).await?;
        attached.push(Evidence {
            id: EvidenceId(seq.unsigned_abs()),
            checkpoint: args.checkpoint,
            kind: item.kind.as_str().to_owned(),
            sha256,
            bytes: content.len(),
        });
    }

    let mut mutation = Mutation::of(target, call.request.tool, call.now, Undoable::Yes);
    mutation.step(step).evidence.extend(attached.iter().cloned());
    mutation.settle_status(call.tx, call.ws.id, true).await?;
    mutation.log(call.tx, &mut call.ws, "evidence_added", Some(&path)).await?;
    mutation.save(call.tx, &mut call.ws).await?;
    let evidence = attached
        .into_iter()
        .map(|item| EvidenceRef { id: item.id, kind: item.kind, sha256: item.sha256, bytes: item.bytes })
        .collect();
    let StepAnswer { task, revision, step, event } = answer::of_step(&mutation, call, Some(id));
    Ok(Answer { task, revision, step, event, evidence })
}

fn check(item: &EvidenceInput) -> Result<(), WorkError> {
    let needs = |name: &str, there: bool| {
        if there {
            Ok(())
        } else {
            Err(WorkError::invalid(format!("{} needs {name}", item.kind.as_str()))
                .recovery(format!("give `{name}`")))
        }
    };
    match item.kind {
        Kind::CmdOutput => {
            needs("command", item.command.is_some())?;
            needs("output", item.output.is_some())?;
        }
        Kind::Diagnostics => needs("output", item.output.is_some())?,
        Kind::FileHash => {
            needs("path", item.path.is_some())?;
            needs("sha256", item.sha256.is_some())?;
        }
    }
    let is_hash = |text: &String| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !item.sha256.iter().all(is_hash) {
        return Err(WorkError::invalid("sha256 is not 64 hex digits").recovery("give what sha256sum prints"));
    }
    item.output.iter().try_for_each(|output| limits::text("output", output))
}
