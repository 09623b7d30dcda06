//! The `nav` surface: the six `lsp_*` tools, over the daemon and over the pipes of `tenon lsp-service` alike.
//!
//! Names, arguments and result shapes are a contract with the agents that embed the service, so nothing is added to a
//! result: what its shape cannot say (that a server is still loading, that one is missing) is said in the text beside it.
//! An empty list means that there is nothing. When a server that would know could not be asked, the answer is a tool
//! error instead.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tenon_contract::position::Position;
use tenon_contract::root::{GateError, WorkspacePath};
use tenon_lsp::model::{Answer as Found, Gap, Location, Severity, Symbol, Why};
use tenon_lsp::orchestrator::{AskError, Orchestrator};
use tenon_servers::registry::OverrideError;

use crate::engine::Engine;
use crate::surface::{
    Answer, Arguments, Call, CallLimits, Catalog, Outcome, Refusal, Surface, ToolSpec, tool, unknown_tool,
};

mod shape;

use shape::{diagnostic, location, object, symbol};

/// In the contract's order.
const TOOLS: &[ToolSpec] = &[
    tool!("lsp_goto_definition", "Where the symbol at a position is defined."),
    tool!("lsp_find_references", "Where the symbol at a position is used, its declaration included."),
    tool!("lsp_hover", "Type and documentation of the symbol at a position."),
    tool!("lsp_document_symbols", "The symbols of a file as a flat list."),
    tool!("lsp_workspace_symbols", "Symbols of the workspace by name."),
    tool!("lsp_diagnostics", "What the language servers say is wrong, by file, as far as they were asked."),
];

/// What is left of a call's time for saying why there is no answer.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// How the surface answers.
#[derive(Debug, Clone)]
pub struct NavOptions {
    /// How long one question may take, a server's start included.
    pub timeout: Duration,
    /// Which diagnostics are shown.
    pub severities: Vec<Severity>,
}

impl Default for NavOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(10), severities: vec![Severity::Error] }
    }
}

/// Where the language servers come from.
enum Servers {
    Workspace(Arc<Engine>),
    Given(Orchestrator),
}

/// See the module.
pub struct NavSurface {
    catalog: Catalog,
    servers: Servers,
    options: NavOptions,
}

/// What keeps a tool from answering, for the model to read.
struct Trouble(String);

impl NavSurface {
    pub const NAME: &'static str = "nav";

    /// The tools over the language servers of a workspace, which are opened by the first call.
    pub fn new(engine: &Arc<Engine>, options: NavOptions) -> Self {
        Self { catalog: Catalog::new(TOOLS), servers: Servers::Workspace(Arc::clone(engine)), options }
    }

    /// The tools over servers that are there already.
    pub fn over(orchestrator: Orchestrator, options: NavOptions) -> Self {
        Self { catalog: Catalog::new(TOOLS), servers: Servers::Given(orchestrator), options }
    }

    async fn orchestrator(&self) -> Result<&Orchestrator, OverrideError> {
        match &self.servers {
            Servers::Workspace(engine) => engine.orchestrator().await,
            Servers::Given(orchestrator) => Ok(orchestrator),
        }
    }

    async fn run(&self, tool: &str, arguments: &Arguments, call: Call) -> Result<Answer, Trouble> {
        let orchestrator = self.orchestrator().await.map_err(|error| {
            tracing::warn!(%error, "no language server can be used");
            Trouble("the configured language servers cannot be used; the log says why".to_owned())
        })?;
        let call = tenon_lsp::call::Call::new(call.deadline - LAST_WORDS, call.caller.cancel)
            .at_most(self.options.timeout);
        let place = || place(orchestrator, arguments);
        match tool {
            "lsp_goto_definition" => {
                let (path, position) = place()?;
                let found = orchestrator.definition(&path, position, &call).await?;
                locations(orchestrator, found)
            }
            "lsp_find_references" => {
                let (path, position) = place()?;
                let found = orchestrator.references(&path, position, true, &call).await?;
                locations(orchestrator, found)
            }
            "lsp_hover" => {
                let (path, position) = place()?;
                let found = orchestrator.hover(&path, position, &call).await?;
                let content = found.value.as_ref().map(|hover| {
                    let parts: Vec<&str> = hover.parts.iter().map(|part| part.value.as_str()).collect();
                    parts.join("\n\n")
                });
                let text = content.clone().unwrap_or_else(|| "nothing to say".to_owned());
                let is_empty = content.is_none();
                answered(&found, is_empty, object([("content", content.into())]), text)
            }
            "lsp_document_symbols" => {
                let path = admit(orchestrator, arguments)?;
                let found = orchestrator.document_symbols(&path, &call).await?;
                symbols(orchestrator, &found, false)
            }
            "lsp_workspace_symbols" => {
                let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
                let found = orchestrator.workspace_symbols(query, &call).await;
                symbols(orchestrator, &found, true)
            }
            "lsp_diagnostics" => Ok(self.diagnostics(orchestrator).await),
            _ => Err(Trouble("there is no such tool".to_owned())),
        }
    }

