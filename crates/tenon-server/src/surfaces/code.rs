//! The `code` surface: the seven read-only tools of the gateway contract (docs/contract.md).
//!
//! A result is the payload as structured content, plus a text listing if the user asked for it (for clients that show the
//! model only text). Every failure is a JSON-RPC error; only [`classify`] knows the codes.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tenon_code::{CodeLimits, CodeReply, CodeTools, Options};
use tenon_contract::snapshot::SnapshotLimits;
use tenon_servers::registry::OverrideError;
use tokio::sync::OnceCell;

use crate::config::ContentMode;
use crate::engine::Engine;
use crate::surface::{
    Arguments, CallFailure, CallLimits, Catalog, ErrorData, Surface, ToolAnswer, ToolCall, ToolOutcome,
    tool_set,
};
use crate::workspace::Workspace;

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

type Open = Box<dyn Fn() -> BoxFuture<'static, Result<CodeTools, OverrideError>> + Send + Sync>;

/// See the module.
pub struct CodeSurface {
    catalog: Catalog<CodeTool>,
    limits: CodeLimits,
    code: OnceCell<CodeTools>,
    open: Open,
}

impl CodeSurface {
    pub const NAME: &'static str = "code";

    /// The tools over the language servers of a workspace, which the first call opens.
    pub(crate) fn new(workspace: &Arc<Workspace>, engine: &Arc<Engine>) -> Self {
        let (workspace, engine) = (Arc::clone(workspace), Arc::clone(engine));
        let limits = limits(&workspace);
        let open = move || {
            let (workspace, engine) = (Arc::clone(&workspace), Arc::clone(&engine));
            async move {
                let options = Options {
                    engine: engine.orchestrator().await?.clone(),
                    limits,
                    snapshots: SnapshotLimits::default(),
                    clock: workspace.clock().clone(),
                    listing: workspace.config().mcp.content == ContentMode::Text,
                };
                Ok(CodeTools::new(options))
            }
            .boxed()
        };
        Self { catalog: Catalog::new(CodeTool::ALL), limits, code: OnceCell::new(), open: Box::new(open) }
    }

    /// The tools over an engine that is already open.
    pub fn over(code: CodeTools) -> Self {
        let limits = code.limits();
        let open = {
            let code = code.clone();
            move || std::future::ready(Ok(code.clone())).boxed()
        };
        Self {
            catalog: Catalog::new(CodeTool::ALL),
            limits,
            code: OnceCell::new_with(Some(code)),
            open: Box::new(open),
        }
    }

    async fn run(
        &self,
        tool: CodeTool,
        arguments: Arguments,
        call: &tenon_lsp::CallContext,
    ) -> Result<CodeReply, Failure> {
        let code = self.code.get_or_try_init(|| (self.open)()).await.map_err(|error| {
            tracing::warn!(%error, "no language server can be used");
            Failure::Servers
        })?;
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

/// The configured limits, clamped to the contract's.
fn limits(workspace: &Workspace) -> CodeLimits {
    let limits = &workspace.config().limits;
    let asked = CodeLimits {
        response_bytes: limits.max_response_bytes,
        timeout: Duration::from_millis(limits.request_timeout_ms),
        items: limits.max_items_nonpaged,
        page_size: limits.max_page_size,
        workspace_diagnostics: limits.max_workspace_diagnostics_items_total,
        workspace_symbols: limits.max_workspace_symbols_items_total,
        references: limits.max_references_items_total,
    };
    asked.clamped()
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
        let call = tenon_lsp::CallContext::new(call.deadline - spare, call.caller.cancel);
        let reply = self.run(tool, arguments, &call).await.map_err(|failure| classify(&failure))?;
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
