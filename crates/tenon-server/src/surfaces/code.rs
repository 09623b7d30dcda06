//! The `code` surface: the seven read-only tools of the gateway contract (docs/contract.md).
//!
//! A result is the payload as structured content, plus a text listing for a client that shows the model only text. Every failure is a JSON-RPC error; only [`classify`] knows the codes.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tenon_code::{CodeLimits, CodeReply, CodeTools};
use tenon_servers::registry::OverrideError;

use crate::engine::Engine;
use crate::surface::{
    Arguments, CallFailure, CallLimits, Catalog, ErrorData, Surface, ToolAnswer, ToolCall, ToolOutcome,
    tool_set,
};

mod classify;

use classify::{Failure, classify};

tool_set! {
    /// The seven tools, in the contract's order.
    pub enum CodeTool {
        Definition reads "vscode.lsp.definition" "Where the symbol at a position is defined.";
        References reads "vscode.lsp.references" "Where the symbol at a position is used, page by page.";
        Hover reads "vscode.lsp.hover" "Type and documentation of the symbol at a position.";
        DocumentSymbols reads "vscode.lsp.documentSymbols" "The symbols of a file as a flat list.";
        WorkspaceSymbols reads "vscode.lsp.workspaceSymbols" "Symbols of the workspace by name, page by page.";
        DocumentDiagnostics reads "vscode.lsp.diagnostics.document" "Errors and warnings of a file.";
        WorkspaceDiagnostics reads "vscode.lsp.diagnostics.workspace"
            "Errors and warnings of the workspace by file, page by page.";
    }
}

/// How long before the deadline a call stops waiting, to report why there is no answer.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// Where the tools come from.
enum Source {
    Workspace(Arc<Engine>),
    Given(CodeTools),
}

/// See the module.
pub struct CodeSurface {
    catalog: Catalog<CodeTool>,
    limits: CodeLimits,
    source: Source,
}

impl CodeSurface {
    pub const NAME: &'static str = "code";

    /// The tools over the language servers of a workspace, which the first call opens.
    pub(crate) fn new(engine: &Arc<Engine>) -> Self {
        let (limits, source) = (engine.code_limits(), Source::Workspace(Arc::clone(engine)));
        Self { catalog: Catalog::new(CodeTool::ALL), limits, source }
    }

    /// The tools over an engine that is already open.
    pub fn over(code: CodeTools) -> Self {
        Self { catalog: Catalog::new(CodeTool::ALL), limits: code.limits(), source: Source::Given(code) }
    }

    async fn code(&self) -> Result<&CodeTools, OverrideError> {
        match &self.source {
            Source::Workspace(engine) => engine.code_tools().await,
            Source::Given(code) => Ok(code),
        }
    }

    async fn run(
        &self,
        tool: CodeTool,
        arguments: Arguments,
        text: bool,
        call: &tenon_lsp::CallContext,
    ) -> Result<CodeReply, Failure> {
        let code = self.code().await.map_err(|error| {
            tracing::warn!(%error, "no language server can be used");
            Failure::Servers
        })?;
        let code = if text { code.with_listing() } else { code.clone() };
        let reply = match tool {
            CodeTool::Definition => code.definition(read(arguments)?, call).await,
            CodeTool::References => code.references(read(arguments)?, call).await,
            CodeTool::Hover => code.hover(read(arguments)?, call).await,
            CodeTool::DocumentSymbols => code.document_symbols(read(arguments)?, call).await,
            CodeTool::WorkspaceSymbols => code.workspace_symbols(read(arguments)?, call).await,
            CodeTool::DocumentDiagnostics => code.document_diagnostics(read(arguments)?, call).await,
            CodeTool::WorkspaceDiagnostics => code.workspace_diagnostics(read(arguments)?, call).await,
        };
        reply.map_err(Failure::Code)
    }
}

/// Reads arguments that satisfy their schema into the tool's type, which may be stricter.
fn read<T: DeserializeOwned>(arguments: Arguments) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|_| Failure::Arguments)
}

impl Surface for CodeSurface {
    type Tool = CodeTool;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn catalog(&self) -> &Catalog<CodeTool> {
        &self.catalog
    }

    fn limits(&self) -> CallLimits {
        CallLimits { deadline: self.limits.timeout, response_bytes: self.limits.response_bytes }
    }

    async fn call(&self, tool: CodeTool, arguments: Arguments, call: ToolCall) -> ToolOutcome {
        // Leaves time to report a server that is not ready instead of a bare timeout.
        let spare = LAST_WORDS.min(self.limits.timeout / 10);
        let (client, text) = (call.caller.client.0, call.caller.text);
        let call = tenon_lsp::CallContext::new(call.deadline - spare, call.caller.cancel).for_client(client);
        let reply = self.run(tool, arguments, text, &call).await.map_err(|failure| classify(&failure))?;
        let answer = ToolAnswer::structured(reply.payload);
        Ok(match reply.listing {
            Some(listing) => answer.with_text(listing),
            None => answer,
        })
    }

    fn classify(&self, _tool: CodeTool, failure: CallFailure) -> ToolOutcome {
        Err(classify(&Failure::Call(failure)))
    }

    fn unknown_tool(&self, _name: &str) -> ErrorData {
        classify(&Failure::UnknownTool)
    }

    fn malformed_call(&self) -> ErrorData {
        classify(&Failure::Arguments)
    }
}
