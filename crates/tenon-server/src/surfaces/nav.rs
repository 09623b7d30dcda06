//! The `nav` surface: the six `lsp_*` tools, in the daemon and on the pipes of `tenon lsp-service`.
//!
//! Names, arguments and result shapes are a contract with agents that embed the service, so results have no additional
//! fields: notes (a server is still loading, one is missing, the list continues) are in the text. An empty list means that there
//! is nothing to find. If a server that could know did not answer, the answer is a tool error instead.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tenon_contract::position::Position;
use tenon_contract::root::WorkspacePath;
use tenon_lsp::model::{Diagnostic, Location, LspAnswer, Severity, Symbol};
use tenon_lsp::orchestrator::{Orchestrator, ServerState};
use tenon_servers::registry::OverrideError;

use crate::engine::Engine;
use crate::surface::{
    Arguments, CallFailure, CallLimits, Catalog, Surface, ToolAnswer, ToolCall, ToolOutcome, tool_set,
};

mod classify;
mod notes;
mod page;
mod shape;

use classify::{Failure, classify};
use notes::{Notes, QueryScope};
use page::Page;
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
        let client = call.caller.client.0;
        let call = tenon_lsp::CallContext::new(call.deadline - LAST_WORDS, call.caller.cancel)
            .for_client(client)
            .at_most(self.options.timeout);
        let position = || source_position(orchestrator, arguments);
        let offset = number(arguments, "offset", 0) as usize;
        match tool {
            NavTool::GotoDefinition => {
                let (path, position) = position()?;
                let found = orchestrator.definition(&path, position, &call).await?;
                locations(orchestrator, &found, QueryScope::Position, offset)
            }
            NavTool::FindReferences => {
                let (path, position) = position()?;
                let found = orchestrator.references(&path, position, true, &call).await?;
                locations(orchestrator, &found, QueryScope::Workspace, offset)
            }
            NavTool::Hover => {
                let (path, position) = position()?;
                let found = orchestrator.hover(&path, position, &call).await?;
                let content = found.value.as_ref().map(|hover| {
                    let parts: Vec<&str> = hover.parts.iter().map(|part| part.value.as_str()).collect();
                    parts.join("\n\n")
                });
                let notes = Notes::new(&found, QueryScope::Position, content.is_none())?;
                let text = content.clone().unwrap_or_else(|| "no hover information".to_owned());
                Ok(notes.answer(object([("content", content.into())]), text))
            }
            NavTool::DocumentSymbols => {
                let path = admit(orchestrator, arguments)?;
                let found = orchestrator.document_symbols(&path, &call).await?;
                symbols(orchestrator, &found, QueryScope::Document, offset)
            }
            NavTool::WorkspaceSymbols => {
                orchestrator.gate().admit_workspace()?;
                let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
                let mut found = orchestrator.workspace_symbols(query, &call).await;
                found.value.sort_by_cached_key(|one| nearness(&one.name, query));
                symbols(orchestrator, &found, QueryScope::Workspace, offset)
            }
            NavTool::Diagnostics => {
                orchestrator.gate().admit_workspace()?;
                Ok(self.diagnostics(orchestrator, offset, &call).await)
            }
        }
    }

    /// The known diagnostics. The text says how many files they cover: a file that no server has checked is not clean.
    async fn diagnostics(
        &self,
        orchestrator: &Orchestrator,
        offset: usize,
        call: &tenon_lsp::CallContext,
    ) -> ToolAnswer {
        let (known, covered) = orchestrator.current_diagnostics(call).await;
        let shown: Vec<(String, &Diagnostic)> = known
            .iter()
            .flat_map(|(path, items)| {
                let file = orchestrator.gate().display(path);
                items.iter().map(move |one| (file.clone(), one))
            })
            .filter(|(_, one)| self.options.severities.contains(&one.severity()))
            .collect();
        let page =
            Page::of(&shown, offset, |(file, one)| (diagnostic(one), shape::diagnostic_line(file, one)));
        let mut files = serde_json::Map::new();
        for ((file, _), value) in shown.iter().skip(offset).zip(page.values) {
            let list = files.entry(file.clone()).or_insert_with(|| Value::Array(Vec::new()));
            list.as_array_mut().expect("inserted as an array").push(value);
        }
        let mut lines = page.lines;
        if shown.is_empty() {
            let found = if covered.checked > 0 { "no diagnostics in the checked files" } else { "unknown" };
            lines.push(found.to_owned());
        }
        lines.extend(page.note.map(|note| format!("({note})")));
        lines.push(shape::coverage_line(covered));
        let broken = orchestrator.status().into_iter().filter(|one| one.state == ServerState::Broken);
        lines.extend(broken.map(|one| {
            format!("(`{id}` is broken; restart it with `tenon servers restart {id}`)", id = one.id)
        }));
        lines.extend(orchestrator.configuration_notes().await.into_iter().map(|note| format!("({note})")));
        ToolAnswer::structured(object([("diagnostics", Value::Object(files))])).with_text(lines.join("\n"))
    }
}

/// Orders symbols: the name itself first, then names that begin with it, then the others.
fn nearness(name: &str, query: &str) -> u8 {
    let (lower, wanted) = (name.to_lowercase(), query.to_lowercase());
    match () {
        () if name == query => 0,
        () if lower == wanted => 1,
        () if lower.starts_with(&wanted) => 2,
        () => 3,
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
    let zero_based = |key: &str| number(arguments, key, 1).saturating_sub(1);
    Ok((path, Position::new(zero_based("line"), zero_based("character"))))
}

/// A whole number, which the schema bounds; clients may spell it as a float.
fn number(arguments: &Arguments, key: &str, default: u32) -> u32 {
    let number = arguments.get(key).and_then(Value::as_f64).unwrap_or_else(|| f64::from(default));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the schema bounds it")]
    let number = number as u32;
    number
}

fn locations(
    orchestrator: &Orchestrator,
    found: &LspAnswer<Vec<Location>>,
    scope: QueryScope,
    offset: usize,
) -> Result<ToolAnswer, Failure> {
    let gate = orchestrator.gate();
    let notes = Notes::new(found, scope, found.value.is_empty())?;
    let page = Page::of(&found.value, offset, |one| (location(gate, one), shape::location_line(gate, one)));
    Ok(notes.list("locations", page))
}

fn symbols(
    orchestrator: &Orchestrator,
    found: &LspAnswer<Vec<Symbol>>,
    scope: QueryScope,
    offset: usize,
) -> Result<ToolAnswer, Failure> {
    let gate = orchestrator.gate();
    let with_file = scope == QueryScope::Workspace;
    let notes = Notes::new(found, scope, found.value.is_empty())?;
    let page = Page::of(&found.value, offset, |one| {
        (symbol(gate, one, with_file), shape::symbol_line(gate, one, with_file))
    });
    Ok(notes.list("symbols", page))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_name_sorts_before_prefixes_and_others() {
        let mut names = ["IntegerField", "fields", "Fields", "field", "Field", "F"];
        names.sort_by_key(|name| nearness(name, "Field"));
        assert_eq!(names, ["Field", "field", "fields", "Fields", "IntegerField", "F"]);
    }
}
