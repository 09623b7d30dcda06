//! The `edit` surface: two tools that change files and answer with what that broke.
//!
//! It is only there where the user allowed it for this root. A result is the change and the diagnostics block as text, and
//! the same facts as structured content. A failure is a tool error with a code ([`classify`]), and then nothing was changed.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tenon_code::edit::{Change, Changed, EditFile, Editor, Lines, WriteFile};
use tenon_lsp::aftermath::Aftermath;
use tenon_lsp::block::{Block, Limits};

use crate::engine::Engine;
use crate::surface::{
    Arguments, CallFailure, CallLimits, Catalog, Surface, ToolAnswer, ToolCall, ToolOutcome, tool_set,
};
use crate::workspace::Workspace;

mod classify;

use classify::{Failure, classify};

tool_set! {
    /// The tools that change files.
    pub enum EditTool {
        EditFile writes "edit_file"
            "Replaces a text that occurs once in a file. Reports new errors in that file and in its dependents.";
        WriteFile writes "write_file"
            "Creates or overwrites a file. Reports new errors in that file and in its dependents.";
    }
}

/// A server's start and a slow check fit in, besides the wait for what broke elsewhere; only then the change is told without
/// them.
const DEADLINE: Duration = Duration::from_secs(30);
/// What is left of a call's time for telling about a change that was made.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// See the module.
pub struct EditSurface {
    catalog: Catalog<EditTool>,
    editor: Editor,
    engine: Arc<Engine>,
    limits: Limits,
    wait: Duration,
}

impl EditSurface {
    pub const NAME: &'static str = "edit";

    /// The tools for a workspace whose user allows them; else nothing.
    pub fn allowed(workspace: &Workspace, engine: &Arc<Engine>, limits: Limits) -> Option<Self> {
        if !workspace.config().edit.allows(workspace.root()) {
            return None;
        }
        // A root that was just opened is a folder; should it be gone already, there is nothing to edit.
        let editor = Editor::new(workspace.root(), kept(workspace)).ok()?;
        let wait = workspace.config().edit.wait();
        Some(Self { catalog: Catalog::new(EditTool::ALL), editor, engine: Arc::clone(engine), limits, wait })
    }

    async fn run(&self, tool: EditTool, arguments: Arguments) -> Result<Changed, Failure> {
        let changed = match tool {
            EditTool::EditFile => self.editor.edit(read::<EditFile>(arguments)?).await,
            EditTool::WriteFile => self.editor.write(read::<WriteFile>(arguments)?).await,
        };
        Ok(changed?)
    }

    /// What a change broke, as far as language servers can say.
    async fn aftermath(&self, changed: Changed, call: ToolCall) -> Aftermath {
        let call = tenon_lsp::CallContext::new(call.deadline - LAST_WORDS, call.caller.cancel);
        match self.engine.orchestrator().await {
            Ok(orchestrator) => changed.aftermath(orchestrator, self.wait, &call).await,
            Err(error) => {
                tracing::warn!(%error, "no language server can be used");
                Aftermath::default()
            }
        }
    }
}

fn read<T: DeserializeOwned>(arguments: Arguments) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| Failure::Arguments(error.to_string()))
}

/// What we keep for ourselves, wherever the user put it.
fn kept(workspace: &Workspace) -> Vec<camino::Utf8PathBuf> {
    let (dirs, config) = (workspace.dirs(), workspace.config());
    let mut kept = vec![dirs.config_file.clone(), dirs.state.clone(), dirs.data.clone()];
    kept.extend(config.log.folder.clone());
    kept.extend(config.work.store.as_ref().filter(|store| !store.contains("://")).map(Into::into));
    kept
}

fn answer(change: &Change, aftermath: &Aftermath, limits: &Limits) -> ToolAnswer {
    let block = Block::new(aftermath, limits);
    let lines = |lines: Lines| json!({ "first": lines.first, "last": lines.last });
    ToolAnswer::structured(json!({
        "file": change.file,
        "created": change.created(),
        "sha256_before": change.before,
        "sha256_after": change.after,
        "replaced": change.replaced.map(lines),
        "lines": lines(change.lines),
        "complete": aftermath.complete,
        "pending": block.pending,
        "in_this_file": block.touched,
        "in_other_files": block.others,
    }))
    .with_text(block.below(&success(change)))
}

/// The words before the block.
fn success(change: &Change) -> String {
    let Change { file, before, after, replaced, lines } = change;
    let done = match (before, replaced) {
        (Some(before), _) if before == after => format!("`{file}` is as it should be already."),
        (Some(_), Some(replaced)) if replaced == lines => format!("Changed `{file}`, {}.", span(*lines)),
        (Some(_), Some(replaced)) => {
            format!("Changed `{file}`: {} became {}.", span(*replaced), span(*lines))
        }
        _ => format!("Created `{file}`: {}.", span(*lines)),
    };
    format!("{done} SHA-256 {after}")
}

fn span(Lines { first, last }: Lines) -> String {
    if first == last { format!("line {first}") } else { format!("lines {first} to {last}") }
}

impl Surface for EditSurface {
    type Tool = EditTool;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn catalog(&self) -> &Catalog<EditTool> {
        &self.catalog
    }

    fn limits(&self) -> CallLimits {
        CallLimits { deadline: DEADLINE + 2 * self.wait, ..CallLimits::default() }
    }

    async fn call(&self, tool: EditTool, arguments: Arguments, call: ToolCall) -> ToolOutcome {
        let changed = match self.run(tool, arguments).await {
            Ok(changed) => changed,
            Err(failure) => return Ok(classify(&failure)),
        };
        let change = changed.change.clone();
        let aftermath = self.aftermath(changed, call).await;
        Ok(answer(&change, &aftermath, &self.limits))
    }

    fn classify(&self, _tool: EditTool, failure: CallFailure) -> ToolOutcome {
        Ok(classify(&Failure::Call(failure)))
    }
}
