//! The `nav` surface: the six `lsp_*` tools, in the daemon and on the pipes of `tenon lsp-service`.
//!
//! Names, arguments and result shapes are a contract with agents that embed the service, so results have no additional
//! fields: notes (a server is still loading, one is missing) are in the text. An empty list means that there is nothing to
//! find. If a server that could know did not answer, the answer is a tool error instead.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tenon_contract::position::Position;
use tenon_contract::root::WorkspacePath;
use tenon_lsp::model::{Location, LspAnswer, Severity, Symbol};
use tenon_lsp::orchestrator::Orchestrator;
use tenon_servers::registry::OverrideError;

use crate::engine::Engine;
use crate::surface::{
    Arguments, CallFailure, CallLimits, Catalog, Surface, ToolAnswer, ToolCall, ToolOutcome, tool_set,
};

mod classify;
mod shape;

use classify::{Failure, classify, gap_note};
use shape::{diagnostic, location, object, symbol};

tool_set! {
    /// The six tools, in the contract's order.
    pub enum NavTool {
        GotoDefinition reads "lsp_goto_definition" "Where the symbol at a position is defined.";
        FindReferences reads "lsp_find_references"
            "Where the symbol at a position is used, its declaration included.";
        Hover reads "lsp_hover" "Type and documentation of the symbol at a position.";
        DocumentSymbols reads "lsp_document_symbols" "The symbols of a file as a flat list.";
        WorkspaceSymbols reads "lsp_workspace_symbols" "Symbols of the workspace by name.";
        Diagnostics reads "lsp_diagnostics" "Diagnostics by file, for the files that language servers have checked.";
    }
}

/// How long before the deadline a call stops waiting, to report why there is no answer.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Options of the surface.
#[derive(Debug, Clone)]
pub(crate) struct NavOptions {
    /// The time limit of one request, the start of a server included.
    pub timeout: Duration,
    /// The severities of diagnostics that are shown.
    pub severities: Vec<Severity>,
}

impl Default for NavOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(10), severities: vec![Severity::Error] }
    }
}

/// Where the orchestrator comes from.
enum Servers {
    Workspace(Arc<Engine>),
    Given(Orchestrator),
}

/// See the module.
pub(crate) struct NavSurface {
    catalog: Catalog<NavTool>,
    servers: Servers,
    options: NavOptions,
}

impl NavSurface {
    pub(crate) const NAME: &'static str = "nav";

    /// The tools over the language servers of a workspace, which the first call opens.
    pub(crate) fn new(engine: &Arc<Engine>, options: NavOptions) -> Self {
        Self { catalog: Catalog::new(NavTool::ALL), servers: Servers::Workspace(Arc::clone(engine)), options }
    }

    /// The tools over an open orchestrator.
    pub(crate) fn over(orchestrator: Orchestrator, options: NavOptions) -> Self {
        Self { catalog: Catalog::new(NavTool::ALL), servers: Servers::Given(orchestrator), options }
    }

    async fn orchestrator(&self) -> Result<&Orchestrator, OverrideError> {
        match &self.servers {
            Servers::Workspace(engine) => engine.orchestrator().await,
            Servers::Given(orchestrator) => Ok(orchestrator),
        }
    }

    async fn run(&self, tool: NavTool, arguments: &Arguments, call: ToolCall) -> Result<ToolAnswer, Failure> {
        let orchestrator = self.orchestrator().await.map_err(|error| {
            tracing::warn!(%error, "no language server can be used");
            Failure::Servers
        })?;
        let call = tenon_lsp::CallContext::new(call.deadline - LAST_WORDS, call.caller.cancel)
            .at_most(self.options.timeout);
        let position = || source_position(orchestrator, arguments);
        match tool {
            NavTool::GotoDefinition => {
                let (path, position) = position()?;
                let found = orchestrator.definition(&path, position, &call).await?;
                locations(orchestrator, found)
            }
            NavTool::FindReferences => {
                let (path, position) = position()?;
                let found = orchestrator.references(&path, position, true, &call).await?;
                locations(orchestrator, found)
            }
            NavTool::Hover => {
                let (path, position) = position()?;
                let found = orchestrator.hover(&path, position, &call).await?;
                let content = found.value.as_ref().map(|hover| {
                    let parts: Vec<&str> = hover.parts.iter().map(|part| part.value.as_str()).collect();
                    parts.join("\n\n")
                });
                let text = content.clone().unwrap_or_else(|| "no hover information".to_owned());
                let is_empty = content.is_none();
                answered(&found, is_empty, object([("content", content.into())]), text)
            }
            NavTool::DocumentSymbols => {
                let path = admit(orchestrator, arguments)?;
                let found = orchestrator.document_symbols(&path, &call).await?;
                symbols(orchestrator, &found, false)
            }
            NavTool::WorkspaceSymbols => {
                let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
                let found = orchestrator.workspace_symbols(query, &call).await;
                symbols(orchestrator, &found, true)
            }
            NavTool::Diagnostics => Ok(self.diagnostics(orchestrator).await),
        }
    }

