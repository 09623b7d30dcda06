//! The `edit` surface: two tools that change files and report what that did to the diagnostics.
//!
//! It exists only if the user allowed edits for this root. [`Editor`] runs an edit; this file maps its outcome to an answer:
//! text, and the same facts as structured content. A failure is a tool error with a code ([`classify`]), and the file is then
//! unchanged.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tenon_code::EditText;
use tenon_code::edit::{EditFile, EditOutcome, Editor, Lines, WriteFile};
use tenon_lsp::CallContext;

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
            "Replaces a text that occurs once in a file. Reports which errors this causes and removes, there and in other files.";
        WriteFile writes "write_file"
            "Creates or overwrites a file. Reports which errors this causes and removes, there and in other files.";
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
        Some(Self { catalog: Catalog::new(EditTool::ALL), editor, wait })
    }

    async fn run(
        &self,
        tool: EditTool,
        arguments: Arguments,
        call: ToolCall,
    ) -> Result<EditOutcome, Failure> {
        let call = CallContext::new(call.deadline - ANSWER_TIME, call.caller.cancel);
        let outcome = match tool {
            EditTool::EditFile => self.editor.edit(read::<EditFile>(arguments)?, self.wait, &call).await,
            EditTool::WriteFile => self.editor.write(read::<WriteFile>(arguments)?, self.wait, &call).await,
        };
        Ok(outcome?)
    }
}

fn read<T: DeserializeOwned>(arguments: Arguments) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| Failure::Arguments(error.to_string()))
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
        Ok(match self.run(tool, arguments, call).await {
            Ok(outcome) => answer(&outcome),
            Err(failure) => classify(&failure),
        })
    }

    fn classify(&self, _tool: EditTool, failure: CallFailure) -> ToolOutcome {
        Ok(classify(&Failure::Call(failure)))
    }
}
