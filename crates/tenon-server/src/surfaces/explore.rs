//! The `explore` surface: code by name, one call per question, answered with text.
//!
//! The default surface (spec: docs/explore.md). [`Explorer`] answers; this file reads the arguments and maps failures to one
//! line of text with `isError`.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tenon_code::explore::{ExploreError, ExploreRequest, Explorer};
use tenon_code::symbol_edit::SymbolEditError;
use tenon_lsp::CallContext;

use crate::engine::Engine;
use crate::surface::{
    Arguments, CallFailure, CallLimits, Catalog, Surface, ToolAnswer, ToolCall, ToolOutcome, tool_set,
};

tool_set! {
    /// The seven read tools.
    pub enum ExploreTool {
        Find reads text "find"
            "Finds declarations by name. One match: its source. Several: a ranked list with signatures.";
        Outline reads text "outline" "Declarations of a file with signatures, or the map of a folder or the workspace.";
        References reads text "references" "Where a symbol is used: by file, with enclosing symbol and line of code.";
        Hierarchy reads text "hierarchy" "Callers, callees, subtypes or supertypes of a symbol as a tree.";
        Search reads text "search" "Searches text, a regex or a syntax pattern; lines with their enclosing symbol.";
        Problems reads text "problems" "Errors and warnings from language servers, new ones first.";
        TryEdit reads text "try_edit" "Says which errors an edit would cause and remove, in all files. Writes nothing.";
    }
}

/// At most 600 bytes: every session pays for them.
const INSTRUCTIONS: &str = "Tenon knows this workspace's code from language servers and a syntax index. Ask by name, without \
    line numbers: `find` shows a declaration with its source, `references` its uses, `hierarchy` callers, callees and subtypes, \
    `outline` a file or folder, `problems` the errors. Each takes one call and is complete unless a note says otherwise; prefer \
    them to text search and to reading whole files. `search` finds text and syntax. `try_edit` tells what an edit would break; \
    edits through Tenon answer with what they broke.";

/// Long enough for the start of a server and the load of a project.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long before the deadline a call stops waiting, to report why there is no answer.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// See the module.
pub(crate) struct ExploreSurface {
    catalog: Catalog<ExploreTool>,
    engine: Arc<Engine>,
}

/// Why there is no answer.
enum Failure {
    Servers,
    Arguments(String),
    Explore(ExploreError),
    Edit(SymbolEditError),
    Call(CallFailure),
}

impl From<ExploreError> for Failure {
    fn from(error: ExploreError) -> Self {
        Self::Explore(error)
    }
}

impl From<SymbolEditError> for Failure {
    fn from(error: SymbolEditError) -> Self {
        Self::Edit(error)
    }
}

impl ExploreSurface {
    pub(crate) const NAME: &'static str = "explore";

    pub(crate) fn new(engine: &Arc<Engine>) -> Self {
        Self { catalog: Catalog::new(ExploreTool::ALL), engine: Arc::clone(engine) }
    }

    async fn explorer(&self) -> Result<&Arc<Explorer>, Failure> {
        self.engine.explorer().await.map_err(|error| {
            tracing::warn!(%error, "the configured language servers cannot be used");
            Failure::Servers
        })
    }

    async fn run(&self, tool: ExploreTool, arguments: Arguments, call: ToolCall) -> Result<String, Failure> {
        let explorer = self.explorer().await?;
        let client = call.caller.client.0;
        let call = CallContext::new(call.deadline - ANSWER_TIME, call.caller.cancel).for_client(client);
        let request = match tool {
            ExploreTool::TryEdit => return self.try_edit(arguments, &call).await,
            ExploreTool::Find => ExploreRequest::Find(read(arguments)?),
            ExploreTool::Outline => ExploreRequest::Outline(read(arguments)?),
            ExploreTool::References => ExploreRequest::References(read(arguments)?),
            ExploreTool::Hierarchy => ExploreRequest::Hierarchy(read(arguments)?),
            ExploreTool::Search => ExploreRequest::Search(read(arguments)?),
            ExploreTool::Problems => ExploreRequest::Problems(read(arguments)?),
        };
        Ok(explorer.answer(request, &call).await?)
    }
}

impl ExploreSurface {
    async fn try_edit(&self, arguments: Arguments, call: &CallContext) -> Result<String, Failure> {
        let editor = self.engine.symbol_editor().await.map_err(|_| Failure::Servers)?;
        let editor = editor.ok_or(Failure::Arguments("the workspace root no longer exists".to_owned()))?;
        Ok(editor.try_edit(read(arguments)?, call).await?)
    }
}

fn read<T: DeserializeOwned>(arguments: Arguments) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| Failure::Arguments(error.to_string()))
}

/// One line, with a next step.
fn classify(failure: &Failure) -> ToolAnswer {
    let message = match failure {
        Failure::Servers => "the configured language servers cannot be used; run `tenon doctor`".to_owned(),
        Failure::Arguments(message) => message.clone(),
        Failure::Explore(error) => error.to_string(),
        Failure::Edit(error) => error.to_string(),
        Failure::Call(CallFailure::InvalidArguments(fault)) => {
            format!("{}: {}", fault.location(), fault.message)
        }
        Failure::Call(CallFailure::Timeout(limit)) => {
            format!("no answer within {} s; ask again, or narrow with path", limit.as_secs())
        }
        Failure::Call(CallFailure::Cancelled) => "the call was cancelled".to_owned(),
        Failure::Call(CallFailure::ResponseTooLarge { bytes, limit }) => {
            format!("the answer has {bytes} bytes, {limit} are allowed; lower max_bytes")
        }
        Failure::Call(CallFailure::Internal) => "the tool failed; run `tenon doctor`".to_owned(),
    };
    ToolAnswer::text(message).failed()
}

impl Surface for ExploreSurface {
    type Tool = ExploreTool;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn catalog(&self) -> &Catalog<ExploreTool> {
        &self.catalog
    }

    fn instructions(&self) -> Option<&'static str> {
        Some(INSTRUCTIONS)
    }

    fn limits(&self) -> CallLimits {
        CallLimits { deadline: DEADLINE, ..CallLimits::default() }
    }

    async fn call(&self, tool: ExploreTool, arguments: Arguments, call: ToolCall) -> ToolOutcome {
        let outcome = self.run(tool, arguments, call).await;
        Ok(outcome.map_or_else(|failure| classify(&failure), ToolAnswer::text))
    }

    fn classify(&self, _tool: ExploreTool, failure: CallFailure) -> ToolOutcome {
        Ok(classify(&Failure::Call(failure)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_at_most_600_bytes() {
        assert!(INSTRUCTIONS.len() <= 600, "{}", INSTRUCTIONS.len());
        assert!(!INSTRUCTIONS.contains("  "));
    }
}
