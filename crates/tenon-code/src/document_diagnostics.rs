//! `vscode.lsp.diagnostics.document` (§7.6): the diagnostics of one document.

use serde::Deserialize;
use serde_json::json;
use tenon_contract::cursor::RequestKey;
use tenon_contract::epoch::EpochSet;
use tenon_lsp::CallContext;

use crate::canonical::{Diagnostic, canonicalise};
use crate::code_reply::CodeReply;
use crate::code_tools::{CodeTools, Consistency, Question};
use crate::completeness::{RequiredServers, require_complete};
use crate::error::CodeError;
use crate::listing;
use crate::summary::{Caveats, count};

/// The arguments of `vscode.lsp.diagnostics.document`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentDiagnostics {
    pub uri: String,
}

impl DocumentDiagnostics {
    pub const TOOL: &'static str = "vscode.lsp.diagnostics.document";
}

impl CodeTools {
    pub async fn document_diagnostics(
        &self,
        input: DocumentDiagnostics,
        call: &CallContext,
    ) -> Result<CodeReply, CodeError> {
        let path = self.admit(input.uri).await?;
        let question = Question {
            request: RequestKey::new(DocumentDiagnostics::TOOL, &[path.uri()]),
            epochs: EpochSet::CODE,
            path: Some(path.clone()),
            consistency: Consistency::BegunAfterCall,
        };
        self.reply(question, call, move |state, call| {
            let (path, call) = (path.clone(), call.beside_changes());
            async move {
                let found = require_complete(
                    state.engine.check(&path, None, &call).await?,
                    RequiredServers::AtLeastOne,
                )?;
                let caveats = Caveats::of(&found, Vec::new());
                let all = found.value.into_iter().map(|one| Diagnostic::new(&path, one)).collect();
                let mut diagnostics = canonicalise(all);
                let capped = diagnostics.len() > state.limits.items;
                diagnostics.truncate(state.limits.items);
                let caveats = Caveats { capped, ..caveats };
                let summary =
                    caveats.summary(&format!("Returned {}", count(diagnostics.len(), "diagnostic")), false);
                let lines = state.listing.then(|| {
                    let line = |one| listing::diagnostic(state.gate(), &path, one);
                    diagnostics.iter().map(line).collect()
                });
                let payload = json!({ "uri": path.uri(), "diagnostics": diagnostics, "summary": summary });
                CodeReply::new(payload, lines).within(state.limits.payload_bytes())
            }
        })
        .await
    }
}
