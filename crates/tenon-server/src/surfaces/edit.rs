//! The `edit` surface: tools that change files and report what that did to the diagnostics.
//!
//! It exists only if the user allowed edits for this root. [`Editor`] edits by text; this file maps its outcome to text, and the
//! same facts as structured content, and a failure to a tool error with a code ([`classify`]). [`SymbolEditor`](tenon_code::symbol_edit::SymbolEditor) edits by name;
//! its answers and errors are text.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tenon_code::EditText;
use tenon_code::edit::{EditOutcome, Editor, Lines};
use tenon_code::symbol_edit::SymbolEditRequest;
use tenon_lsp::CallContext;

use crate::engine::Engine;
use crate::surface::{
    Arguments, CallFailure, CallLimits, Catalog, Surface, ToolAnswer, ToolCall, ToolOutcome, tool_set,
};
use crate::workspace::Workspace;

mod classify;

use classify::{Failure, classify, classify_as_text};

tool_set! {
    /// The tools that change files.
    pub enum EditTool {
        EditFile writes unlisted "edit_file"
            "Replaces a text that occurs once in a file. Reports which errors this causes and removes, there and in other files.";
        WriteFile writes unlisted "write_file"
            "Creates or overwrites a file. Reports which errors this causes and removes, there and in other files.";
        Rename writes text "rename" "Renames a symbol in all files or none. Shows the places first.";
        EditSymbol writes text "edit_symbol"
            "Replaces or deletes a declaration, or adds text before or after it. Deletes only what is unused.";
        Fix writes text "fix" "Applies a fix of a language server, organises imports or formats a file.";
    }
}

/// Long enough for the start of a server and a slow check, besides the wait for dependents.
const DEADLINE: Duration = Duration::from_secs(30);
/// The part of the call that is reserved for the answer about a change that was made.
const ANSWER_TIME: Duration = Duration::from_secs(2);
/// The most removed diagnostics in an answer.
const MAX_GONE: usize = 20;

/// See the module.
pub(crate) struct EditSurface {
    catalog: Catalog<EditTool>,
    engine: Arc<Engine>,
    editor: Arc<Editor>,
    wait: Duration,
}

impl EditSurface {
    pub(crate) const NAME: &'static str = "edit";

    /// The tools, if the user allows them for the workspace.
    pub(crate) fn allowed(workspace: &Workspace, engine: &Arc<Engine>) -> Option<Self> {
        if !workspace.config().edit.allows(workspace.root()) {
            return None;
        }
        let (editor, wait) = (Arc::clone(engine.editor()?), workspace.config().edit.wait());
        let engine = Arc::clone(engine);
        Some(Self { catalog: Catalog::new(EditTool::ALL), engine, editor, wait })
    }

    async fn run(&self, tool: EditTool, arguments: Arguments, call: ToolCall) -> Result<ToolAnswer, Failure> {
        let client = call.caller.client.0;
        let call = CallContext::new(call.deadline - ANSWER_TIME, call.caller.cancel).for_client(client);
        let request = match tool {
            EditTool::EditFile => {
                return Ok(answer(&self.editor.edit(read(arguments)?, self.wait, &call).await?));
            }
            EditTool::WriteFile => {
                return Ok(answer(&self.editor.write(read(arguments)?, self.wait, &call).await?));
            }
            EditTool::Rename => SymbolEditRequest::Rename(read(arguments)?),
            EditTool::EditSymbol => SymbolEditRequest::EditSymbol(read(arguments)?),
            EditTool::Fix => SymbolEditRequest::Fix(read(arguments)?),
        };
        let by_name = self.engine.symbol_editor().await.map_err(|error| {
            tracing::warn!(%error, "the configured language servers cannot be used");
            Failure::Servers
        })?;
        let by_name = by_name.ok_or(Failure::Servers)?;
        Ok(ToolAnswer::text(by_name.run(request, &call).await?))
    }
}

impl EditTool {
    /// Whether its errors are one line of text.
    fn answers_with_text(self) -> bool {
        matches!(self, Self::Rename | Self::EditSymbol | Self::Fix)
    }
}

fn read<T: DeserializeOwned>(arguments: Arguments) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| Failure::Arguments(error.to_string()))
}

fn failed(tool: EditTool, failure: &Failure) -> ToolAnswer {
    if tool.answers_with_text() { classify_as_text(failure) } else { classify(failure) }
}

fn answer(outcome: &EditOutcome) -> ToolAnswer {
    let EditOutcome { change, diagnostics } = outcome;
    let text = EditText::new(diagnostics);
    let lines = |lines: Lines| json!({ "first": lines.first, "last": lines.last });
    // What is not known is null, not zero.
    let known = |count: usize| diagnostics.is_compared().then_some(count);
    ToolAnswer::structured(json!({
        "file": change.file,
        "created": change.created(),
        "sha256_before": change.before,
        "sha256_after": change.after,
        "replaced": change.replaced.map(lines),
        "lines": lines(change.lines),
        "complete": diagnostics.complete,
        "pending": diagnostics.pending,
        "unchecked": diagnostics.unchecked,
        "new": text.new_ones(),
        "new_count": known(diagnostics.new.len()),
        "gone": diagnostics.gone[..diagnostics.gone.len().min(MAX_GONE)],
        "gone_count": known(diagnostics.gone.len()),
        "unchanged_count": known(diagnostics.unchanged),
    }))
    .with_text(text.to_string())
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
        Ok(self.run(tool, arguments, call).await.unwrap_or_else(|failure| failed(tool, &failure)))
    }

    fn classify(&self, tool: EditTool, failure: CallFailure) -> ToolOutcome {
        Ok(failed(tool, &Failure::Call(failure)))
    }
}
