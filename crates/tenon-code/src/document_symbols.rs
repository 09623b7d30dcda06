//! `vscode.lsp.documentSymbols` (§7.4): the symbols of a document as a flat list.

use serde::Deserialize;
use serde_json::json;
use tenon_contract::cursor::RequestKey;
use tenon_contract::epoch::EpochSet;
use tenon_lsp::CallContext;

use crate::canonical::{DocumentSymbol, canonicalise};
use crate::code_reply::CodeReply;
use crate::code_tools::{CodeTools, Consistency, Question};
use crate::completeness::{RequiredServers, require_complete};
use crate::error::CodeError;
use crate::limits::VISITED_SYMBOLS;
use crate::listing;
use crate::summary::{Caveats, count};

/// The arguments of `vscode.lsp.documentSymbols`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentSymbols {
    pub uri: String,
}

impl DocumentSymbols {
    pub const TOOL: &'static str = "vscode.lsp.documentSymbols";
}

impl CodeTools {
    pub async fn document_symbols(
        &self,
        input: DocumentSymbols,
        call: &CallContext,
    ) -> Result<CodeReply, CodeError> {
        let path = self.admit(input.uri).await?;
        let question = Question {
            request: RequestKey::new(DocumentSymbols::TOOL, &[path.uri()]),
            epochs: EpochSet::CODE,
            path: Some(path.clone()),
            consistency: Consistency::Unchanged,
        };
        self.reply(question, call, move |state, call| {
            let path = path.clone();
            async move {
                let answer = state.engine.document_symbols(&path, &call).await?;
                let notes = answer.notes.clone();
                let found = require_complete(answer, RequiredServers::AtLeastOne)?;
                if found.value.len() > VISITED_SYMBOLS {
                    return Err(CodeError::TooMany {
                        what: "symbols in the document",
                        limit: VISITED_SYMBOLS,
                    });
                }
                let caveats = Caveats::of(&found, notes);
                let mut symbols = canonicalise(found.value.into_iter().map(DocumentSymbol::from).collect());
                let capped = symbols.len() > state.limits.items;
                symbols.truncate(state.limits.items);
                let caveats = Caveats { capped, ..caveats };
                let summary =
                    caveats.summary(&format!("Returned {}", count(symbols.len(), "document symbol")), false);
                let lines = state.listing.then(|| {
                    let line = |symbol| listing::document_symbol(state.gate(), &path, symbol);
                    symbols.iter().map(line).collect()
                });
                let payload = json!({ "symbols": symbols, "summary": summary });
                CodeReply::new(payload, lines).within(state.limits.payload_bytes())
            }
        })
        .await
    }
}