    async fn diagnostics(&self, orchestrator: &Orchestrator) -> ToolAnswer {
        let mut files = serde_json::Map::new();
        let mut lines = Vec::new();
        for (path, items) in orchestrator.diagnostics().await {
            let shown: Vec<_> =
                items.iter().filter(|one| self.options.severities.contains(&one.severity())).collect();
            if shown.is_empty() {
                continue;
            }
            let file = orchestrator.gate().display(&path);
            lines.extend(shown.iter().map(|one| shape::diagnostic_line(&file, one)));
            files.insert(file, shown.iter().map(|one| diagnostic(one)).collect());
        }
        let text = if lines.is_empty() { "no diagnostics".to_owned() } else { lines.join("\n") };
        ToolAnswer::structured(object([("diagnostics", Value::Object(files))])).with_text(text)
    }
}

/// The file that the arguments name.
fn admit(orchestrator: &Orchestrator, arguments: &Arguments) -> Result<WorkspacePath, Failure> {
    let file = arguments.get("file").and_then(Value::as_str).unwrap_or_default();
    Ok(orchestrator.gate().admit_path(file)?)
}

/// The file and position that the arguments name.
fn source_position(
    orchestrator: &Orchestrator,
    arguments: &Arguments,
) -> Result<(WorkspacePath, Position), Failure> {
    let path = admit(orchestrator, arguments)?;
    let zero_based = |key: &str| {
        let number = arguments.get(key).and_then(Value::as_f64).unwrap_or(1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the schema bounds it")]
        let number = number as u32;
        number.saturating_sub(1)
    };
    Ok((path, Position::new(zero_based("line"), zero_based("character"))))
}

fn locations(orchestrator: &Orchestrator, found: LspAnswer<Vec<Location>>) -> Result<ToolAnswer, Failure> {
    let gate = orchestrator.gate();
    let lines: Vec<String> = found.value.iter().map(|one| shape::location_line(gate, one)).collect();
    let list: Vec<Value> = found.value.iter().map(|one| location(gate, one)).collect();
    let text = if lines.is_empty() { "nothing found".to_owned() } else { lines.join("\n") };
    answered(&found, list.is_empty(), object([("locations", Value::Array(list))]), text)
}

fn symbols(
    orchestrator: &Orchestrator,
    found: &LspAnswer<Vec<Symbol>>,
    with_file: bool,
) -> Result<ToolAnswer, Failure> {
    let gate = orchestrator.gate();
    let lines: Vec<String> = found.value.iter().map(|one| shape::symbol_line(gate, one, with_file)).collect();
    let list: Vec<Value> = found.value.iter().map(|one| symbol(gate, one, with_file)).collect();
    let text = if lines.is_empty() { "nothing found".to_owned() } else { lines.join("\n") };
    answered(found, list.is_empty(), object([("symbols", Value::Array(list))]), text)
}

/// An answer with a note for each server that did not contribute. Empty and incomplete is a failure, not "nothing found".
fn answered<T>(
    found: &LspAnswer<T>,
    is_empty: bool,
    structured: Value,
    text: String,
) -> Result<ToolAnswer, Failure> {
    let notes: Vec<String> = found.gaps.iter().filter_map(gap_note).collect();
    if is_empty && !found.is_complete() && !notes.is_empty() {
        return Err(Failure::Incomplete(notes));
    }
    let mut text = text;
    for note in notes {
        text.push_str(&format!("\n({note})"));
    }
    Ok(ToolAnswer::structured(structured).with_text(text))
}

impl Surface for NavSurface {
    type Tool = NavTool;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn catalog(&self) -> &Catalog<NavTool> {
        &self.catalog
    }

    fn limits(&self) -> CallLimits {
        CallLimits { deadline: self.options.timeout + 2 * LAST_WORDS, ..CallLimits::default() }
    }

    async fn call(&self, tool: NavTool, arguments: Arguments, call: ToolCall) -> ToolOutcome {
        let outcome = self.run(tool, &arguments, call).await;
        Ok(outcome.unwrap_or_else(|failure| classify(&failure)))
    }

    fn classify(&self, _tool: NavTool, failure: CallFailure) -> ToolOutcome {
        Ok(classify(&Failure::Call(failure)))
    }
}
