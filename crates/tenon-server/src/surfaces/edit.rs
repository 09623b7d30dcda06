//! The `edit` surface: two tools that change files and report the diagnostics that follow.
//!
//! It exists only if the user allowed edits for this root. [`Editor`] runs an edit; this file maps its outcome to an answer:
//! text, and the same facts as structured content. A failure is a tool error with a code ([`classify`]), and the file is then
//! unchanged.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tenon_code::edit::{Change, EditFile, EditOutcome, Editor, Lines, WriteFile};
use tenon_code::{DiagnosticsLimits, DiagnosticsText};
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
            "Replaces a text that occurs once in a file. Reports the errors that language servers then find, there and in other files.";
        WriteFile writes "write_file"
            "Creates or overwrites a file. Reports the errors that language servers then find, there and in other files.";
    }
}

/// Long enough for the start of a server and a slow check, besides the wait for dependents.
const DEADLINE: Duration = Duration::from_secs(30);
/// The part of the call that is reserved for the answer about a change that was made.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// See the module.
pub(crate) struct EditSurface {
    catalog: Catalog<EditTool>,
    editor: Arc<Editor>,
    limits: DiagnosticsLimits,
    wait: Duration,
}

impl EditSurface {
    pub(crate) const NAME: &'static str = "edit";

    /// The tools, if the user allows them for the workspace.
    pub(crate) fn allowed(
        workspace: &Workspace,
        engine: &Arc<Engine>,
        limits: DiagnosticsLimits,
    ) -> Option<Self> {
        if !workspace.config().edit.allows(workspace.root()) {
            return None;
        }
        let (editor, wait) = (Arc::clone(engine.editor()?), workspace.config().edit.wait());
        Some(Self { catalog: Catalog::new(EditTool::ALL), editor, limits, wait })
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

fn answer(outcome: &EditOutcome, limits: &DiagnosticsLimits) -> ToolAnswer {
    let EditOutcome { change, diagnostics } = outcome;
    let text = DiagnosticsText::new(diagnostics, limits);
    let lines = |lines: Lines| json!({ "first": lines.first, "last": lines.last });
    ToolAnswer::structured(json!({
        "file": change.file,
        "created": change.created(),
        "sha256_before": change.before,
        "sha256_after": change.after,
        "replaced": change.replaced.map(lines),
        "lines": lines(change.lines),
        "complete": diagnostics.complete,
        "pending": text.pending,
        "in_this_file": text.changed,
        "in_other_files": text.others,
    }))
    .with_text(text.below(&success(change)))
}

/// The line above the diagnostics.
fn success(change: &Change) -> String {
    let Change { file, before, after, replaced, lines } = change;
    let done = match (before, replaced) {
        (Some(before), _) if before == after => format!("`{file}` is unchanged."),
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
        Ok(match self.run(tool, arguments, call).await {
            Ok(outcome) => answer(&outcome, &self.limits),
            Err(failure) => classify(&failure),
        })
    }

    fn classify(&self, _tool: EditTool, failure: CallFailure) -> ToolOutcome {
        Ok(classify(&Failure::Call(failure)))
    }
}