    async fn diagnostics(&self, orchestrator: &Orchestrator) -> Answer {
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
        let text = if lines.is_empty() { "nothing is wrong".to_owned() } else { lines.join("\n") };
        Answer::structured(object([("diagnostics", Value::Object(files))])).with_text(text)
    }
}

impl From<AskError> for Trouble {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Unreadable(error) => Self(format!("the file cannot be asked about: {error}")),
            AskError::Position(error) => Self(format!("there is no such position in the file: {error}")),
        }
    }
}

/// The file an argument names; outside the root nothing is said about what is there.
fn admit(orchestrator: &Orchestrator, arguments: &Arguments) -> Result<WorkspacePath, Trouble> {
    let file = arguments.get("file").and_then(Value::as_str).unwrap_or_default();
    orchestrator.gate().admit_path(file).map_err(|error| match error {
        GateError::Denied => Trouble("the file is outside the workspace".to_owned()),
        other => Trouble(format!("the file cannot be asked about: {other}")),
    })
}

fn place(orchestrator: &Orchestrator, arguments: &Arguments) -> Result<(WorkspacePath, Position), Trouble> {
    let path = admit(orchestrator, arguments)?;
    let zero_based = |key: &str| {
        let number = arguments.get(key).and_then(Value::as_f64).unwrap_or(1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the schema bounds it")]
        let number = number as u32;
        number.saturating_sub(1)
    };
    Ok((path, Position::new(zero_based("line"), zero_based("character"))))
}

fn locations(orchestrator: &Orchestrator, found: Found<Vec<Location>>) -> Result<Answer, Trouble> {
    let gate = orchestrator.gate();
    let lines: Vec<String> = found.value.iter().map(|one| shape::location_line(gate, one)).collect();
    let list: Vec<Value> = found.value.iter().map(|one| location(gate, one)).collect();
    let text = if lines.is_empty() { "nothing found".to_owned() } else { lines.join("\n") };
    answered(&found, list.is_empty(), object([("locations", Value::Array(list))]), text)
}

fn symbols(
    orchestrator: &Orchestrator,
    found: &Found<Vec<Symbol>>,
    with_file: bool,
) -> Result<Answer, Trouble> {
    let gate = orchestrator.gate();
    let lines: Vec<String> = found.value.iter().map(|one| shape::symbol_line(gate, one, with_file)).collect();
    let list: Vec<Value> = found.value.iter().map(|one| symbol(gate, one, with_file)).collect();
    let text = if lines.is_empty() { "nothing found".to_owned() } else { lines.join("\n") };
    answered(found, list.is_empty(), object([("symbols", Value::Array(list))]), text)
}

/// An answer with what is missing from it said beside it; nothing at all is only an answer when nobody is missing.
fn answered<T>(found: &Found<T>, is_empty: bool, structured: Value, text: String) -> Result<Answer, Trouble> {
    let missing: Vec<String> = found.gaps.iter().filter_map(missing).collect();
    if is_empty && !found.is_complete() && !missing.is_empty() {
        return Err(Trouble(missing.join("; ")));
    }
    let mut text = text;
    for note in missing {
        text.push_str(&format!("\n({note})"));
    }
    Ok(Answer::structured(structured).with_text(text))
}

/// What a reader should know about a gap.
fn missing(gap: &Gap) -> Option<String> {
    let server = &gap.server;
    match &gap.why {
        Why::Indexing => Some(format!("`{server}` is still loading the project; ask again")),
        Why::Pending => Some(format!("`{server}` did not answer in time; ask again")),
        Why::Broken => Some(format!("`{server}` is broken; `tenon servers restart {server}` starts it anew")),
        Why::Refused(message) => Some(format!("`{server}` refused: {message}")),
        Why::Limit => Some(format!("`{server}` does not list more than this")),
        Why::Unavailable(reason) => Some(format!("`{server}` is not available: {reason}")),
        Why::Unproven => None,
    }
}

impl Surface for NavSurface {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn limits(&self, _tool: &str) -> CallLimits {
        CallLimits { deadline: self.options.timeout + 2 * LAST_WORDS, ..CallLimits::default() }
    }

    fn call<'a>(&'a self, tool: &'static str, arguments: Arguments, call: Call) -> BoxFuture<'a, Outcome> {
        async move {
            let outcome = self.run(tool, &arguments, call).await;
            Ok(outcome.unwrap_or_else(|Trouble(message)| Answer::text(message).failed()))
        }
        .boxed()
    }

    fn refuse(&self, tool: &str, refusal: Refusal) -> Outcome {
        let message = match refusal {
            Refusal::UnknownTool => return Err(unknown_tool(tool)),
            Refusal::Schema(fault) => {
                let at = if fault.path.is_empty() { "arguments" } else { &fault.path };
                format!("{at}: {}", fault.message)
            }
            Refusal::Timeout(limit) => format!("no answer within {} ms; ask again", limit.as_millis()),
            Refusal::Cancelled => "the call was cancelled".to_owned(),
            Refusal::ResponseTooLarge { bytes, limit } => {
                format!("the answer has {bytes} bytes, {limit} are allowed; ask about something narrower")
            }
            Refusal::Internal => "the tool failed; the log says why".to_owned(),
        };
        Ok(Answer::text(message).failed())
    }
}
